"""The definitions of a store, from which action sets are made."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class StoredDefinition:
    """
    A definition, as stored.

    Attributes:
        kind: Its kind, such as ``Blueprint``.
        name: Its name, unique among its kind.
        description: What it is for.
        etag: The digest of its body.
        body: The definition as canonical JSON; empty in lists.
        create_time: In microseconds since 1970.
        update_time: When its body last changed, in microseconds since 1970.
    """

    kind: str
    name: str
    description: str
    etag: str
    body: str
    create_time: int
    update_time: int


DefinitionPlace = tuple[str, str]
"""The kind and the name of a definition: lists are sorted by them."""

START: DefinitionPlace = ("", "")
"""Before every definition."""


class DefinitionsReading(Protocol):
    """Read access to definitions."""

    def find(self, kind: str, name: str) -> StoredDefinition | None:
        """Read one definition, with its body."""

    def page(self, kind: str, after: DefinitionPlace, most: int) -> list[StoredDefinition]:
        """Read at most *most* definitions after *after*, in their order, without bodies; *kind* may be empty: all."""


class Definitions(DefinitionsReading, Protocol):
    """Read and write access to definitions."""

    def insert(self, definition: StoredDefinition) -> bool:
        """Add a definition; False: there is one of its kind and name."""

    def replace(self, definition: StoredDefinition, etag: str) -> bool:
        """
        Replace the definition of that kind and name; its ``create_time`` stays, its ``update_time`` is never earlier
        than before.

        Args:
            definition: The new one.
            etag: The etag of the one that is replaced.

        Returns:
            Whether there was one with that etag.
        """

    def delete(self, kind: str, name: str) -> bool:
        """Remove a definition; False: there is none."""
