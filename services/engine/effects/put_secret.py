"""Write a secret."""

from typing import ClassVar

from services.core.model import Step, Verb
from services.engine.effects.secrets import SecretEffect


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
