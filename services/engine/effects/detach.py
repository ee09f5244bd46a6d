"""Detach a label from a resource."""

from typing import ClassVar

from services.core.model import Step, Verb
from services.engine.claims import ClaimMode
from services.engine.effects.labels import LabelEffect


class Detach(LabelEffect):
    """Detaches a label from a resource."""

    __slots__ = ()
    attaches: ClassVar[bool] = False
    removes: ClassVar[bool] = True
    claim_mode: ClassVar[ClaimMode] = ClaimMode.REMOVE

    def inverse(self) -> Step:
        """Attach it again."""
        return self._turned(Verb.ATTACH)
