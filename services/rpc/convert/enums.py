"""Members of enums of the core as numbers of protobuf enums and back."""

from collections.abc import Iterable
from enum import Enum
from typing import Any, Generic, TypeVar

from services.core.errors import RequestInvalid

E = TypeVar("E", bound=Enum)


class Numbers(Generic[E]):
    """The members of an enum of the core beside the numbers of its protobuf twin, which has one more: UNSPECIFIED."""

    def __init__(self, enum: Iterable[E], twin: Any, prefix: str) -> None:
        self._prefix = prefix
        self._numbers = {member: twin.Value(f"{prefix}_{member.name}") for member in enum}
        self._members = {number: member for member, number in self._numbers.items()}

    def number(self, member: E) -> Any:
        """The number of a member."""
        return self._numbers[member]

    def find(self, number: int) -> E | None:
        """The member behind a number; None for UNSPECIFIED, and for one that this version does not know."""
        return self._members.get(number)

    def member(self, number: int, field: str = "") -> E:
        """
        The member behind a number, which stands in *field* of a request.

        Raises:
            RequestInvalid: The value is UNSPECIFIED, which nobody sends, or one that this version does not know.
        """
        try:
            return self._members[number]
        except KeyError:
            raise RequestInvalid(field or self._prefix.lower(), f"{number} is not a value to send") from None
