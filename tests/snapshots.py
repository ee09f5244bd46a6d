"""Snapshots of stacks, as a phase of an action set makes them."""

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from google.protobuf.duration_pb2 import Duration
from pkger.journal.v1 import action_set_pb2, journal_pb2, planning_pb2
from pkger.journal.v1.journal_pb2_grpc import JournalServiceStub
from pkger.journal.v1.planning_pb2_grpc import PlanningServiceStub
from pkger.model.v1 import operation_pb2, plan_pb2
from pkger.stack.v1 import snapshot_pb2
from pkger.stack.v1.snapshot_pb2_grpc import SnapshotServiceStub

from services.actions.snapshots import (
    PACKAGE,
    LeftOutObject,
    Manifest,
    SnapshotContent,
    SnapshotStack,
    manifest_text,
    snapshot_id,
)
from services.rpc.convert.objects import target_from_pb
from tests.cluster import Cluster, place


async def stored_export(services: Cluster, stack: str, org: str = "") -> planning_pb2.StoreExportResponse:
    """Store the export of a stack."""
    peer = services.peers["planner"]
    request = planning_pb2.StoreExportRequest(**place(services.target(org=org), stack))
    return await peer.call(PlanningServiceStub(peer.channel).StoreExport, request)


async def keep_snapshot(services: Cluster, exported: planning_pb2.StoreExportResponse) -> str:
    """Make a snapshot of a stored export, by an action set that ends; returns the id of the snapshot."""
    async with snapshot_in_use(services, exported) as snapshot:
        return snapshot


@asynccontextmanager
async def snapshot_in_use(services: Cluster, exported: planning_pb2.StoreExportResponse) -> AsyncIterator[str]:
    """As ``keep_snapshot``, by an action set that ends afterwards."""
    peer, operation = services.peers["stack"], secrets.token_hex(8)
    stub, text = JournalServiceStub(peer.channel), manifest_text(_manifest(operation, exported))
    begin = journal_pb2.BeginOperationRequest(
        target=exported.stack.target,
        operation_id=operation,
        kind=plan_pb2.OPERATION_KIND_ACTION,
        holder="tests",
        ttl=Duration(seconds=60),
    )
    [begun] = [each async for each in peer.stream(stub.BeginOperation, begin)]
    action_set = action_set_pb2.NewActionSet(name=f"backup-{operation}", pinned_json="{}", phase_count=1)
    event = operation_pb2.OperationEvent(operation_id=operation, seq=1)
    event.accepted.action_set = action_set.name
    write = journal_pb2.JournalWrite(position=2, snapshots=[text])
    advance = journal_pb2.AdvanceOperationRequest(
        operation_id=operation,
        token=begun.token,
        start=journal_pb2.Start(action_set=action_set, accepted=event),
        writes=[write],
    )
    await peer.call(stub.AdvanceOperation, advance)
    yield snapshot_id(text)
    finish = journal_pb2.FinishOperationRequest(
        operation_id=operation,
        token=begun.token,
        position=3,
        state=operation_pb2.OPERATION_STATE_SUCCEEDED,
        abandon=journal_pb2.Abandon(),
        finished=operation_pb2.OperationEvent(operation_id=operation, seq=2),
    )
    finish.finished.finished.state = finish.state
    await peer.call(stub.FinishOperation, finish)


async def delete_snapshot(services: Cluster, snapshot: str, author: str) -> None:
    """Delete a snapshot."""
    peer = services.peers["stack"]
    request = snapshot_pb2.DeleteSnapshotRequest(id=snapshot, author=author)
    await peer.call(SnapshotServiceStub(peer.channel).DeleteSnapshot, request)


def _manifest(operation: str, exported: planning_pb2.StoreExportResponse) -> Manifest:
    stack = exported.stack
    return Manifest(
        operation=operation,
        action="backup",
        index=0,
        phase="export",
        time="2026-01-01T00:00:00Z",
        media_type=PACKAGE,
        contents=(SnapshotContent(exported.package_digest, exported.bytes),),
        stack=SnapshotStack(
            stack.name, target_from_pb(stack.target), stack.generation, stack.description, tuple(stack.urls), {}
        ),
        objects=exported.object_count,
        secrets=tuple(exported.secret_keys),
        left_out=tuple(LeftOutObject(each.key.kind, each.key.name, each.problem) for each in exported.left_out),
    )
