"""Write a secret."""

from typing import ClassVar

from services.core.model import Step, Verb
from services.engine.effects.secrets import SecretEffect


class PutSecret(SecretEffect):
    """Writes a secret. An overwritten value cannot be restored."""

    __slots__ = ()
    makes: ClassVar[bool] = False

    @property
    def overwrites(self) -> bool:
        """Whether the plan expects a secret of that key."""
        return self.step.verb is Verb.UPDATE

    def inverse(self) -> Step:
        """Delete the secret."""
        return self._turned(Verb.DELETE)
