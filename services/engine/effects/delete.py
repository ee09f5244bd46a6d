"""Delete a resource."""

from collections.abc import Sequence
from typing import ClassVar

from services.core.model import KindTraits, PlatformTraits, Resource, Step, Verb
from services.engine.claims import Claimed, ClaimMode, claimed_names
from services.engine.effects.effect import Effect, Scene, Sending
from services.engine.ids import ResourceIds
from services.engine.outcome import Done, Finding, NoEffect


class Delete(Effect):
    """Deletes a resource."""

    __slots__ = ()
    removes: ClassVar[bool] = True
    expects: ClassVar[bool] = True

    def inverse(self) -> Step:
        """Create the resource again, with another id."""
        return self._turned(Verb.CREATE)

    def learn(self, ids: ResourceIds, resource_id: str) -> None:
        """The key identifies no resource any more."""
        ids.forget(self.step.key, self.step.resource_id)

    def claims(self, ids: ResourceIds, platform: PlatformTraits) -> Sequence[Claimed]:
        """The resource and its name: an undo creates it again."""
        names = claimed_names(self.step.key.kind, [self.step.old_spec], platform)
        return [*Effect.claims(self, ids, platform), *names]

    def claim_mode(self, what: Claimed) -> ClaimMode:
        """No other stack may use the resource."""
        return ClaimMode.REMOVE

    def finding(self, sending: Sending, live: Resource | None, traits: KindTraits) -> Finding:
        """A resource that is gone counts as deleted, by this step or by another writer."""
        return NoEffect() if live else Done(sending.resource_id)

    def rehearse(self, scene: Scene) -> None:
        """Find the planned content, without labels or references that an undo could not restore."""
        resource = (self.step.key.kind, self.target(scene.ids))
        if scene.holds(resource, self.step):
            scene.compare(resource, self.step)
            scene.remove(resource, self.step)
        self.learn(scene.ids, resource[1])
