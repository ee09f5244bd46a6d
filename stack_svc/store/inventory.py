"""The inventories of stacks, as stored: maps from object keys to resources."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from services.core.model import InventoryEntry, Key, Target


@dataclass(frozen=True, slots=True)
class NamelessStack:
    """
    A stack without a name, and what it has in common with a package. Entries with a pending deletion do not count.

    Attributes:
        id: Its id.
        entry_count: Number of all its entries.
        entries: Its entries with keys of the package, sorted by key.
    """

    id: str
    entry_count: int
    entries: Sequence[InventoryEntry]


class InventoryReading(Protocol):
    """Read access to inventories."""

    def page(self, stack: str, after: Key, most: int) -> list[InventoryEntry]:
        """Read at most *most* entries of a stack after *after*, sorted by kind and name."""

    def of_nameless(self, target: Target, keys: Collection[Key]) -> list[NamelessStack]:
        """Read the active stacks of *target* without a name that have entries of *keys*, the newest first."""

    def entries(self, stack: str, keys: Collection[Key]) -> list[InventoryEntry]:
        """Read the existing entries of a stack for *keys*, in any order."""


class Inventory(InventoryReading, Protocol):
    """Read and write access to inventories."""

    def change(self, stack: str, target: Target, removed: Collection[Key], entries: Collection[InventoryEntry]) -> None:
        """Remove the entries of *removed*, then write *entries*; an entry that is overwritten keeps its baseline."""
