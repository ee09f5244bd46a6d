"""The base of the effects on associations."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from services.core.model import KindTraits, PlatformTraits, Resource, Spec
from services.engine.claims import Claimed, ClaimedAssociation
from services.engine.effects.effect import Effect, Scene, Sending
from services.engine.ids import ResourceIds
from services.engine.outcome import Done, Finding, NoEffect


@dataclass(frozen=True, slots=True)
class LabelEffect(Effect):
    """Attaches a label to a resource, or detaches one."""

    links: ClassVar[bool] = True
    attaches: ClassVar[bool]
    """Whether the label is on the resource after the effect."""

    def is_possible(self, ids: ResourceIds) -> bool:
        """It needs the resource and the label."""
        return bool(self.target(ids) and self.label_id(ids))

    def claims(self, ids: ResourceIds, platform: PlatformTraits) -> Sequence[Claimed]:
        """
        The association alone, as another stack may own either side; a resource created here needs no claim.

        A resource that no object names had no owner in the plan. It is claimed, too: a stack that adopts it meanwhile
        would own a resource whose labels change by another operation.
        """
        if not self.step.resource_id:
            return []
        association = ClaimedAssociation(self.step.key.kind, self.target(ids), self.label_id(ids))
        return [association] if self.step.key.name else [association, *Effect.claims(self, ids, platform)]

    def finding(self, sending: Sending, live: Resource | None, traits: KindTraits) -> Finding:
        """The labels of the resource show the outcome."""
        is_attached = live is not None and sending.label_id in live.label_ids
        return Done(sending.resource_id) if is_attached == self.attaches else NoEffect()

    def rehearse(self, scene: Scene) -> None:
        """Find resource and label, and the association not yet in its new state."""
        resource = (self.step.key.kind, self.target(scene.ids))
        if scene.holds(resource, self.step):
            scene.link(resource, self.step, self.attaches)

    def expected(self, stands: bool) -> Spec | None:
        """None: an association is no content."""
        return None
