"""The history of stacks, as the store keeps it."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from services.core.model import OperationKind

NEWEST = 2**63 - 1
"""Behind every revision, as the newest come first."""


START = ("", 0)
"""Before every revision of all stacks: an id of a stack and a number."""


@dataclass(frozen=True, slots=True)
class Revision:
    """
    What an operation that changed anything made of a stack.

    Attributes:
        number: From 1 on; each stack counts for itself, and no number is used twice.
        kind: What the operation was for.
        package_digest: Digest of its package; empty for an uninstall, which has none.
        sources: Names of the sources of the package.
        author: Who asked for it; nobody has verified that.
        operation: Name of the operation, which may be kept no longer.
        leftover_count: Number of things that the operation left to be done.
        rollback_of: The revision whose package it went back to; 0 for any other.
        create_time: When the operation ended, in microseconds since 1970.
    """

    number: int
    kind: OperationKind
    package_digest: str
    sources: tuple[str, ...]
    author: str
    operation: str
    leftover_count: int
    rollback_of: int
    create_time: int


class RevisionsReading(Protocol):
    """Revisions, read."""

    def find(self, stack: str, number: int) -> Revision | None:
        """Read one revision of a stack."""

    def page(self, stack: str, before: int, most: int) -> list[Revision]:
        """Read at most so many revisions of a stack with lower numbers than *before*, newest first."""

    def page_of_stacks(self, stacks: Collection[str], after: tuple[str, int], most: int) -> list[tuple[str, Revision]]:
        """
        Read at most so many revisions of some stacks, sorted by id of the stack, newest first.

        They are behind *after*, the stack and the number of the last one of the page before.
        """

    def bounds(self, stack: str) -> tuple[int, int]:
        """Tell the lowest and the highest number that a stack keeps; 0 and 0 when it keeps none."""


class Revisions(RevisionsReading, Protocol):
    """Revisions, read and written."""

    def add(self, stack: str, revision: Revision) -> None:
        """Add a revision with a new number."""

    def prune(self, stack: str, oldest: int) -> None:
        """Remove the revisions of a stack with lower numbers than *oldest*."""
