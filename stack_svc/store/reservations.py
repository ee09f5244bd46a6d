"""Reservations: the right of an action set to a stack, from its first phase to its end."""

from dataclasses import dataclass
from typing import Protocol

from stack_svc.store.stacks import StackName


@dataclass(frozen=True, slots=True)
class Reservation:
    """
    A stack that an action set has reserved.

    Attributes:
        named: The stack by its name.
        stack: Its id; empty if there was no such stack when it was reserved.
        operation: The operation of the action set.
        action_set: Name of the action set.
        since: When it was reserved, in microseconds since 1970.
    """

    named: StackName
    stack: str
    operation: str
    action_set: str
    since: int


class ReservationsReading(Protocol):
    """Read access to reservations."""

    def of(self, stack: str, named: StackName) -> Reservation | None:
        """
        Read the reservation of a stack by its id or its name; there is one at most.

        Args:
            stack: The id; empty for a stack that does not exist.
            named: The name; an empty one is no name.
        """

    def of_operation(self, operation: str) -> list[Reservation]:
        """Read the reservations of an operation, sorted by platform, organization and name."""


class Reservations(ReservationsReading, Protocol):
    """Read and write access to reservations. They are removed with their operation."""

    def insert(self, reservation: Reservation) -> bool:
        """Add a reservation; False: the stack is reserved, by its id or by its name."""

    def drop(self, operation: str) -> None:
        """Remove the reservations of an operation."""
