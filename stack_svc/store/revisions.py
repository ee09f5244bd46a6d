"""The history of stacks, as stored."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from services.core.model import OperationKind
from services.packages.installed import PackageMove

NEWEST = 2**63 - 1
"""Higher than the number of every revision."""

START = ("", 0)
"""Before every revision of all stacks: id of a stack and number."""


@dataclass(frozen=True, slots=True)
class Revision:
    """
    The state of a stack after an operation that changed it.

    Attributes:
        number: From 1 on, within the stack; no number is used twice.
        kind: Kind of the operation.
        package_digest: Digest of its package; empty for an uninstall, which has none.
        sources: Names of the sources of the package.
        author: Name of the author of the operation, unverified.
        operation: Id of the operation, which may have been removed.
        leftover_count: Number of leftovers of the operation.
        rollback_of: The revision whose package it rolled back to; 0 when it was no rollback.
        create_time: When the operation ended, in microseconds since 1970.
        packages: The installed packages that the operation changed, sorted by name.
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
    packages: tuple[PackageMove, ...] = ()


class RevisionsReading(Protocol):
    """Read access to revisions."""

    def find(self, stack: str, number: int) -> Revision | None:
        """Read one revision of a stack."""

    def page(self, stack: str, before: int, most: int) -> list[Revision]:
        """Read at most *most* revisions of a stack with numbers below *before*, newest first."""

    def page_of_stacks(self, stacks: Collection[str], after: tuple[str, int], most: int) -> list[tuple[str, Revision]]:
        """
        Read at most *most* revisions of some stacks, sorted by id of the stack, newest first.

        They follow *after*, the stack and the number of the last revision of the page before.
        """

    def bounds(self, stack: str) -> tuple[int, int]:
        """Return the lowest and the highest number of the stored revisions of a stack; 0 and 0 when there are none."""


class Revisions(RevisionsReading, Protocol):
    """Read and write access to revisions."""

    def add(self, stack: str, revision: Revision) -> None:
        """Add a revision with a new number."""

    def prune(self, stack: str, oldest: int) -> None:
        """Remove the revisions of a stack with numbers below *oldest*."""
