"""
The uses of items that other stacks own, as stored: recorded, or claimed by an operation (docs/reference/engine.md,
"Shared resources").
"""

from collections.abc import Collection, Mapping
from typing import Protocol

from services.core.model import Target
from stack_svc.store.owners import Owner


class UsesReading(Protocol):
    """Read access to uses."""

    def of(self, target: Target, whats: Collection[str]) -> list[Owner]:
        """Read the users of the items *whats*, sorted by item, then by time and by stack."""

    def of_stack(self, target: Target, stack: str) -> list[Owner]:
        """Read the users of the items that *stack* owns by its record, sorted as by ``of``."""


class Uses(UsesReading, Protocol):
    """Read and write access to uses."""

    def add(self, stack: str, target: Target, operation: str, items: Mapping[str, str], now: int) -> None:
        """
        Make a stack a user of items: for *operation*, or by its record when that is ``RECORDED``.

        A use that exists already keeps its time.

        Args:
            stack: Id of the stack.
            target: Target of the stack.
            operation: Name of its operation.
            items: The items, each with the name of the object that it is for.
            now: The time.
        """

    def remove(self, stack: str, target: Target, whats: Collection[str]) -> None:
        """Remove the recorded uses of the items *whats* by a stack."""

    def drop(self, stack: str, operation: str) -> None:
        """Remove all uses that *operation* claims for the stack."""
