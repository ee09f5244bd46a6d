"""Snapshots as messages, and what the store reads of their manifests."""

from collections.abc import Iterator

from pkger.stack.v1 import snapshot_pb2

from services.actions.snapshots import is_snapshot_id, read_manifest, snapshot_id
from services.core.errors import RequestInvalid, SnapshotCorrupt
from services.rpc.parts import pieces
from stack_svc.messages.fields import timestamp
from stack_svc.rules import sanitize
from stack_svc.rules.snapshots import NewSnapshot
from stack_svc.store.snapshots import StoredSnapshot


def new_snapshot(text: str) -> NewSnapshot:
    """
    Read what the store needs of the manifest of a snapshot.

    Raises:
        RequestInvalid: It is no manifest.
    """
    try:
        manifest = read_manifest(text)
    except SnapshotCorrupt as error:
        raise RequestInvalid("snapshots", f"is no manifest of a snapshot: {error.metadata['problem']}") from None
    digests, size = tuple(each.digest for each in manifest.contents), sum(each.bytes for each in manifest.contents)
    stack_name = sanitize.clean(manifest.stack.name) if manifest.stack else ""
    return NewSnapshot(snapshot_id(text), text, digests, stack_name, manifest.objects, size)


def checked_id(snapshot: str) -> str:
    """
    Accept the id of a snapshot.

    Raises:
        RequestInvalid: It is none.
    """
    if not is_snapshot_id(snapshot):
        raise RequestInvalid("id", "must be the id of a snapshot: `sha256:` and 64 hexadecimal digits")
    return snapshot


def snapshot_to_pb(snapshot: StoredSnapshot) -> snapshot_pb2.Snapshot:
    """Translate a snapshot without its contents."""
    return snapshot_pb2.Snapshot(
        id=snapshot.id,
        manifest_json=snapshot.manifest,
        action_set=snapshot.action_set,
        stack_name=snapshot.stack_name,
        object_count=snapshot.object_count,
        bytes=snapshot.bytes,
        create_time=timestamp(snapshot.create_time),
        delete_time=None if snapshot.delete_time is None else timestamp(snapshot.delete_time),
        deleted_by=snapshot.deleted_by,
    )


def content_parts(digest: str, text: str) -> Iterator[snapshot_pb2.SnapshotContent]:
    """Translate a content in parts; an empty one is one part."""
    for piece in pieces(text) if text else [""]:
        yield snapshot_pb2.SnapshotContent(digest=digest, text=piece)
