"""Snapshots in the store: what action sets keep for others. They belong to no stack."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

SnapshotPlace = tuple[int, str]
"""Create time and id of a snapshot; the next page starts after it."""

START: SnapshotPlace = (2**63 - 1, "")
"""The place before the newest snapshot, where the first page starts."""


@dataclass(frozen=True, slots=True)
class StoredSnapshot:
    """
    A snapshot without its contents.

    Attributes:
        id: The digest of its manifest.
        manifest: Its manifest, as canonical JSON; empty in lists.
        operation: The operation of the action set that made it; empty once that was removed.
        action_set: Name of that action set; empty once that was removed.
        stack_name: Name of the stack that it is of; empty: of none.
        object_count: Number of objects in it.
        bytes: Size of its contents.
        create_time: In microseconds since 1970.
        delete_time: When it was deleted, in microseconds since 1970; None: it is not.
        deleted_by: Who deleted it; empty: nobody, or it is not known.
    """

    id: str
    manifest: str
    operation: str
    action_set: str
    stack_name: str
    object_count: int
    bytes: int
    create_time: int
    delete_time: int | None = None
    deleted_by: str = ""


class SnapshotsReading(Protocol):
    """Read access to snapshots. The *users* of a snapshot are the operations that made it or have it as input."""

    def find(self, snapshot: str) -> StoredSnapshot | None:
        """Read one snapshot, also a deleted one."""

    def is_used(self, snapshot: str) -> bool:
        """Return whether a user of a snapshot is unfinished."""

    def used_by(self, operation: str) -> list[StoredSnapshot]:
        """Read the snapshots that an operation uses, without manifests, sorted by id."""

    def made_by(self, operation: str) -> list[str]:
        """Return the ids of the snapshots that an operation made and that are not deleted, sorted."""

    def page(self, stack_name: str, after: SnapshotPlace, most: int) -> list[StoredSnapshot]:
        """
        Read at most *most* snapshots that are not deleted and follow *after*, newest first, without manifests.

        Args:
            stack_name: Only those of stacks with this name; empty for all.
            after: The last snapshot of the page before.
            most: Most of them.
        """


class Snapshots(SnapshotsReading, Protocol):
    """Read and write access to snapshots. Users are removed with their operation, the other rows as they say."""

    def insert(self, snapshot: StoredSnapshot, contents: Collection[str]) -> bool:
        """
        Add a snapshot and the digests of its contents; the operation that made it becomes its user.

        Returns:
            Whether there was none with its id.
        """

    def use(self, operation: str, snapshots: Collection[str]) -> list[str]:
        """
        Make an operation a user of snapshots.

        Returns:
            The ids of those that do not exist, or are deleted; if there are any, nothing was written.
        """

    def delete(self, snapshot: str, time: int, deleted_by: str) -> bool:
        """
        Mark a snapshot as deleted; its contents are removed unless a user is unfinished.

        Returns:
            Whether there was one that was not deleted.
        """

    def release(self, operation: str) -> None:
        """
        End the use of snapshots by an operation that is finished with this transaction, or removed by it.

        Of deleted snapshots without another unfinished user, the contents are removed; and those that nobody made any
        more are removed as a whole.
        """
