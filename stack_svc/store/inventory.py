"""What stacks own, as the store keeps it: the map from object keys to resources."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from services.core.model import InventoryEntry, Key, Target

ResourceId = tuple[str, str]
"""Kind and id of a resource of a target."""


@dataclass(frozen=True, slots=True)
class Ownership:
    """A stack owns a resource for the object *key*."""

    stack: str
    stack_name: str
    key: Key
    resource_id: str


class InventoryReading(Protocol):
    """Inventories, read."""

    def page(self, stack: str, after: Key, most: int) -> list[InventoryEntry]:
        """Read at most so many entries of a stack behind *after*, sorted by kind and name."""

    def entries(self, stack: str, keys: Collection[Key]) -> list[InventoryEntry]:
        """Read the entries of a stack for *keys*, as far as there are any, in any order."""

    def owners(self, target: Target, resources: Collection[ResourceId]) -> list[Ownership]:
        """Tell who owns which of *resources*, sorted by kind and id; nothing for those without an owner."""


class Inventory(InventoryReading, Protocol):
    """Inventories, read and written."""

    def change(
        self, stack: str, target: Target, removed: Collection[Key], entries: Collection[InventoryEntry]
    ) -> list[Ownership]:
        """
        Remove the entries of some keys, and then write *entries*, which replace those of their keys.

        Returns:
            Who owns resources of *entries* already, for other objects. If anybody does, nothing is written.
        """
