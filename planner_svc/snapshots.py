"""The package of a snapshot of a stack: what a plan of the snapshot desires."""

import asyncio

from planner_svc.stored_package import StoredPackage
from services.actions.snapshots import PACKAGE, is_snapshot_id
from services.core.errors import ArtifactGone, RequestInvalid
from services.core.model import Key
from services.packages.package_text import read_package
from services.rpc.client import Peer
from services.rpc.convert.objects import objects_to_pb
from services.rpc.snapshot_reading import VerifiedSnapshot, read_snapshot


async def snapshot_package(stack: Peer, snapshot_id: str, *, is_in_use: bool) -> StoredPackage:
    """
    Read the package of a snapshot; what the snapshot left out is untouched.

    Args:
        stack: The stack service.
        snapshot_id: Its id.
        is_in_use: Whether it is for an operation that began before the snapshot may have been deleted.

    Raises:
        SnapshotNotFound: There is no such snapshot.
        ArtifactGone: It was deleted.
        SnapshotCorrupt: It has another content than its id says, or an unknown format.
        RequestInvalid: It is no id of a snapshot, or the snapshot is not of a stack.
    """
    if not is_snapshot_id(snapshot_id):
        problem = f"{snapshot_id[:80]!r} is no id of a snapshot, which is sha256: and 64 hexadecimal digits"
        raise RequestInvalid("snapshot", problem)
    snapshot = await read_snapshot(stack, snapshot_id)
    if snapshot.message.HasField("delete_time") and not is_in_use:
        raise ArtifactGone("", snapshot_id, snapshot.message.deleted_by)
    return await asyncio.to_thread(package_of, snapshot)


def package_of(snapshot: VerifiedSnapshot) -> StoredPackage:
    """
    The package of a snapshot; its source is named after the snapshot.

    Raises:
        RequestInvalid: It is not of a stack.
    """
    snapshot_id, manifest = snapshot.message.id, snapshot.manifest
    if manifest.media_type != PACKAGE:
        problem = f"{snapshot_id} has contents of type {manifest.media_type[:80]!r}; name a snapshot of a stack"
        raise RequestInvalid("snapshot", problem)
    package = read_package("".join(snapshot.contents[content.digest] for content in manifest.contents))
    left_out = frozenset(Key(each.kind, each.name) for each in manifest.left_out)
    return StoredPackage(
        (f"snapshot {snapshot_id}",),
        list(objects_to_pb(package.objects).objects),
        package.untouched | left_out,
        has_package=True,
        lifecycles=package.lifecycles,
    )
