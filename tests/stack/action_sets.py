"""Action sets and snapshots of a stack service, as an applier writes them."""

import secrets
from collections.abc import Iterable, Mapping
from typing import Any

from pkger.journal.v1 import action_set_pb2, journal_pb2
from pkger.model.v1 import action_pb2, operation_pb2
from pkger.model.v1.object_pb2 import StackRef
from pkger.model.v1.operation_pb2 import OPERATION_STATE_SUCCEEDED, OperationEvent, OperationState
from pkger.model.v1.plan_pb2 import OPERATION_KIND_ACTION, OPERATION_KIND_APPLY
from pkger.stack.v1 import snapshot_pb2
from pkger.stack.v1.snapshot_pb2_grpc import SnapshotServiceStub

from services.actions.snapshots import PACKAGE, Manifest, SnapshotContent, SnapshotStack, manifest_text
from services.core import model
from services.kinds.attachment import compressed, text_digest
from services.rpc.convert.objects import target_to_pb
from tests.stack.service import HERE, Begun, Client, duration, request_key, write_request

RUNNING = action_pb2.PHASE_STATE_RUNNING
COMPLETE = action_pb2.PHASE_STATE_COMPLETE


def named(name: str, target: model.Target = HERE) -> StackRef:
    """A stack by its name."""
    return StackRef(target=target_to_pb(target), name=name)


def new_action_set(
    name: str,
    reserved: Iterable[str] = (),
    snapshots: Iterable[str] = (),
    labels: Mapping[str, str] | None = None,
    **fields: Any,
) -> action_set_pb2.NewActionSet:
    """An action set of three phases that reserves stacks here."""
    return action_set_pb2.NewActionSet(
        name=name,
        pinned_json='{"name":"x"}',
        phase_count=3,
        reserved=map(named, reserved),
        snapshots=snapshots,
        labels=labels or {},
        **fields,
    )


async def begin(service: Client, operation: str = "", request_id: str = "", seconds: float = 30) -> Begun:
    """Begin the operation of an action set, without starting it."""
    operation = operation or secrets.token_hex(8)
    request = journal_pb2.BeginOperationRequest(
        target=target_to_pb(HERE),
        operation_id=operation,
        kind=OPERATION_KIND_ACTION,
        holder="applier-1",
        ttl=duration(seconds),
        request=request_key(request_id, "digest"),
    )
    answer = await service.begin_answer(request)
    return Begun(answer.operation.id, answer.stack, answer.token, answer.expire_time, answer.is_pending)


def start_request(run: Begun, action_set: action_set_pb2.NewActionSet) -> journal_pb2.AdvanceOperationRequest:
    """The start of an operation with an action set."""
    accepted = operation_pb2.Accepted(action_set=action_set.name)
    start = journal_pb2.Start(
        action_set=action_set, accepted=OperationEvent(operation_id=run.operation, seq=1, accepted=accepted)
    )
    return journal_pb2.AdvanceOperationRequest(operation_id=run.operation, token=run.token, start=start)


async def start(service: Client, run: Begun, action_set: action_set_pb2.NewActionSet) -> None:
    """Give an operation its action set."""
    await service.peer.call(service.journal.AdvanceOperation, start_request(run, action_set))
    run.position = run.last_seq = 1


async def create(service: Client, name: str, *, reserve: bool = False, **fields: Any) -> Begun:
    """Create an action set; with *reserve*, its stacks are reserved at once."""
    run = await begin(service)
    await start(service, run, new_action_set(name, **fields))
    if reserve:
        assert not (await write(service, run, reserve=True)).HasField("reserved_by")
    return run


def phase(index: int, state: action_pb2.PhaseState.ValueType = RUNNING, **fields: Any) -> action_set_pb2.PhaseRecord:
    """A record of a phase of the first action."""
    return action_set_pb2.PhaseRecord(action=0, index=index, state=state, attempt=1, try_number=1, **fields)


async def write(
    service: Client,
    run: Begun,
    *phases: action_set_pb2.PhaseRecord,
    snapshots: Iterable[str] = (),
    done_count: int = 0,
    position: int = 0,
    **action: Any,
) -> journal_pb2.AdvanceOperationResponse:
    """Write to the journal of an action set, after its last write unless *position* is given."""
    records = action_set_pb2.ActionRecords(phases=phases, **action)
    position = position or run.position + 1
    request = write_request(run, position=position, action=records, snapshots=snapshots, done_count=done_count)
    answer = await service.peer.call(service.journal.AdvanceOperation, request)
    if not answer.HasField("reserved_by"):
        run.position = max(run.position, position)
    return answer


async def finish(
    service: Client, run: Begun, state: OperationState.ValueType = OPERATION_STATE_SUCCEEDED, cause: str = ""
) -> None:
    """End an action set."""
    await service.finish(run, state, cause=cause, abandon=journal_pb2.Abandon())


def child_request(
    run: Begun, stack: StackRef, new_stack: journal_pb2.NewStack | None = None
) -> journal_pb2.BeginOperationRequest:
    """An operation that a phase of an action set begins on a stack, which is created if it is missing."""
    return journal_pb2.BeginOperationRequest(
        stack=stack,
        create_missing=True,
        operation_id=f"operation-{secrets.token_hex(8)}",
        kind=OPERATION_KIND_APPLY,
        holder="applier-1",
        ttl=duration(30),
        parent=journal_pb2.Parent(operation_id=run.operation, token=run.token),
        new_stack=new_stack,
    )


async def begin_child(service: Client, run: Begun, stack: StackRef, **fields: Any) -> Begun:
    """Begin an operation of a phase."""
    answer = await service.begin_answer(child_request(run, stack, **fields))
    return Begun(answer.operation.id, answer.stack, answer.token, answer.expire_time, answer.is_pending)


def manifest(stack: str, *contents: str, phase: str = "export") -> str:
    """The manifest of a snapshot of a stack; an empty name: of none."""
    listed = tuple(SnapshotContent(text_digest(text), len(text.encode())) for text in contents)
    of_stack = SnapshotStack(stack, HERE, 3, "", (), {}) if stack else None
    return manifest_text(
        Manifest("operation", "backup", 0, phase, "2026-01-01T00:00:00Z", PACKAGE, listed, of_stack, 2, (), ())
    )


async def store_text(service: Client, text: str) -> None:
    """Store a text as an attachment."""
    request = journal_pb2.StoreAttachmentRequest(digest=text_digest(text), body=compressed(text), number=0, count=1)
    await service.peer.call(service.journal.StoreAttachment, request)


async def make_snapshot(service: Client, run: Begun, stack: str, *contents: str, phase_name: str = "export") -> str:
    """Store contents, and with a write of the journal a snapshot that names them; returns its id."""
    for text in contents:
        await store_text(service, text)
    made = manifest(stack, *contents, phase=phase_name)
    await write(service, run, phase(0), snapshots=[made])
    return text_digest(made)


async def get_snapshot(
    service: Client, snapshot: str, without_contents: bool = False
) -> list[snapshot_pb2.GetSnapshotResponse]:
    """All parts of a snapshot."""
    request = snapshot_pb2.GetSnapshotRequest(id=snapshot, without_contents=without_contents)
    stub = SnapshotServiceStub(service.peer.channel)
    return [part async for part in service.peer.stream(stub.GetSnapshot, request)]


async def delete_snapshot(service: Client, snapshot: str, author: str = "") -> bool:
    """Delete a snapshot; whether it was not deleted before."""
    request = snapshot_pb2.DeleteSnapshotRequest(id=snapshot, author=author)
    return (await service.peer.call(SnapshotServiceStub(service.peer.channel).DeleteSnapshot, request)).is_deleted
