"""The base of the effects on secrets. Plans and journals contain keys of secrets, never values."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from services.core.model import KindTraits, PlatformTraits, Resource, Spec
from services.engine.claims import Claimed, ClaimedSecret
from services.engine.effects.effect import Effect, Scene, Sending
from services.engine.ids import ResourceIds
from services.engine.outcome import Finding, Unknown


@dataclass(frozen=True, slots=True)
class SecretEffect(Effect):
    """Writes a secret or deletes one. The id of a secret is its key."""

    is_of_secret: ClassVar[bool] = True

    @property
    def seals(self) -> bool:
        """
        False: an overwritten secret cannot be restored, but later steps can be undone (docs/reference/engine.md, "Steps
        and stages").
        """
        return False

    def target(self, ids: ResourceIds) -> str:
        """The key of the secret."""
        return self.step.key.name

    def is_possible(self, ids: ResourceIds) -> bool:
        """True: it needs no resource."""
        return True

    def is_resolved_by_retry(self, platform: PlatformTraits) -> bool:
        """True: a secret cannot be read, so only the response to another write shows the outcome."""
        return True

    def claims(self, ids: ResourceIds, platform: PlatformTraits) -> Sequence[Claimed]:
        """The key of the secret."""
        return [ClaimedSecret(self.step.key.name)]

    def awaits_claims(self, platform: PlatformTraits) -> bool:
        """True: secrets are written first, and no stack owns them, so their claims are released soon."""
        return True

    def finding(self, sending: Sending, live: Resource | None, traits: KindTraits) -> Finding:
        """Unknown: the platform does not show values of secrets."""
        return Unknown("the value of a secret cannot be read")

    def rehearse(self, scene: Scene) -> None:
        """Nothing: ``stale_plan.stale_secrets`` compares secrets."""

    def expected(self, stands: bool) -> Spec | None:
        """None: a secret is no resource."""
        return None
