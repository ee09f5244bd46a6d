"""SnapshotService on the wire: it translates and delegates, each call one transaction."""

from collections.abc import AsyncIterator

from pkger.stack.v1 import snapshot_pb2, snapshot_pb2_grpc

from services.actions.snapshots import read_manifest
from services.rpc import page_tokens
from stack_svc.messages import snapshots as messages
from stack_svc.rules import sanitize, snapshots
from stack_svc.store.snapshots import START, StoredSnapshot
from stack_svc.store.store import ReadTransaction, Store


class SnapshotServicer(snapshot_pb2_grpc.SnapshotServiceServicer):
    """SnapshotService: what action sets keep for others."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def GetSnapshot(
        self, request: snapshot_pb2.GetSnapshotRequest, context: object
    ) -> AsyncIterator[snapshot_pb2.GetSnapshotResponse]:
        """Read a snapshot, then its contents in parts."""
        snapshot_id, with_contents = messages.checked_id(request.id), not request.without_contents
        snapshot, contents = await self._store.read(lambda tx: _with_contents(tx, snapshot_id, with_contents))
        yield snapshot_pb2.GetSnapshotResponse(snapshot=messages.snapshot_to_pb(snapshot))
        for digest, text in contents:
            for part in messages.content_parts(digest, text):
                yield snapshot_pb2.GetSnapshotResponse(content=part)

    async def ListSnapshots(
        self, request: snapshot_pb2.ListSnapshotsRequest, context: object
    ) -> snapshot_pb2.ListSnapshotsResponse:
        """Read one page of snapshots."""
        after, size = page_tokens.place_of(request.page_token, START), page_tokens.size_of(request.page_size, 50, 500)
        stack_name = sanitize.clean(request.stack_name)
        listed = await self._store.read(lambda tx: tx.snapshots.page(stack_name, after, size + 1))
        page, token = page_tokens.page_of(
            listed, size, messages.snapshot_to_pb, lambda each: (each.create_time, each.id)
        )
        return snapshot_pb2.ListSnapshotsResponse(snapshots=page, next_page_token=token)

    async def DeleteSnapshot(
        self, request: snapshot_pb2.DeleteSnapshotRequest, context: object
    ) -> snapshot_pb2.DeleteSnapshotResponse:
        """Delete a snapshot."""
        snapshot_id = messages.checked_id(request.id)
        is_deleted = await self._store.write(lambda tx: snapshots.delete(tx, snapshot_id, request.author))
        return snapshot_pb2.DeleteSnapshotResponse(is_deleted=is_deleted)


def _with_contents(
    reading: ReadTransaction, snapshot_id: str, with_contents: bool
) -> tuple[StoredSnapshot, list[tuple[str, str]]]:
    """A snapshot, and if *with_contents* the digests and texts of its contents, in the order of its manifest."""
    if not with_contents:
        return snapshots.existing(reading, snapshot_id), []
    snapshot = snapshots.readable(reading, snapshot_id)
    digests = [content.digest for content in read_manifest(snapshot.manifest).contents]
    return snapshot, [(digest, snapshots.text_of(reading, digest)) for digest in digests]
