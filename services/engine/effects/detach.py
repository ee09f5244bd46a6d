"""Detach a label from a resource."""

from typing import ClassVar

from services.core.model import Step, Verb
from services.engine.claims import Claimed, ClaimedAssociation, ClaimMode
from services.engine.effects.labels import LabelEffect


class Detach(LabelEffect):
    """Detaches a label from a resource."""

    __slots__ = ()
    attaches: ClassVar[bool] = False
    removes: ClassVar[bool] = True

    def inverse(self) -> Step:
        """Attach it again."""
        return self._turned(Verb.ATTACH)

    def claim_mode(self, what: Claimed) -> ClaimMode:
        """No other stack may use the association; the resource stays."""
        return ClaimMode.REMOVE if isinstance(what, ClaimedAssociation) else ClaimMode.ALONE
