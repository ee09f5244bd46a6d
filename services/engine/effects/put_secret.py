"""Write a secret."""

from typing import ClassVar

from services.core.model import Step, Undo, Verb
from services.engine.effects.secrets import SecretEffect
from services.engine.outcome import Done, Outcome, Unknown


class PutSecret(SecretEffect):
    """Writes a secret: a new one, or over a value that nobody can bring back."""

    __slots__ = ()
    makes: ClassVar[bool] = False

    @property
    def overwrites(self) -> bool:
        """Whether there is one of the key."""
        return self.step.verb is Verb.UPDATE

    def inverse(self) -> Step:
        """Remove it."""
        return self._turned(Verb.DELETE)

    def is_to_be_undone(self, outcome: Outcome) -> bool:
        """A new one is removed by its key also when nobody knows whether it was written: that is right either way."""
        return isinstance(outcome, Done | Unknown) and self.step.undo is not Undo.NONE
