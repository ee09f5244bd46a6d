"""Remove a secret."""

from typing import ClassVar

from services.core.model import Step, Verb
from services.engine.effects.secrets import SecretEffect


class DeleteSecret(SecretEffect):
    """Removes a secret that the operation wrote."""

    __slots__ = ()
    removes: ClassVar[bool] = True

    def inverse(self) -> Step:
        """Write it again."""
        return self._turned(Verb.CREATE)
