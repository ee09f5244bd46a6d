"""Write the whole content of a resource."""

from collections.abc import Sequence
from typing import ClassVar

from services.core.model import KindTraits, PlatformTraits, Resource, Step, Verb
from services.engine.claims import Claimed, claimed_names
from services.engine.content_match import matches
from services.engine.effects.effect import Effect, Scene, Sending
from services.engine.expectation import Expectation, describe_changes
from services.engine.ids import ResourceIds
from services.engine.outcome import Done, Finding, NoEffect, Unknown


class Update(Effect):
    """Writes the whole content of a resource, and its references."""

    __slots__ = ()
    expects: ClassVar[bool] = True

    def inverse(self) -> Step:
        """Write the pre-image."""
        return self._turned(Verb.UPDATE)

    def claims(self, ids: ResourceIds, platform: PlatformTraits) -> Sequence[Claimed]:
        """The resource and, where it is renamed, the old and the new name: an undo restores the old one."""
        step = self.step
        names = claimed_names(step.key.kind, [step.old_spec, step.new_spec], platform)
        return [*Effect.claims(self, ids, platform), *(names if names[1:] else [])]

    def finding(self, sending: Sending, live: Resource | None, traits: KindTraits) -> Finding:
        """The content of the resource shows the outcome, unless another writer changed it."""
        if live is None:
            # The deleted resource shows no effect. Sent again the update is rejected, and the rejection is certain.
            return NoEffect()
        if matches(live, self.step.new_spec, sending.references, traits):
            return Done(sending.resource_id)
        if matches(live, self.step.old_spec, sending.old_references, traits):
            return NoEffect()
        before = Expectation(self.step.old_spec.text if self.step.old_spec else "{}", sending.old_references)
        return Unknown(describe_changes(before, live), is_conflict=True, resource_id=sending.resource_id)

    def rehearse(self, scene: Scene) -> None:
        """Find the planned content, and take the new name."""
        resource = (self.step.key.kind, self.target(scene.ids))
        if scene.holds(resource, self.step):
            scene.compare(resource, self.step)
            scene.write(resource, self.step)
