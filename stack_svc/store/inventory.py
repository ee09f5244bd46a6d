"""The inventories of stacks, as stored: maps from object keys to resources."""

from collections.abc import Collection
from typing import Protocol

from services.core.model import InventoryEntry, Key, ResourceKey, Target


class InventoryReading(Protocol):
    """Read access to inventories."""

    def page(self, stack: str, after: Key, most: int) -> list[InventoryEntry]:
        """Read at most *most* entries of a stack after *after*, sorted by kind and name."""

    def of_nameless(
        self, target: Target, resources: Collection[ResourceKey], keys: Collection[Key]
    ) -> list[tuple[str, Key, str]]:
        """
        Read the entries of *resources* or *keys* that active stacks of *target* without a name own.

        Returns:
            Stack, key and resource id of each entry; entries of the newest stack first, then by key.
        """

    def entries(self, stack: str, keys: Collection[Key]) -> list[InventoryEntry]:
        """Read the existing entries of a stack for *keys*, in any order."""


class Inventory(InventoryReading, Protocol):
    """Read and write access to inventories."""

    def change(self, stack: str, target: Target, removed: Collection[Key], entries: Collection[InventoryEntry]) -> None:
        """Remove the entries of *removed*, then write *entries*; an entry that is overwritten keeps its baseline."""
