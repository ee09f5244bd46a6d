"""
The stored owners of items that at most one stack may own. Only this table enforces that rule (docs/reference/engine.md,
"Invariants").
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from services.core.model import Target

RECORDED = ""
"""Stands in place of an operation: the record of the stack contains the item, so no end of an operation releases it."""


@dataclass(frozen=True, slots=True)
class Owner:
    """
    A stack that owns an item or, in ``stack_svc.store.uses``, uses it.

    Attributes:
        what: The item, as text made by ``stack_svc.rules.owners.text_of`` or ``removal_of``.
        name: Name of the object that the item is for; empty when it is for none.
        stack: Id of the stack.
        stack_name: Its name; may be empty.
        operation: Id of the operation that claims the item until its end; ``RECORDED`` for an item of the record.
        since: Time at which the stack took it, in microseconds since 1970.
    """

    what: str
    name: str
    stack: str
    stack_name: str
    operation: str
    since: int


class OwnersReading(Protocol):
    """Read access to owners."""

    def of(self, target: Target, whats: Collection[str]) -> list[Owner]:
        """Read the owners of the items *whats*, sorted by item; items without an owner are left out."""


class Owners(OwnersReading, Protocol):
    """Read and write access to owners."""

    def take(self, stack: str, target: Target, operation: str, items: Mapping[str, str], now: int) -> list[Owner]:
        """
        Make a stack the owner of items: for *operation*, or by its record when that is ``RECORDED``.

        An item that the stack owns already stays as it is when an operation claims it, and becomes recorded when the
        record takes it.

        Args:
            stack: Id of the stack.
            target: Target of the stack.
            operation: Name of its operation.
            items: The items, each with the name of the object that it is for.
            now: The time.

        Returns:
            The conflicting owners, sorted by item: other stacks and, for the record, other objects of the same stack.
            If there is any, nothing is written.
        """

    def release(self, stack: str, target: Target, whats: Collection[str]) -> None:
        """Release the items *whats*, as far as the stack owns them."""

    def drop(self, stack: str, operation: str) -> None:
        """Release all items that *operation* claims for the stack."""
