"""A stack service as its callers see it, with a clock that the test sets."""

import secrets
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from pkger.journal.v1 import journal_pb2
from pkger.journal.v1.journal_pb2_grpc import JournalServiceStub
from pkger.model.v1 import operation_pb2, plan_pb2
from pkger.model.v1.object_pb2 import ResourceId, StackRef, Target
from pkger.model.v1.operation_pb2 import (
    OPERATION_STATE_FAILED,
    OPERATION_STATE_ROLLED_BACK,
    OPERATION_STATE_SUCCEEDED,
    OperationEvent,
    OperationState,
)
from pkger.model.v1.plan_pb2 import OPERATION_KIND_APPLY, OperationKind, Plan, PlanPart, PlanView
from pkger.stack.v1 import stack_pb2
from pkger.stack.v1.stack_pb2 import Stack
from pkger.stack.v1.stack_pb2_grpc import StackServiceStub

from services.core import model
from services.core.errors import StackNotFound
from services.rpc.channel import Connect, grpc_channel
from services.rpc.claim_parts import joined_claim
from services.rpc.client import Peer
from services.rpc.convert.objects import entries_from_pb, target_to_pb
from services.rpc.convert.plans import record_changes_to_pb
from services.rpc.plan_parts import BODY, inflated, stored_part
from services.rpc.process import Service
from services.system import MachineIds
from services.times import Times
from stack_svc.notify import Watchers
from stack_svc.servicer import SERVICES, registrations
from stack_svc.sqlite.store import SqliteStore
from stack_svc.store.store import RetentionLimits, Store, Swept
from tests.databases import copy_database
from tests.transport import InMemory, Transport, transport_of_loop

HERE = model.Target()
ELSEWHERE = model.Target(org="another")


@dataclass
class Clock:
    """A clock that moves only when the test sets it; in microseconds."""

    now: int = 1_700_000_000_000_000

    def __call__(self) -> int:
        return self.now

    def forward(self, seconds: float) -> None:
        """Move the clock forward; a negative number sets it back."""
        self.now += int(seconds * 1_000_000)


@dataclass
class Begun:
    """
    An operation, as its applier knows it.

    Attributes:
        operation: Its name.
        stack: The stack as it was when the operation began.
        token: Fencing token of the lease.
        expire_time: When the lease ends.
        is_pending: Whether the stack is removed unless the operation succeeds.
        last_seq: Seq of its last event; 0: it did not start.
        position: Position of its last write; 0: it did not start.
    """

    operation: str
    stack: Stack
    token: int
    expire_time: Timestamp
    is_pending: bool
    last_seq: int = 0
    position: int = 0

    def next_event(self, **content: object) -> OperationEvent:
        """The event after the last one; ``last_seq`` does not change."""
        return OperationEvent(operation_id=self.operation, seq=self.last_seq + 1, **content)  # type: ignore[arg-type]


@dataclass
class Client:
    """
    Calls one stack service.

    Attributes:
        address: Address of the service.
        store: The store of the service, if it runs in this process.
        connect: Makes the channel.
    """

    address: str
    store: Store | None = None
    connect: Connect = grpc_channel
    peer: Peer = field(init=False)

    def __post_init__(self) -> None:
        self.peer = Peer("stack", self.address, connect=self.connect)
        self.stacks = StackServiceStub(self.peer.channel)
        self.journal = JournalServiceStub(self.peer.channel)

    async def sweep(self, operations: int = 1000) -> Swept:
        """Sweep; *operations* finished operations are retained."""
        assert self.store
        return await self.store.sweep(RetentionLimits(operations))

    async def create(
        self,
        name: str,
        target: model.Target = HERE,
        description: str = "",
        request_id: str = "",
        urls: Iterable[str] = (),
    ) -> Stack:
        request = stack_pb2.CreateStackRequest(
            request_id=request_id, target=target_to_pb(target), name=name, description=description, urls=urls
        )
        return (await self.peer.call(self.stacks.CreateStack, request)).stack

    async def update(
        self,
        stack_id: str,
        name: str | None = None,
        description: str | None = None,
        urls: Iterable[str] | None = None,
        etag: str = "",
        request_id: str = "",
        stack: StackRef | None = None,
    ) -> Stack:
        request = stack_pb2.UpdateStackRequest(
            request_id=request_id,
            stack=stack or StackRef(id=stack_id),
            etag=etag,
            name=name,
            description=description,
            urls=None if urls is None else stack_pb2.StackUrls(urls=urls),
        )
        return (await self.peer.call(self.stacks.UpdateStack, request)).stack

    async def get(self, stack_id: str) -> Stack:
        request = stack_pb2.GetStackRequest(stack=StackRef(id=stack_id))
        return (await self.peer.call(self.stacks.GetStack, request)).stack

    async def get_named(self, name: str, target: model.Target = HERE) -> Stack:
        request = stack_pb2.GetStackRequest(stack=StackRef(target=target_to_pb(target), name=name))
        return (await self.peer.call(self.stacks.GetStack, request)).stack

    async def resources_page(
        self, stack_id: str = "", name: str = "", page_size: int = 0, page_token: str = ""
    ) -> stack_pb2.ListResourcesResponse:
        stack = StackRef(id=stack_id) if stack_id else StackRef(name=name)
        request = stack_pb2.ListResourcesRequest(stack=stack, page_size=page_size, page_token=page_token)
        return await self.peer.call(self.stacks.ListResources, request)

    async def resources(self, stack_id: str) -> tuple[model.InventoryEntry, ...]:
        """The inventory of a stack."""
        pages = [await self.resources_page(stack_id)]
        while token := pages[-1].next_page_token:
            pages.append(await self.resources_page(stack_id, page_token=token))
        return tuple(entry for page in pages for entry in entries_from_pb(page.resources))

    async def page(
        self,
        target: Target | None = None,
        page_size: int = 0,
        page_token: str = "",
        ids: Iterable[str] = (),
        names: Iterable[str] = (),
        glob: str = "",
    ) -> stack_pb2.ListStacksResponse:
        request = stack_pb2.ListStacksRequest(
            target=target, page_size=page_size, page_token=page_token, stack_ids=ids, names=names, name_glob=glob
        )
        return await self.peer.call(self.stacks.ListStacks, request)

    async def names(self) -> list[str]:
        return [stack.name for stack in (await self.page()).stacks]

    async def delete(self, stack_id: str) -> None:
        await self.peer.call(self.stacks.DeleteStack, stack_pb2.DeleteStackRequest(stack=StackRef(id=stack_id)))

    async def owners(
        self, resources: Iterable[tuple[str, str]], target: model.Target = HERE
    ) -> list[tuple[str, str, str, str, str]]:
        """Kind, id, stack id, stack name and object name of each resource that has an owner."""
        refs = [ResourceId(kind=kind, id=resource_id) for kind, resource_id in resources]
        request = stack_pb2.FindOwnersRequest(target=target_to_pb(target), resources=refs)
        answer = await self.peer.call(self.stacks.FindOwners, request)
        return [
            (owner.resource.kind, owner.resource.id, owner.stack_id, owner.stack_name, owner.key.name)
            for owner in answer.owners
        ]

    async def store_plan(
        self, plan: journal_pb2.NewPlan, request_id: str = "", request_digest: str = "", operation: str = ""
    ) -> journal_pb2.StorePlanResponse:
        """Store a plan: for clients, or for an operation."""
        key = request_key(request_id, request_digest)
        request = journal_pb2.StorePlanRequest(plan=plan, request=key, operation_id=operation)
        return await self.peer.call(self.journal.StorePlan, request)

    async def plan_for(self, begun: Begun, steps: int, content: bytes = b"") -> None:
        """Store a plan of *steps* steps and with *content* for an operation."""
        plan = a_plan(steps, begun.operation)
        plan.parts.add(view=plan_pb2.PLAN_VIEW_DIFFS, part=content)
        await self.store_plan(plan, operation=begun.operation)

    async def read_plan(self, name: str) -> tuple[Plan, bytes]:
        """Header and body of a plan, as an applier reads them."""
        header, body = Plan(), b""
        request = journal_pb2.ReadPlanRequest(plan_id=name)
        async for part in self.peer.stream(self.journal.ReadPlan, request):
            header.MergeFrom(part.plan)
            body += part.body
        return header, body

    async def find_plan(self, request_id: str, request_digest: str) -> str:
        request = journal_pb2.FindPlanRequest(request=request_key(request_id, request_digest))
        return (await self.peer.call(self.journal.FindPlan, request)).plan_id

    async def parts(self, name: str, *views: PlanView.ValueType) -> list[PlanPart]:
        """All parts of a stored plan."""
        stream = self.peer.stream(self.stacks.GetPlan, stack_pb2.GetPlanRequest(plan_id=name, view=views))
        return [answer.part async for answer in stream]

    async def plan(self, name: str) -> Plan:
        """The header of a stored plan."""
        return (await self.parts(name))[0].header

    async def delete_plan(self, name: str) -> None:
        """Delete a stored plan."""
        await self.peer.call(self.stacks.DeletePlan, stack_pb2.DeletePlanRequest(plan_id=name))

    async def plans(
        self, target: Target | None = None, stack_name: str = "", page_size: int = 0, page_token: str = ""
    ) -> stack_pb2.ListPlansResponse:
        request = stack_pb2.ListPlansRequest(
            target=target, stack_name=stack_name, page_size=page_size, page_token=page_token
        )
        return await self.peer.call(self.stacks.ListPlans, request)

    async def begin(
        self,
        name: str = "",
        stack_id: str = "",
        none: model.Target | None = None,
        target: model.Target = HERE,
        create_missing: bool = True,
        operation: str = "",
        holder: str = "applier-1",
        seconds: float = 30,
        steps: int | None = 3,
        request_id: str = "",
        request_digest: str = "",
    ) -> Begun:
        """Begin an operation and start it with a plan of *steps* steps; None: do not start it."""
        operation = operation or f"operation-{secrets.token_hex(8)}"
        request = journal_pb2.BeginOperationRequest(
            stack=StackRef(id=stack_id) if stack_id else StackRef(target=target_to_pb(target), name=name),
            create_missing=create_missing,
            operation_id=operation,
            kind=OPERATION_KIND_APPLY,
            holder=holder,
            ttl=duration(seconds),
            request=request_key(request_id, request_digest),
        )
        if none:
            request.target.CopyFrom(target_to_pb(none))
        answer = await self.begin_answer(request)
        begun = Begun(operation, answer.stack, answer.token, answer.expire_time, answer.is_pending)
        if steps is not None:
            await self.start(begun, steps)
        return begun

    async def begin_planned(
        self, plan: str, operation: str = "", seconds: float = 30
    ) -> journal_pb2.BeginOperationResponse:
        """Begin an operation that is to run a stored plan."""
        request = journal_pb2.BeginOperationRequest(
            plan_id=plan,
            operation_id=operation or f"operation-{secrets.token_hex(8)}",
            holder="applier-1",
            ttl=duration(seconds),
        )
        return await self.begin_answer(request)

    async def begin_answer(self, request: journal_pb2.BeginOperationRequest) -> journal_pb2.BeginOperationResponse:
        """The response to *request*, joined."""
        parts = [part async for part in self.peer.stream(self.journal.BeginOperation, request)]
        parts[0].plan_body = b"".join(part.plan_body for part in parts)
        return parts[0]

    async def start(self, begun: Begun, steps: int = 3, plan: str = "", content: bytes = b"") -> None:
        """Start an operation: with a plan that is made for it, of *steps* steps and with *content*, or a stored one."""
        request = start_request(begun)
        if plan:
            request.start.plan_id = plan
            request.start.accepted.accepted.digest = (await self.plan(plan)).digest
        elif not begun.position:
            await self.plan_for(begun, steps, content)
        await self.peer.call(self.journal.AdvanceOperation, request)
        begun.last_seq = max(begun.last_seq, 1)
        begun.position = max(begun.position, 1)

    async def advance(
        self,
        begun: Begun,
        records: Iterable[journal_pb2.StepRecord] = (),
        seqs: Iterable[int] = (),
        seal: bool = False,
        rollback: bool = False,
        cause: str = "",
        position: int | None = None,
        done_count: int = 0,
    ) -> bool:
        """
        Write to the journal, with an event for each of *seqs*; return whether a cancel was requested.

        The write follows the last one, unless *position* is given.
        """
        position = begun.position + 1 if position is None else position
        events = [stage_started(begun.operation, seq) for seq in seqs]
        request = write_request(
            begun,
            steps=records,
            events=events,
            seal=seal,
            rollback=rollback,
            cause=cause,
            position=position,
            done_count=done_count,
        )
        answer = await self.peer.call(self.journal.AdvanceOperation, request)
        begun.position = max(begun.position, position)
        begun.last_seq = max([begun.last_seq, *(event.seq for event in events)])
        return answer.cancel_requested

    async def append(
        self, begun: Begun, *records: journal_pb2.StepRecord, done_count: int = 0, **content: object
    ) -> None:
        """Write one event and *records* to the journal."""
        event = begun.next_event(**content)
        position = begun.position + 1
        request = write_request(begun, steps=records, events=[event], position=position, done_count=done_count)
        await self.peer.call(self.journal.AdvanceOperation, request)
        begun.position, begun.last_seq = position, event.seq

    async def renew(self, begun: Begun, seconds: float = 30, raise_to: int = 0) -> journal_pb2.RenewLeaseResponse:
        request = journal_pb2.RenewLeaseRequest(
            operation_id=begun.operation, token=begun.token, ttl=duration(seconds), raise_to=raise_to
        )
        return await self.peer.call(self.journal.RenewLease, request)

    async def record(
        self,
        begun: Begun,
        resources: Iterable[model.InventoryEntry] = (),
        sources: Iterable[str] = (),
        base_generation: int | None = None,
        state: OperationState.ValueType = OPERATION_STATE_SUCCEEDED,
    ) -> Stack:
        """End an operation with a record of exactly *resources*; return the stack afterwards."""
        record = await self.changes_to(begun.stack.id, resources, sources)
        answer = await self.finish(begun, state, base_generation, record=record)
        stack = await self.get(begun.stack.id)
        assert stack.generation == answer.generation
        return stack

    async def changes_to(
        self, stack_id: str, resources: Iterable[model.InventoryEntry], sources: Iterable[str] = ()
    ) -> journal_pb2.Record:
        """The changes that give a stack an inventory of exactly *resources*."""
        wanted, recorded = list(resources), tuple[model.InventoryEntry, ...]()
        with suppress(StackNotFound):
            recorded = await self.resources(stack_id)
        gone = {entry.key for entry in recorded} - {entry.key for entry in wanted}
        changes = model.RecordChanges(tuple(entry for entry in wanted if entry not in recorded), tuple(sorted(gone)))
        return journal_pb2.Record(changes=record_changes_to_pb(changes), sources=sources)

    async def abandon(
        self,
        begun: Begun,
        base_generation: int | None = None,
        state: OperationState.ValueType | None = None,
        cause: str = "",
    ) -> journal_pb2.FinishOperationResponse:
        if state is None:
            state = OPERATION_STATE_ROLLED_BACK if begun.last_seq else OPERATION_STATE_FAILED
        return await self.finish(begun, state, base_generation, cause, abandon=journal_pb2.Abandon())

    async def remove(self, begun: Begun, base_generation: int | None = None) -> journal_pb2.FinishOperationResponse:
        return await self.finish(begun, OPERATION_STATE_SUCCEEDED, base_generation, remove=journal_pb2.Remove())

    async def finish(
        self,
        begun: Begun,
        state: OperationState.ValueType,
        base_generation: int | None = None,
        cause: str = "",
        record: journal_pb2.Record | None = None,
        abandon: journal_pb2.Abandon | None = None,
        remove: journal_pb2.Remove | None = None,
        stale_plan: journal_pb2.StalePlan | None = None,
        is_shown: bool = False,
    ) -> journal_pb2.FinishOperationResponse:
        request = journal_pb2.FinishOperationRequest(
            operation_id=begun.operation,
            position=begun.position + 1,
            token=begun.token,
            base_generation=begun.stack.generation if base_generation is None else base_generation,
            record=record,
            abandon=abandon,
            remove=remove,
            state=state,
            stale_plan=stale_plan,
            token_shown=is_shown,
        )
        if begun.last_seq:
            finished = operation_pb2.Finished(state=state, cause=cause)
            request.finished.CopyFrom(begun.next_event(finished=finished))
        return await self.peer.call(self.journal.FinishOperation, request)

    async def apply(
        self,
        name: str,
        resources: Iterable[model.InventoryEntry],
        sources: Iterable[str] = (),
        target: model.Target = HERE,
    ) -> Stack:
        """Run a whole operation, whose record has exactly *resources*."""
        return await self.record(await self.begin(name, target=target), resources, sources)

    async def abandoned(self) -> list[str]:
        request = journal_pb2.ListAbandonedOperationsRequest()
        return list((await self.peer.call(self.journal.ListAbandonedOperations, request)).operation_ids)

    async def claim(
        self, operation: str, holder: str = "applier-2", seconds: float = 30
    ) -> tuple[Begun, journal_pb2.ClaimOperationResponse]:
        request = journal_pb2.ClaimOperationRequest(operation_id=operation, holder=holder, ttl=duration(seconds))
        answer = await joined_claim(self.peer.stream(self.journal.ClaimOperation, request))
        heir = Begun(
            operation,
            answer.stack,
            answer.token,
            answer.expire_time,
            answer.is_pending,
            answer.last_seq,
            answer.position,
        )
        return heir, answer

    async def cancel(self, operation: str) -> None:
        await self.peer.call(self.journal.RequestCancel, journal_pb2.RequestCancelRequest(operation_id=operation))

    async def operation(self, name: str) -> operation_pb2.Operation:
        request = journal_pb2.GetOperationRequest(operation_id=name)
        return (await self.peer.call(self.journal.GetOperation, request)).operation

    async def operations(
        self,
        stack_id: str = "",
        target: Target | None = None,
        states: Iterable[OperationState.ValueType] = (),
        kinds: Iterable[OperationKind.ValueType] = (),
        since: Timestamp | None = None,
        until: Timestamp | None = None,
        page_size: int = 0,
        page_token: str = "",
    ) -> journal_pb2.ListOperationsResponse:
        request = journal_pb2.ListOperationsRequest(
            stack_id=stack_id,
            target=target,
            states=states,
            kinds=kinds,
            since=since,
            until=until,
            page_size=page_size,
            page_token=page_token,
        )
        return await self.peer.call(self.journal.ListOperations, request)

    async def events(self, operation: str, after_seq: int = 0) -> journal_pb2.ListEventsResponse:
        request = journal_pb2.ListEventsRequest(operation_id=operation, after_seq=after_seq)
        return await self.peer.call(self.journal.ListEvents, request)


@asynccontextmanager
async def stack_service(
    path: Path,
    clock: Clock,
    wrapped: Callable[[Store], Store] = lambda store: store,
    watch_seconds: float = Times().watch,
    transport: Transport | None = None,
) -> AsyncIterator[Client]:
    """
    A stack service over the database at *path*, and a client of it.

    Args:
        path: The database; it is made if it is missing.
        clock: The clock of the service.
        wrapped: Wraps the store of the service in another one.
        watch_seconds: Longest time between two reads of a watcher.
        transport: Connects service and client; None: that of the running loop.
    """
    transport = transport or transport_of_loop()
    copy_database("stack", path)
    store = SqliteStore(path, clock)
    try:
        service = Service(registrations(wrapped(store), MachineIds(), watchers=Watchers(watch_seconds)), SERVICES)
        async with transport.serving(service, grace=0) as address:
            client = Client(address, store, transport.connect)
            yield client
            await client.peer.close()
    finally:
        await store.close()


def service_in_memory(
    path: Path,
    clock: Clock,
    wrapped: Callable[[Store], Store] = lambda store: store,
    watch_seconds: float = Times().watch,
) -> AbstractAsyncContextManager[Client]:
    """A stack service with a client in memory; arguments as for ``stack_service``."""
    return stack_service(path, clock, wrapped, watch_seconds, InMemory())


def entry(
    name: str,
    resource_id: str = "",
    kind: str = "Bucket",
    origin: model.Origin = model.Origin.CREATED,
    labels: Iterable[str] = (),
) -> model.InventoryEntry:
    """The entry of one object."""
    associations = tuple(model.Key(model.LABEL, label) for label in labels)
    return model.InventoryEntry(model.Key(kind, name), resource_id or f"id-{name}", origin, associations)


def a_plan(steps: int, operation: str = "operation-1", **fields: object) -> journal_pb2.NewPlan:
    """A plan of *steps* steps, named after its operation; *fields* are further fields of its header."""
    header = Plan(
        id=operation.replace("operation", "plan"),
        kind=OPERATION_KIND_APPLY,
        stages=["stage"],
        counts=plan_pb2.StepCounts(creates=steps),
    )
    header.MergeFrom(Plan(**fields))  # type: ignore[arg-type]
    part = PlanPart(steps=plan_pb2.PlanSteps(steps=[a_create(number) for number in range(steps)]))
    return journal_pb2.NewPlan(header=header, parts=[stored_part(plan_pb2.PLAN_VIEW_STEPS, part, part)])


def body_of(plan: journal_pb2.NewPlan) -> bytes:
    """The body of a plan, as an applier reads it."""
    return b"".join(inflated(each.part) for each in plan.parts if each.view in BODY)


def a_create(number: int) -> plan_pb2.Step:
    """A step that creates a bucket."""
    name = f"bucket-{number}"
    spec = f'{{"name":"{name}"}}'
    create = plan_pb2.CreateStep(key={"kind": "Bucket", "name": name}, spec_json=spec, display_name=name)  # type: ignore[arg-type]
    return plan_pb2.Step(number=number, undo=plan_pb2.UNDO_EXACT, create=create)


def request_key(request_id: str, digest: str) -> journal_pb2.RequestKey | None:
    """The key of a request; None without an id."""
    return journal_pb2.RequestKey(id=request_id, digest=digest) if request_id else None


def start_request(begun: Begun) -> journal_pb2.AdvanceOperationRequest:
    """The start of an operation with the plan that was made for it."""
    start = journal_pb2.Start(
        plan_id=begun.operation.replace("operation", "plan"),
        accepted=OperationEvent(operation_id=begun.operation, seq=1, accepted=operation_pb2.Accepted()),
    )
    return journal_pb2.AdvanceOperationRequest(operation_id=begun.operation, token=begun.token, start=start)


def write_request(begun: Begun, **write: object) -> journal_pb2.AdvanceOperationRequest:
    """The request for one write of the journal, with the fields *write*."""
    writes = [journal_pb2.JournalWrite(**write)]  # type: ignore[arg-type]
    return journal_pb2.AdvanceOperationRequest(operation_id=begun.operation, token=begun.token, writes=writes)


def stage_started(operation: str, seq: int) -> OperationEvent:
    """An event of a running operation."""
    return OperationEvent(operation_id=operation, seq=seq, stage_started=operation_pb2.StageStarted(stage=seq))


def duration(seconds: float) -> Duration:
    return Duration(seconds=int(seconds), nanos=round(seconds % 1 * 1_000_000_000))


def microseconds(stack: Stack) -> tuple[int, int]:
    """Create time and update time of the stack."""
    return stack.create_time.ToMicroseconds(), stack.update_time.ToMicroseconds()


def finish_many(path: Path, count: int, clock: Clock) -> None:
    """Write *count* operations that failed just now into the store at *path*, without its service."""
    with sqlite3.connect(path) as connection:
        connection.executemany(
            "INSERT INTO operations (id, stack, stackless, stack_name, platform, org, kind, state, holder, token,"
            " create_time, update_time) VALUES (?, 's', 0, '', '', '', 'APPLY', 'FAILED', '', ?, 1, ?)",
            [(f"operation-{number}", number, clock.now) for number in range(count)],
        )
    connection.close()
