"""What stacks own, as the store keeps it: the map from object keys to resources."""

from collections.abc import Collection
from typing import Protocol

from services.core.model import InventoryEntry, Key, ResourceKey, Target


class InventoryReading(Protocol):
    """Inventories, read."""

    def page(self, stack: str, after: Key, most: int) -> list[InventoryEntry]:
        """Read at most so many entries of a stack behind *after*, sorted by kind and name."""

    def of_nameless(
        self, target: Target, resources: Collection[ResourceKey], keys: Collection[Key]
    ) -> list[tuple[str, Key, str]]:
        """
        Read what active stacks of *target* without a name own of *resources*, or have for *keys*.

        Returns:
            Stack, key and resource id of each; those of the newest stack first, then by key.
        """

    def entries(self, stack: str, keys: Collection[Key]) -> list[InventoryEntry]:
        """Read the entries of a stack for *keys*, as far as there are any, in any order."""


class Inventory(InventoryReading, Protocol):
    """Inventories, read and written."""

    def change(self, stack: str, target: Target, removed: Collection[Key], entries: Collection[InventoryEntry]) -> None:
        """Remove the entries of some keys, and then write *entries*; what else is kept of those of their keys stays."""
