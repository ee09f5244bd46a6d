"""What the effects on labels of resources have in common."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from services.core.model import KindTraits, PlatformTraits, Resource, Spec
from services.engine.claims import Claimed, ClaimedAssociation
from services.engine.effects.effect import Effect, Scene, Sending
from services.engine.ids import Ids
from services.engine.outcome import Done, Finding, NoEffect


@dataclass(frozen=True, slots=True)
class LabelEffect(Effect):
    """Attaches a label to a resource, or detaches one."""

    links: ClassVar[bool] = True
    attaches: ClassVar[bool]
    """Whether the label is on the resource once it took effect."""

    def is_possible(self, ids: Ids) -> bool:
        """It needs both."""
        return bool(self.target(ids) and self.label_id(ids))

    def claims(self, ids: Ids, platform: PlatformTraits) -> Sequence[Claimed]:
        """The association, as each of the two may belong to somebody else; what this operation makes is all its own."""
        if not self.step.resource_id:
            return []
        return [ClaimedAssociation(self.step.key.kind, self.target(ids), self.label_id(ids))]

    def finding(self, sending: Sending, live: Resource | None, traits: KindTraits) -> Finding:
        """The labels of the resource tell."""
        is_attached = live is not None and sending.label_id in live.label_ids
        return Done(sending.resource_id) if is_attached == self.attaches else NoEffect()

    def rehearse(self, scene: Scene) -> None:
        """It finds both, and the label not yet as it leaves it."""
        resource = (self.step.key.kind, self.target(scene.ids))
        if scene.holds(resource, self.step):
            scene.link(resource, self.step, self.attaches)

    def expected(self, stands: bool) -> Spec | None:
        """It says nothing of content."""
        return None
