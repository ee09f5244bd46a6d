"""Snapshots: what action sets keep in the store for others."""

from typing import NamedTuple

from services.core.errors import ArtifactGone, RequestInvalid, SnapshotNotFound
from stack_svc.rules import attachments, sanitize
from stack_svc.store.operations import Operation
from stack_svc.store.snapshots import StoredSnapshot
from stack_svc.store.store import ReadTransaction, Transaction


class NewSnapshot(NamedTuple):
    """
    A snapshot to be stored.

    Attributes:
        id: The digest of its manifest.
        manifest: Its manifest, as text.
        contents: The digests of its contents, in order.
        stack_name: Name of the stack that it is of; empty: of none.
        object_count: Number of objects in it.
        bytes: Size of its contents.
    """

    id: str
    manifest: str
    contents: tuple[str, ...]
    stack_name: str
    object_count: int
    bytes: int


def store(tx: Transaction, operation: Operation, snapshot: NewSnapshot, now: int) -> None:
    """
    Store a snapshot that an action set made; one that it stored before stays as it is.

    Raises:
        RequestInvalid: A content is not stored completely, or another action set made a snapshot with this manifest.
    """
    if lacking := tx.attachments.lacking(snapshot.contents):
        raise RequestInvalid("snapshots", f"the store has no attachment {lacking[0]}; send it first")
    stored = StoredSnapshot(
        snapshot.id,
        snapshot.manifest,
        operation.id,
        operation.action_set,
        snapshot.stack_name,
        snapshot.object_count,
        snapshot.bytes,
        now,
    )
    if tx.snapshots.insert(stored, snapshot.contents):
        return
    earlier = tx.snapshots.find(snapshot.id)
    if earlier is None or earlier.operation != operation.id:
        raise RequestInvalid("snapshots", f"another action set made snapshot {snapshot.id}; name this one in it")


def use(tx: Transaction, operation: Operation, snapshots: tuple[str, ...]) -> None:
    """
    Make an action set a user of *snapshots*.

    Raises:
        ArtifactGone: One of them is deleted, or does not exist.
    """
    if gone := tx.snapshots.use(operation.id, snapshots):
        deleted = tx.snapshots.find(gone[0])
        raise ArtifactGone("", gone[0], deleted.deleted_by if deleted else "")


def existing(reading: ReadTransaction, snapshot: str) -> StoredSnapshot:
    """
    Read a snapshot, which may be deleted.

    Raises:
        SnapshotNotFound: There is none.
    """
    stored = reading.snapshots.find(snapshot)
    if stored is None:
        raise SnapshotNotFound(snapshot)
    return stored


def readable(reading: ReadTransaction, snapshot: str) -> StoredSnapshot:
    """
    Read a snapshot whose contents are there: it is not deleted, or an unfinished action set uses it.

    Raises:
        SnapshotNotFound: There is none.
        ArtifactGone: It was deleted.
    """
    stored = existing(reading, snapshot)
    if stored.delete_time is not None and not reading.snapshots.is_used(snapshot):
        raise ArtifactGone("", snapshot, stored.deleted_by)
    return stored


def text_of(reading: ReadTransaction, digest: str) -> str:
    """The text of a content of a snapshot."""
    return attachments.text_of(reading, digest)


def delete(tx: Transaction, snapshot: str, author: str) -> bool:
    """
    Delete a snapshot for everyone who begins something with it.

    Returns:
        Whether it was not deleted before.

    Raises:
        RequestInvalid: *author* is not valid.
        SnapshotNotFound: There is no such snapshot.
    """
    author = sanitize.checked_author(author)
    if tx.snapshots.find(snapshot) is None:
        raise SnapshotNotFound(snapshot)
    return tx.snapshots.delete(snapshot, tx.now(), author)
