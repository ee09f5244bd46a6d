"""
Who has what only one stack at a time may have, as the store keeps it: the one place of that rule
(docs/reference/engine.md I8).
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from services.core.model import Target

RECORDED = ""
"""In place of an operation: the stack has it for good, by its record."""


@dataclass(frozen=True, slots=True)
class Owner:
    """
    A stack that has something or, in ``stack_svc.store.uses``, that uses it.

    Attributes:
        what: What it has, as ``stack_svc.owners`` writes it.
        name: Name of the object that it is for; empty when no object is.
        stack: Id of the stack.
        stack_name: Its name; may be empty.
        operation: Name of the operation that claims it until its end; ``RECORDED`` for what is recorded.
        since: When it was taken, in microseconds since 1970.
    """

    what: str
    name: str
    stack: str
    stack_name: str
    operation: str
    since: int


class OwnersReading(Protocol):
    """Owners, read."""

    def of(self, target: Target, whats: Collection[str]) -> list[Owner]:
        """Tell who has which of *whats*, sorted by that; nothing of those that nobody has."""


class Owners(OwnersReading, Protocol):
    """Owners, read and written."""

    def take(self, stack: str, target: Target, operation: str, wanted: Mapping[str, str], now: int) -> list[Owner]:
        """
        Let a stack have something: for *operation*, or for good when that is ``RECORDED``.

        What the stack has already stays as it is when an operation asks, and is its own for good from now on when the
        record does.

        Args:
            stack: Id of the stack.
            target: Where it works.
            operation: Name of its operation.
            wanted: What it wants, with the name of the object that each is for.
            now: The time.

        Returns:
            Who is in the way, sorted by what they have: other stacks and, for the record, other objects of the same
            stack. If anybody is, nothing is written.
        """

    def give_back(self, stack: str, target: Target, whats: Collection[str]) -> None:
        """Let a stack no longer have *whats*, as far as it has them."""

    def drop(self, stack: str, operation: str) -> None:
        """Let a stack no longer have what *operation* claims."""
