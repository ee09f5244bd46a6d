"""
Who uses what another stack owns, as the store keeps it: recorded, or claimed by an operation (docs/reference/engine.md,
"Shared resources").
"""

from collections.abc import Collection, Mapping
from typing import Protocol

from services.core.model import Target
from stack_svc.store.owners import Owner


class UsesReading(Protocol):
    """Uses, read."""

    def of(self, target: Target, whats: Collection[str]) -> list[Owner]:
        """Tell who uses which of *whats*, sorted by that, then by since when and by stack."""

    def of_stack(self, target: Target, stack: str) -> list[Owner]:
        """Tell who uses what *stack* owns by its record, sorted as by ``of``."""


class Uses(UsesReading, Protocol):
    """Uses, read and written."""

    def add(self, stack: str, target: Target, operation: str, wanted: Mapping[str, str], now: int) -> None:
        """
        Let a stack use something: for *operation*, or by its record when that is ``RECORDED``.

        What it uses so already stays as it is.

        Args:
            stack: Id of the stack.
            target: Where it works.
            operation: Name of its operation.
            wanted: What it uses, with the name of the object that each is for.
            now: The time.
        """

    def give_back(self, stack: str, target: Target, whats: Collection[str]) -> None:
        """Let a stack no longer use *whats* by its record, as far as it does."""

    def drop(self, stack: str, operation: str) -> None:
        """Let a stack no longer use what *operation* claims to."""
