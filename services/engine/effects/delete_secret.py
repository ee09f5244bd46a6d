"""Delete a secret."""

from typing import ClassVar

from services.core.model import Step, Verb
from services.engine.effects.secrets import SecretEffect


class DeleteSecret(SecretEffect):
    """Deletes a secret that the operation wrote."""

    __slots__ = ()
    removes: ClassVar[bool] = True

    def inverse(self) -> Step:
        """Write the secret again."""
        return self._turned(Verb.CREATE)
