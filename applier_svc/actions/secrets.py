"""
Values of secrets that phases use: from variables and files of this applier, or from the request (docs/actions.md,
"Secrets").
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from applier_svc.execution.masking import Masking
from services.actions.definitions import SecretPlace, SecretSource
from services.actions.phase_reason import PhaseReason
from services.core.masking import masked
from services.private_files import PathRefused, read_within
from services.settings import SECRET_PREFIX

LARGEST = 64 * 1024
"""Bytes of a file with a secret, and characters of a value."""

SHORTEST = 4
"""Characters of a value: a shorter one could not be masked."""

LOST = "(lost with its applier)"
"""What stands for a value that was lost, in the arguments of a call that may begin nothing."""

_WITHHELD = "the message is withheld, because it might repeat a secret"


class SecretMissingError(Exception):
    """A secret is not where the action set says; the message is one sentence, without the value."""

    def __init__(self, problem: str, reason: PhaseReason = PhaseReason.SECRET_MISSING) -> None:
        super().__init__(problem)
        self.reason = reason


class SecretPlaces:
    """Where this applier reads secrets."""

    def __init__(self, variables: Mapping[str, str], folder: Path | None) -> None:
        """
        Args:
            variables: The values by the names of their variables, without ``SECRET_PREFIX``.
            folder: The folder of files with secrets; None: there is none.
        """
        self._variables = variables
        self._folder = folder

    def __repr__(self) -> str:
        return f"SecretPlaces({len(self._variables)} variables)"

    def read(self, name: str, source: SecretSource) -> str:
        """
        The value of the secret *name* in a variable or a file.

        Raises:
            SecretMissingError: It is not there, or cannot be used.
        """
        if source.place is SecretPlace.VARIABLE:
            value = self._variables.get(source.name)
            if value is None:
                raise SecretMissingError(f"secret {name}: the applier has no variable {SECRET_PREFIX}{source.name}")
            return _checked(name, value)
        if self._folder is None:
            raise SecretMissingError(f"secret {name}: the applier has no folder of secrets; set PKGER_SECRETS_DIR")
        try:
            return _checked(name, read_within(self._folder, source.name, LARGEST).removesuffix("\n"))
        except PathRefused as error:
            problem = str(error)
        except UnicodeDecodeError:
            problem = "it is no UTF-8 text"
        except OSError as error:
            problem = error.strerror or "it cannot be read"
        raise SecretMissingError(f"secret {name}: file {source.name}: {problem}")


class ActionSecrets:
    """
    The values of the secrets of one action set, as far as they are known. They are written nowhere; each value that was
    read is masked in all texts from then on.
    """

    def __init__(self, places: SecretPlaces, request: Mapping[str, str], are_lost: bool = False) -> None:
        """
        Args:
            places: Where variables and files are read.
            request: The values that came with the request, by NAME.KEY.
            are_lost: Whether another applier had the values of the request.
        """
        self._places = places
        self._request = dict(request)
        self._are_lost = are_lost
        self._values: set[str] = {*request.values()}
        self._masking = Masking(self._values)

    def __repr__(self) -> str:
        return f"ActionSecrets({len(self._values)})"

    def values(
        self, sources: Mapping[str, Mapping[str, SecretSource]], may_be_lost: bool = False
    ) -> dict[str, dict[str, str]]:
        """
        The values of secrets, by name and key; variables and files are read anew.

        Args:
            sources: Where they are.
            may_be_lost: Whether ``LOST`` stands for a value that was lost with its applier.

        Raises:
            SecretMissingError: One is not there; its reason is INTERRUPTED if it was lost with its applier.
        """
        values = {
            name: {key: self._value(f"{name}.{key}", source, may_be_lost) for key, source in by_key.items()}
            for name, by_key in sources.items()
        }
        if new := {value for by_key in values.values() for value in by_key.values()} - self._values - {LOST}:
            self._values |= new
            self._masking = Masking(self._values)
        return values

    def masked_line(self, line: str) -> str:
        """A line of the log without the values that are known here."""
        return self._masking.masked(line)

    def masked(self, text: str) -> str:
        """
        A text of a function without the values, in any spelling. It is withheld if values were lost with another
        applier, as they cannot be recognised.
        """
        return _WITHHELD if self._are_lost else masked(self._masking.masked(text))

    def masked_value(self, value: Any) -> Any:
        """A JSON value with all its texts ``masked``, keys included; addresses in it stay as they are."""
        match value:
            case str():
                return self._masking.masked(value)
            case dict():
                return {self._masking.masked(key): self.masked_value(item) for key, item in value.items()}
            case list():
                return [self.masked_value(item) for item in value]
            case _:
                return value

    def _value(self, name: str, source: SecretSource, may_be_lost: bool) -> str:
        if source.place is not SecretPlace.REQUEST:
            return self._places.read(name, source)
        if (value := self._request.get(name)) is not None:
            return value
        if may_be_lost:
            return LOST
        problem = f"secret {name} was only in the memory of an applier that ended; run again, with the secrets"
        raise SecretMissingError(problem, PhaseReason.INTERRUPTED)


def _checked(name: str, value: str) -> str:
    if not SHORTEST <= len(value) <= LARGEST:
        raise SecretMissingError(f"secret {name} has {len(value):,} characters; {SHORTEST} to {LARGEST:,} are accepted")
    return value
