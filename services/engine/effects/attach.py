"""Attach a label to a resource."""

from typing import ClassVar

from services.core.model import Step, Verb
from services.engine.effects.labels import LabelEffect


class Attach(LabelEffect):
    """Attaches a label to a resource."""

    __slots__ = ()
    attaches: ClassVar[bool] = True

    def inverse(self) -> Step:
        """Detach it."""
        return self._turned(Verb.DETACH)
