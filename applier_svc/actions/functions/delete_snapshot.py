"""DeleteSnapshot: deletes a snapshot for everyone who begins something with it."""

from collections.abc import Mapping
from typing import Any

from pkger.stack.v1 import snapshot_pb2
from pkger.stack.v1.snapshot_pb2_grpc import SnapshotServiceStub

from applier_svc.actions.call import Call
from services.core.errors import SnapshotNotFound


async def delete_snapshot(call: Call) -> Mapping[str, Any]:
    """
    Delete a snapshot; ``deleted`` is false if it was not there.

    A call that runs again after an interruption finds what the first one deleted, under the name of the action set.
    """
    store = call.services.stack
    stub, snapshot = SnapshotServiceStub(store.channel), call.arguments["snapshot"]
    delete = snapshot_pb2.DeleteSnapshotRequest(id=snapshot, author=call.action_set)
    try:
        is_deleted = (await store.call(stub.DeleteSnapshot, delete)).is_deleted
        if not is_deleted and call.was_cut_off:
            get = snapshot_pb2.GetSnapshotRequest(id=snapshot, without_contents=True)
            async for answer in store.stream(stub.GetSnapshot, get):
                is_deleted = answer.snapshot.deleted_by == call.action_set
    except SnapshotNotFound:
        is_deleted = False
    return {"deleted": is_deleted}
