"""Members of core enums as numbers of proto enums and back."""

from collections.abc import Iterable
from enum import Enum
from typing import Any, Generic, TypeVar

from services.core.errors import RequestInvalid

E = TypeVar("E", bound=Enum)


class Numbers(Generic[E]):
    """Maps the members of a core enum to the numbers of its proto enum, which also has UNSPECIFIED."""

    def __init__(self, enum: Iterable[E], twin: Any, prefix: str) -> None:
        self._prefix = prefix
        self._numbers = {member: twin.Value(f"{prefix}_{member.name}") for member in enum}
        self._members = {number: member for member, number in self._numbers.items()}

    def number(self, member: E) -> Any:
        """The number of a member."""
        return self._numbers[member]

    def find(self, number: int) -> E | None:
        """The member of a number; None for UNSPECIFIED, and for a number that this version does not know."""
        return self._members.get(number)

    def member(self, number: int, field: str = "") -> E:
        """
        The member of a number, which is the value of *field* in a request.

        Raises:
            RequestInvalid: The value is UNSPECIFIED, or unknown to this version.
        """
        try:
            return self._members[number]
        except KeyError:
            raise RequestInvalid(field or self._prefix.lower(), f"{number} is not a value to send") from None
