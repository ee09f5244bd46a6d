"""Reads snapshots from the stack service, and checks that they are as they were stored."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from pkger.stack.v1 import snapshot_pb2
from pkger.stack.v1.snapshot_pb2_grpc import SnapshotServiceStub

from services.actions.snapshots import Manifest, read_manifest
from services.core.errors import SnapshotCorrupt
from services.kinds.attachment import text_digest
from services.rpc.client import Peer


@dataclass(frozen=True, slots=True)
class VerifiedSnapshot:
    """
    A snapshot whose manifest and contents have their digests.

    Attributes:
        message: The snapshot.
        manifest: What it is.
        contents: The texts of its contents by their digests.
        part_count: Number of the parts in which they came.
    """

    message: snapshot_pb2.Snapshot
    manifest: Manifest
    contents: Mapping[str, str]
    part_count: int

    @property
    def size(self) -> int:
        """Bytes of its contents."""
        return sum(len(text.encode()) for text in self.contents.values())


async def read_snapshot(stack: Peer, snapshot_id: str) -> VerifiedSnapshot:
    """
    Read a snapshot, and check everything in it.

    Raises:
        SnapshotNotFound: There is none of that id.
        SnapshotCorrupt: A content does not have its digest, or the manifest has an unknown format.
    """
    snapshot, texts = snapshot_pb2.Snapshot(), dict[str, list[str]]()
    request = snapshot_pb2.GetSnapshotRequest(id=snapshot_id)
    async for answer in stack.stream(SnapshotServiceStub(stack.channel).GetSnapshot, request):
        if answer.HasField("snapshot"):
            snapshot = answer.snapshot
        else:
            texts.setdefault(answer.content.digest, []).append(answer.content.text)
    # In a thread, as the digests of large contents take long.
    return await asyncio.to_thread(_verified, snapshot_id, snapshot, texts)


def _verified(snapshot_id: str, snapshot: snapshot_pb2.Snapshot, texts: Mapping[str, list[str]]) -> VerifiedSnapshot:
    if text_digest(snapshot.manifest_json) != snapshot_id:
        raise SnapshotCorrupt(snapshot_id, "its manifest does not have its digest")
    manifest = read_manifest(snapshot.manifest_json)
    contents = {digest: "".join(parts) for digest, parts in texts.items()}
    for content in manifest.contents:
        if content.digest not in contents:
            raise SnapshotCorrupt(snapshot_id, f"its content {content.digest} is not there")
        if text_digest(contents[content.digest]) != content.digest:
            raise SnapshotCorrupt(snapshot_id, f"its content does not have the digest {content.digest}")
    return VerifiedSnapshot(snapshot, manifest, contents, sum(map(len, texts.values())))
