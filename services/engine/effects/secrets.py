"""What the effects on secrets have in common: their keys are in plans and journals, their values are nowhere."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from services.core.model import KindTraits, PlatformTraits, Resource, Spec
from services.engine.claims import Claimed, ClaimedSecret
from services.engine.effects.effect import Effect, Scene, Sending
from services.engine.ids import Ids
from services.engine.outcome import Finding, Unknown


@dataclass(frozen=True, slots=True)
class SecretEffect(Effect):
    """Writes a secret, or removes one. The id of a secret is its key."""

    is_of_secret: ClassVar[bool] = True

    @property
    def seals(self) -> bool:
        """One that is overwritten cannot be taken back, but what comes after it can (engine.md 3)."""
        return False

    def target(self, ids: Ids) -> str:
        """Its key."""
        return self.step.key.name

    def is_possible(self, ids: Ids) -> bool:
        """It needs nothing."""
        return True

    def is_resolved_by_retry(self, platform: PlatformTraits) -> bool:
        """Nobody can read one, so to write it again is the only way to know."""
        return True

    def claims(self, ids: Ids, platform: PlatformTraits) -> Sequence[Claimed]:
        """Its key."""
        return [ClaimedSecret(self.step.key.name)]

    def awaits_claims(self, platform: PlatformTraits) -> bool:
        """Secrets are written first, and stay with nobody."""
        return True

    def finding(self, sending: Sending, live: Resource | None, traits: KindTraits) -> Finding:
        """Nothing on the platform tells."""
        return Unknown("nobody can read a secret")

    def rehearse(self, scene: Scene) -> None:
        """The platform is asked for its secrets by themselves (``staleness.stale_secrets``)."""

    def expected(self, stands: bool) -> Spec | None:
        """It is no resource."""
        return None
