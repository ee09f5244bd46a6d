"""
An operation up to its end: it begins with a lease, whose token fences each of its writes (docs/reference/engine.md,
"Leases and fencing").

An applier that got no response to a write sends it again. A write that has taken effect, found by its position, returns
the same response and has no second effect. A claim is the exception: it may come from another task of the same applier,
so a repeated claim waits until the lease is free.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, NamedTuple

from services.core.errors import LeaseLost, OperationNotFound, PlanNotFound, PlanStale, RequestInvalid, StackExists
from services.core.model import OperationKind, Target
from services.engine.claims import Claim, Refusal
from services.engine.operation import FINISHED, OperationState
from stack_svc.rules import (
    action_sets,
    claims,
    leases,
    owners,
    plans,
    requests,
    reservations,
    sanitize,
    snapshots,
    stacks,
    unstarted,
    uses,
)
from stack_svc.rules.action_sets import NewActionSet
from stack_svc.rules.locking import lock_all
from stack_svc.rules.plans import NewPlan
from stack_svc.rules.requests import RequestId
from stack_svc.rules.reservations import NotReserved
from stack_svc.rules.snapshots import NewSnapshot
from stack_svc.rules.stacks import NewStack
from stack_svc.store.journal import Row
from stack_svc.store.leases import Lease
from stack_svc.store.operations import NOT_BLOCKED, Operation
from stack_svc.store.plans import StoredPlan
from stack_svc.store.stacks import Choice, Stack, StackName, State
from stack_svc.store.store import ReadTransaction, Transaction

MOST_ABANDONED = 100
"""Largest number of operations in one response (journal.proto)."""


@dataclass(frozen=True, slots=True)
class PlanRef:
    """Begin on the stack of a stored plan; ``plan`` is the id of the plan."""

    plan: str


class Parent(NamedTuple):
    """The operation whose phase begins another one, and the fencing token of its lease."""

    operation: str
    token: int


@dataclass(frozen=True, slots=True)
class BeginRequest:
    """
    A new operation.

    Attributes:
        id: Its id.
        choice: The stack; a target for an operation without a stack.
        create_missing: Whether a stack named by name is created if it does not exist; it is pending until the operation
            succeeds. A pending stack is reused if its operation sent nothing and its lease has expired.
        kind: Its kind; for a stored plan None, as the plan determines the kind and whether to create the stack.
        holder: The applier that runs it.
        ttl: Microseconds that the lease lasts without renewal.
        new_stack: The stack, if one is created; for a stored plan, its id may follow from the plan instead.
        request: The request that asks for it.
        author: Name of its author.
        parent: The operation whose phase begins it; None: none does.
    """

    id: str
    choice: Choice | Target | PlanRef
    create_missing: bool
    kind: OperationKind | None
    holder: str
    ttl: int
    new_stack: NewStack
    request: RequestId
    author: str = ""
    parent: Parent | None = None


@dataclass(frozen=True, slots=True)
class BeginResult:
    """An operation with the lease of its stack."""

    stack: Stack
    lease: Lease
    operation: Operation


@dataclass(frozen=True, slots=True)
class JournalWrite:
    """
    One write of an operation.

    Attributes:
        position: Its position.
        records: A ``pkger.journal.v1.StoredRecords`` in its wire format.
        events: A ``pkger.journal.v1.StoredEvents`` in its wire format.
        seqs: The seq of each of the events.
        steps: Numbers of the steps in records and events.
    """

    position: int
    records: bytes
    events: bytes
    seqs: Sequence[int]
    steps: Collection[int] = ()


@dataclass(frozen=True, slots=True)
class ActionChange:
    """
    The changes of an action set by a write, beside records and events.

    Attributes:
        has_phases: Whether the write has records of phases.
        stops: Whether the action set stops.
        reserve: Whether its stacks are reserved with this write.
        snapshots: Snapshots to store.
    """

    has_phases: bool
    stops: bool
    reserve: bool
    snapshots: Sequence[NewSnapshot]


@dataclass(frozen=True, slots=True)
class Advance:
    """
    The changes of an operation by a write, beside records and events.

    Attributes:
        claims: Claims for steps that are about to be sent, and for outcomes of other steps.
        released: Claims that it no longer needs.
        done_count: Number of steps that are in effect, or of phases that ended.
        seal: Whether the operation passes the seal.
        rollback: Whether it starts to roll back, or stops as an action set.
        cause: The failure; empty: the cause stays as it is.
        action: The changes of an action set; None: there are none.
    """

    claims: Sequence[Claim]
    released: Sequence[Claim]
    done_count: int
    seal: bool
    rollback: bool
    cause: str
    action: ActionChange | None = None


@dataclass(frozen=True, slots=True)
class Start:
    """
    The write that gives an operation its plan.

    Attributes:
        plan: Name of the plan: one that was made for it, or a pending one.
        digest: Digest of the plan that the applier read.
        write: The write, with the first event.
        claims: The claims of the plan.
        idle_plan: The plan, which has nothing to do, if it is not stored yet; else None.
    """

    plan: str
    digest: str
    write: JournalWrite
    claims: Sequence[Claim] = ()
    idle_plan: NewPlan | None = None


class ActionSetStart(NamedTuple):
    """The write that gives an operation its action set, with the first event."""

    action_set: NewActionSet
    write: JournalWrite


@dataclass(frozen=True, slots=True)
class Writes:
    """Writes of an operation that are made together: its *start*, unless it has started, and then *advances*."""

    start: Start | ActionSetStart | None = None
    advances: Sequence[tuple[JournalWrite, Advance]] = ()

    @property
    def reserve(self) -> bool:
        """Whether stacks are reserved with one of them."""
        return any(change.action and change.action.reserve for _, change in self.advances)


NO_WRITES = Writes()
"""No write."""


class ClaimsRefused(Exception):
    """Claims of a write that conflict with other stacks or operations; the transaction is to be rolled back."""

    def __init__(self, refused: Sequence[Refusal], cancel_requested: bool) -> None:
        super().__init__(*refused)
        self.refused = refused
        self.cancel_requested = cancel_requested


@dataclass(frozen=True, slots=True)
class ClaimResult:
    """
    An operation with a new lease, and all data that its next applier needs to resume it. ``blocked_steps`` are the
    blocked steps of a BLOCKED operation, in the form of ``Blocks.body``; ``rows`` are all writes of the operation, and
    ``action_set`` is what its action set is to run, in the form of ``NewActionSet.body``.
    """

    stack: Stack
    lease: Lease
    operation: Operation
    blocked_steps: bytes
    rows: Sequence[Row]
    action_set: bytes


@dataclass(frozen=True, slots=True)
class EventRows:
    """The writes with the requested events of an operation, whether more follow, and the state of the operation."""

    rows: Sequence[Row]
    has_more: bool
    state: OperationState


def begin(tx: Transaction, request: BeginRequest) -> BeginResult | Operation:
    """
    Acquire the lease of a stack for a new operation.

    Returns:
        The new operation with its lease, or the operation that the same request began before, without a lease.

    Raises:
        StackNotFound: There is no such stack and none is to be created.
        PlanNotFound: There is no such plan.
        RequestIdReused: The request id was used with other content.
        OperationNotFound: The request began an operation before, which was removed.
        LeaseLost: The lease of its parent is over.
        StackLeased: Another operation holds the lease, or an action set that is not its parent has the stack reserved.
        OperationUnfinished: Another operation on the stack has to be recovered.
        PlanUsed: An operation runs or ran the plan.
        PlanStale: The plan is stale.
        PlanExpired: The plan was not applied in time.
        RequestInvalid: The operation has no id, or its holder no name; the id is taken, or the name of the stack
            is not valid, or the duration of the lease is out of bounds; or an action set is to have a stack.
    """
    for field, value in (("operation_id", request.id), ("holder", request.holder)):
        if not value:
            raise RequestInvalid(field, "must not be empty")
    planned = tx.plans.find(request.choice.plan) if isinstance(request.choice, PlanRef) else None
    choice, missing, kind = _as_planned(planned) if planned else _as_requested(request)
    if kind is OperationKind.ACTION and not isinstance(choice, Target):
        raise RequestInvalid("kind", "an action set has no stack; name its target")
    locked = _locked_with_parent(tx, choice, request.parent)
    earlier_name = requests.answered_name(tx, request.request)
    again, earlier = _lock_of(tx, request.id), _lock_of(tx, earlier_name)
    now = tx.now()
    if request.parent:
        _check_parent(tx, request.parent, now)
    plan = plans.as_of(planned, now) if planned else None
    if again:
        stack, lease = _begin_again(tx, again, existing(tx, request.id), choice, kind, request, now)
        return BeginResult(stack, lease, existing(tx, request.id))
    if earlier and unstarted.has_died(tx, existing(tx, earlier_name), now):
        # The earlier operation of the request died before it sent anything, so the request may begin another.
        unstarted.end_dead(tx, earlier, now)
    elif earlier_id := requests.earlier_answer(tx, request.request, now):
        return existing(tx, earlier_id)
    _refuse_reserved(tx, locked, missing, request)
    new = replace(request.new_stack, id=stacks.id_for_plan(planned.id)) if planned and missing else request.new_stack
    stack, lease = _stack_to_work_on(tx, locked, choice, missing, new, now)
    lease = _taken(tx, stack, lease, request, now)
    if plan:
        plans.refuse_unusable(plan)
    operation = Operation(
        id=request.id,
        stack=stack.record.id,
        stackless=stack.state is State.STACKLESS,
        stack_name=stack.record.name,
        target=stack.record.target,
        kind=kind,
        state=OperationState.PREPARING,
        holder=lease.holder,
        token=lease.token,
        create_time=now,
        update_time=now,
        author=sanitize.checked_author(request.author),
        parent=request.parent.operation if request.parent else "",
    )
    if not tx.operations.insert(operation):
        raise RequestInvalid("operation_id", f"operation {request.id} exists already; choose another id")
    requests.store_answer(tx, request.request, request.id, now)
    return BeginResult(stack, lease, operation)


def advance(tx: Transaction, operation_id: str, token: int, writes: Writes) -> bool:
    """
    Make *writes* of an operation.

    Returns:
        Whether a client asked to cancel the operation.

    Raises:
        ClaimsRefused: Claims of a write conflict with other stacks or operations.
        NotReserved: A stack that an action set is to reserve is in use.
        OperationNotFound: There is no such operation.
        LeaseLost: The lease is over.
        RequestInvalid: The operation did not start, has started with another plan, lacks a write or an event before
            these, has another write at a position, has no such step, or is sealed and would roll back.
        ResourceOwned: Another stack owns a resource that the plan adopts, or removes one that it uses.
        PlanNotFound: There is no such plan.
        PlanUsed: Another operation runs or ran it.
        PlanStale: It is stale, it was replaced since it was read, or no stack owns a resource any more that it uses.
        PlanExpired: It was not applied in time.
        ActionSetExists: Another action set has the name.
        ArtifactGone: A snapshot that the action set uses is deleted.
        LimitReached: The store has too many unfinished action sets.
    """
    reserved: Mapping[Choice, Stack | None] = {}
    if writes.reserve:
        reserved = lock_all(tx, {tx.operations.stack_of(operation_id) or "", *_to_reserve(tx, operation_id, writes)})
    operation, _, now = fenced(tx, operation_id, token)
    return written(tx, operation, writes, now, reserved).cancel_requested


def written(
    tx: Transaction,
    operation: Operation,
    writes: Writes,
    now: int,
    reserved: Mapping[Choice, Stack | None] = MappingProxyType({}),
) -> Operation:
    """
    *operation*, whose lease is held, after *writes*; errors as for ``advance``.

    Args:
        tx: The transaction.
        operation: The operation.
        writes: The writes.
        now: The time.
        reserved: The stacks that they reserve, locked, by name; None for those that do not exist.
    """
    if isinstance(writes.start, ActionSetStart):
        operation = _started_action_set(tx, operation, writes.start, now)
    elif writes.start:
        operation = _started(tx, operation, writes.start, now)
    for write, change in writes.advances:
        operation = _advanced(tx, operation, write, change, reserved, now)
    return operation


def _to_reserve(tx: Transaction, operation_id: str, writes: Writes) -> tuple[StackName, ...]:
    if isinstance(writes.start, ActionSetStart):
        return writes.start.action_set.reserved
    return action_sets.reserved_stacks(tx, operation_id)


def _started_action_set(tx: Transaction, operation: Operation, start: ActionSetStart, now: int) -> Operation:
    """*operation* with its action set and its first event."""
    action_set, write = start
    if operation.kind is not OperationKind.ACTION:
        raise RequestInvalid("start.action_set", f"operation {operation.id} is {operation.kind} and starts with a plan")
    if operation.state is not OperationState.PREPARING:
        row = tx.journal.row(operation.id, write.position)
        if action_sets.body_of(tx, operation) != action_set.body or row is None or row.events != write.events:
            raise RequestInvalid("start.action_set", f"operation {operation.id} started with another action set")
        return operation
    action_sets.create(tx, operation, action_set)
    header = action_set.header
    started = appended(
        tx,
        operation,
        write,
        now,
        state=OperationState.APPLYING,
        step_count=header.phase_count,
        action_set=header.name,
    )
    tx.operations.update(started)
    return started


def _started(tx: Transaction, operation: Operation, start: Start, now: int) -> Operation:
    """*operation* with its plan, its first event, and the claims of the plan."""
    if operation.kind is OperationKind.ACTION:
        raise RequestInvalid("start", f"operation {operation.id} is {operation.kind} and starts with an action set")
    if operation.state is not OperationState.PREPARING:
        if operation.plan != start.plan:
            raise RequestInvalid("plan_id", f"operation {operation.id} started with another plan")
        row = tx.journal.row(operation.id, start.write.position)
        if row and row.events != start.write.events:
            raise RequestInvalid("accepted", f"operation {operation.id} started with another event")
        return operation
    if problem := uses.unowned(tx, operation.target, start.claims):
        raise PlanStale(start.plan, problem)
    if refused := claims.claim(tx, operation, start.claims, now):
        raise owners.refusal(refused)
    if start.idle_plan:
        plans.insert_for(tx, start.idle_plan, operation)
    plan = plans.take(tx, start.plan, operation.id)
    if plan.digest != start.digest:
        raise PlanStale(start.plan, f"it was replaced by {plan.digest}")
    started = appended(
        tx,
        existing(tx, operation.id),
        start.write,
        now,
        state=OperationState.APPLYING,
        step_count=plan.step_count,
    )
    tx.operations.update(started)
    return started


def _advanced(
    tx: Transaction,
    operation: Operation,
    write: JournalWrite,
    change: Advance,
    reserved: Mapping[Choice, Stack | None],
    now: int,
) -> Operation:
    """*operation* after one write of its journal."""
    operation_id, state = operation.id, operation.unblocked_state
    if state is OperationState.PREPARING:
        raise RequestInvalid("operation_id", f"operation {operation_id} did not start")
    _check_content(operation, write, change)
    if is_repeated(tx, operation, write):
        return operation
    sealed, rolling_back = operation.sealed or change.seal, operation.rolling_back or change.rollback
    if sealed and rolling_back:
        field = "rollback" if change.rollback else "seal"
        raise RequestInvalid(field, f"operation {operation_id} cannot both be sealed and roll back")
    for step in (min(write.steps, default=0), max(write.steps, default=0)):
        if not 0 <= step < max(operation.step_count, 1):
            raise RequestInvalid("steps", f"there is no step {step} in a plan of {operation.step_count} steps")
    if not 0 <= change.done_count <= operation.step_count:
        raise RequestInvalid("done_count", f"{change.done_count} of {operation.step_count} steps cannot be in effect")
    if refused := claims.claim(tx, operation, change.claims, now):
        raise ClaimsRefused(refused, operation.cancel_requested)
    claims.release(tx, operation, change.released)
    if change.action:
        _change_action_set(tx, operation, change.action, reserved, now)
    if operation.state is OperationState.BLOCKED:
        tx.operations.unblock(operation_id)
    advanced = appended(
        tx,
        operation,
        write,
        now,
        state=OperationState.ROLLING_BACK if rolling_back else state,
        sealed=sealed,
        rolling_back=rolling_back,
        done_count=change.done_count,
        cause=_cause_after(operation, change),
        blocks=NOT_BLOCKED,
    )
    tx.operations.update(advanced)
    return advanced


def _check_content(operation: Operation, write: JournalWrite, change: Advance) -> None:
    """
    Accept a write with what the kind of *operation* has.

    Raises:
        RequestInvalid: It has anything else.
    """
    if operation.kind is not OperationKind.ACTION:
        if change.action:
            raise RequestInvalid("action", f"operation {operation.id} is {operation.kind} and has no phases")
        return
    stops = change.action is not None and change.action.stops
    if write.steps or change.claims or change.released or change.seal or change.rollback != stops:
        raise RequestInvalid(
            "writes", f"operation {operation.id} is {operation.kind}: it has no steps, claims or seal, and it stops"
        )


def _change_action_set(
    tx: Transaction, operation: Operation, change: ActionChange, reserved: Mapping[Choice, Stack | None], now: int
) -> None:
    """
    Make the changes of an action set by one write.

    Raises:
        NotReserved: A stack that it is to reserve is in use.
        RequestInvalid: A content of a snapshot is not stored.
    """
    if change.reserve and (holder := reservations.reserve(tx, operation, reserved, now)):
        raise NotReserved(holder, operation.cancel_requested)
    if change.has_phases:
        tx.action_sets.begin(operation.action_set)
    for snapshot in change.snapshots:
        snapshots.store(tx, operation, snapshot, now)


def _cause_after(operation: Operation, change: Advance) -> str:
    """The cause of *operation* after a write; what stopped an action set first stays its cause."""
    is_first = operation.kind is not OperationKind.ACTION or not operation.rolling_back
    return sanitize.clean(change.cause) if change.rollback and change.cause and is_first else operation.cause


def renew(tx: Transaction, operation_id: str, token: int, ttl: int, raise_to: int = 0) -> tuple[int, bool]:
    """
    Renew the lease of an operation for *ttl* microseconds from now, with the token *raise_to*; 0: it keeps its token.

    A retry of a raise has the *token* before the raise, too; it is accepted and does not raise the token again.

    Returns:
        When it ends, and whether a client asked to cancel the operation.

    Raises:
        OperationNotFound: There is no such operation.
        LeaseLost: It is over.
        RequestInvalid: *ttl* is out of bounds, or *raise_to* is not *token* plus one.
    """
    tx.lock_stack(tx.operations.stack_of(operation_id) or "")
    now = tx.now()
    operation = existing(tx, operation_id)
    lease = tx.leases.of(operation.stack)
    if lease and leases.is_raised(lease, token, raise_to):
        token, raise_to = raise_to, 0
    renewed = leases.renewed(_valid_lease(operation, lease, token, now), ttl, now)
    if raise_to:
        renewed = leases.raised(renewed, raise_to)
    tx.leases.put(operation.stack, renewed)
    tx.operations.update(replace(_heard_of(operation, now), token=renewed.token))
    return renewed.expires, operation.cancel_requested


def claim(tx: Transaction, operation_id: str, holder: str, ttl: int) -> ClaimResult:
    """
    Acquire the lease of an unfinished operation. A BLOCKED operation stays so until its new holder writes.

    Raises:
        OperationNotFound: There is no such operation, or it is finished.
        StackLeased: Its lease is held.
        RequestInvalid: *holder* is empty, or *ttl* is out of bounds.
    """
    if not holder:
        raise RequestInvalid("holder", "must not be empty")
    stack_id = tx.operations.stack_of(operation_id) or ""
    stack = tx.lock_stack(stack_id)
    now = tx.now()
    operation, last = unfinished(tx, operation_id), tx.leases.of(stack_id)
    if stack is None or last is None:
        raise OperationNotFound(operation_id)
    lease = leases.acquired(last, stack, sanitize.clean(holder), operation_id, ttl, now)
    tx.leases.put(stack_id, lease)
    # An operator recovers a BLOCKED operation after fixing the defect that blocks it, so the count restarts.
    defects = 0 if operation.state is OperationState.BLOCKED else operation.defects
    claimed = replace(_heard_of(operation, now), holder=lease.holder, token=lease.token, defects=defects)
    tx.operations.update(claimed)
    return ClaimResult(
        stack,
        lease,
        claimed,
        tx.operations.blocked_steps(operation_id),
        tx.journal.rows(operation_id),
        action_sets.body_of(tx, operation),
    )


def request_cancel(tx: Transaction, operation_id: str) -> Operation:
    """
    Record that an operation is to be cancelled. This is no write of its applier, so its update time stays.

    Returns:
        The operation.

    Raises:
        OperationNotFound: There is no such operation, or it is finished.
    """
    tx.lock_stack(tx.operations.stack_of(operation_id) or "")
    cancelled = replace(unfinished(tx, operation_id), cancel_requested=True)
    tx.operations.update(cancelled)
    return cancelled


def event_rows(reading: ReadTransaction, operation_id: str, after_seq: int, most_bytes: int) -> EventRows:
    """
    The writes of an operation with events after *after_seq*, until the events take *most_bytes* or more.

    Raises:
        OperationNotFound: There is no such operation.
    """
    operation = existing(reading, operation_id)
    rows, has_more = reading.journal.rows_after(operation_id, after_seq, most_bytes)
    return EventRows(rows, has_more, operation.state)


def existing(reading: ReadTransaction, operation_id: str) -> Operation:
    """
    The operation of that id.

    Raises:
        OperationNotFound: There is none.
    """
    operation = reading.operations.find(operation_id)
    if operation is None:
        raise OperationNotFound(operation_id)
    return operation


def unfinished(reading: ReadTransaction, operation_id: str) -> Operation:
    """
    The operation of that id.

    Raises:
        OperationNotFound: There is none, or it is finished.
    """
    operation = existing(reading, operation_id)
    if operation.state in FINISHED:
        raise OperationNotFound(operation_id)
    return operation


def fenced(tx: Transaction, operation_id: str, token: int) -> tuple[Operation, Lease, int]:
    """
    Lock an operation for a write by the holder of its lease.

    Returns:
        The operation, its lease, and the time.

    Raises:
        OperationNotFound: There is no such operation.
        LeaseLost: The lease is over.
    """
    tx.lock_stack(tx.operations.stack_of(operation_id) or "")
    now = tx.now()
    operation = existing(tx, operation_id)
    return operation, _valid_lease(operation, tx.leases.of(operation.stack), token, now), now


def is_repeated(reading: ReadTransaction, operation: Operation, write: JournalWrite) -> bool:
    """
    Whether a write was made before, as its response was lost.

    Raises:
        RequestInvalid: Another write has its position, or a write before it is missing.
    """
    if write.position == operation.position + 1:
        return False
    row = reading.journal.row(operation.id, write.position)
    if row and (row.records, row.events) == (write.records, write.events):
        return True
    raise RequestInvalid(
        "position",
        f"the next position of operation {operation.id} is {operation.position + 1};"
        f" at {write.position} is no such write",
    )


def appended(tx: Transaction, operation: Operation, write: JournalWrite, now: int, **changes: Any) -> Operation:
    """
    Append a write to a journal.

    Returns:
        The operation after it, with *changes* of its attributes, for the caller to update.

    Raises:
        RequestInvalid: An event before one of these is missing.
    """
    last_seq = operation.last_seq
    for seq in write.seqs:
        if seq != last_seq + 1:
            raise RequestInvalid("events", f"seq {seq} does not follow {last_seq}, that of the last event")
        last_seq = seq
    tx.journal.append(operation.id, Row(write.position, operation.token, last_seq, write.records, write.events, now))
    heard = max(operation.update_time, now)
    return replace(operation, update_time=heard, position=write.position, last_seq=last_seq, **changes)


def _valid_lease(operation: Operation, lease: Lease | None, token: int, now: int) -> Lease:
    if operation.token != token:
        raise LeaseLost(operation.stack, token)
    return leases.check(lease, operation.stack, token, now)


def _lock_of(tx: Transaction, operation: str) -> Stack | None:
    """Lock the stack of an operation; None: there is no such operation, or its stack is gone."""
    stack = tx.operations.stack_of(operation) if operation else None
    return tx.lock_stack(stack) if stack else None


def _heard_of(operation: Operation, now: int) -> Operation:
    """
    *operation* with a new update time, because its applier called now. The time never decreases: a clock may be set
    back.
    """
    return replace(operation, update_time=max(operation.update_time, now))


def _as_requested(request: BeginRequest) -> tuple[Choice | Target, StackName | None, OperationKind]:
    """The stack or target of an operation, the stack to create if there is none, and the kind."""
    if isinstance(request.choice, PlanRef):
        raise PlanNotFound(request.choice.plan)
    if request.kind is None:
        raise RequestInvalid("kind", "must be set")
    missing = request.choice if request.create_missing and isinstance(request.choice, StackName) else None
    return request.choice, missing, request.kind


def _as_planned(plan: StoredPlan) -> tuple[Choice | Target, StackName | None, OperationKind]:
    """As ``_as_requested``, for an operation that runs *plan*."""
    named = StackName(plan.target, plan.stack_name)
    if plan.stack:
        return plan.stack, None, plan.kind
    if plan.creates_nameless_stack:
        # An earlier operation of the plan may have created it, and died.
        return stacks.id_for_plan(plan.id), named, plan.kind
    return (named, named, plan.kind) if plan.stack_name else (plan.target, None, plan.kind)


def _begin_again(
    tx: Transaction,
    stack: Stack,
    operation: Operation,
    choice: Choice | Target,
    kind: OperationKind,
    request: BeginRequest,
    now: int,
) -> tuple[Stack, Lease]:
    """Return the same response, with the lease renewed from now on, as its holder counts from this request."""
    lease = tx.leases.of(operation.stack)
    if (
        operation.state is OperationState.PREPARING
        and (operation.kind, operation.holder) == (kind, sanitize.clean(request.holder))
        and choice == _choice_of(operation, choice)
        and leases.holds(lease, operation.token, now)
    ):
        assert lease is not None  # noqa: S101 - it is held
        renewed = leases.renewed(lease, request.ttl, now)
        tx.leases.put(operation.stack, renewed)
        return stack, renewed
    raise RequestInvalid(
        "operation_id", f"operation {operation.id} exists already ({operation.state}); choose another id"
    )


def _choice_of(operation: Operation, like: Choice | Target) -> Choice | Target | None:
    """
    The stack of an operation, named in the form of *like*: by target, name or id. None: it has no name in that form.
    """
    match like:
        case Target():
            return operation.target if operation.stackless else None
        case StackName():
            return StackName(operation.target, operation.stack_name)
        case _:
            return operation.stack


def _locked_with_parent(tx: Transaction, choice: Choice | Target, parent: Parent | None) -> Stack | None:
    """Lock the stack of *choice*, and the row with the lease of the parent; None: there is no such stack."""
    if parent is None:
        return None if isinstance(choice, Target) else tx.lock_stack(choice)
    of_parent = tx.operations.stack_of(parent.operation) or ""
    if isinstance(choice, Target):
        tx.lock_stack(of_parent)
        return None
    return lock_all(tx, {choice, of_parent})[choice]


def _check_parent(reading: ReadTransaction, parent: Parent, now: int) -> None:
    """
    Fence the begin of an operation by the lease of its parent.

    Raises:
        LeaseLost: The lease is over.
    """
    operation = reading.operations.find(parent.operation)
    if operation is None:
        raise LeaseLost(parent.operation, parent.token)
    _valid_lease(operation, reading.leases.of(operation.stack), parent.token, now)


def _refuse_reserved(
    reading: ReadTransaction, stack: Stack | None, missing: StackName | None, request: BeginRequest
) -> None:
    """
    Refuse a stack, or the name of a new one, that an action set has reserved which is not the parent.

    Raises:
        StackLeased: One has.
    """
    parent = request.parent.operation if request.parent else ""
    if stack:
        reservations.refuse_reserved(reading, stack, parent)
    elif missing:
        reservations.refuse_reserved_name(reading, missing, parent)


def _stack_to_work_on(
    tx: Transaction,
    locked: Stack | None,
    choice: Choice | Target,
    missing: StackName | None,
    described: NewStack,
    now: int,
) -> tuple[Stack, Lease]:
    """The stack with its last lease; it is created as *missing*, if given, when there is none."""
    if isinstance(choice, Target):
        new = stacks.new_stack(StackName(choice, ""), NewStack(described.id), State.STACKLESS, now)
    elif missing is None:
        stack = stacks.visible(locked, choice)
        return stack, tx.leases.of(stack.record.id) or Lease()
    elif locked:
        if locked.is_pending:
            # The operation that made it has died, and may have described it in another way.
            locked = described.written_to(locked)
            tx.stacks.edit(locked)
            tx.stacks.update(locked)
        return locked, tx.leases.of(locked.record.id) or Lease()
    else:
        if missing.name or choice == missing:
            stacks.check_name(missing.name)
        new = stacks.new_stack(missing, described, State.PENDING, now)
    if not tx.stacks.insert(new):
        raise StackExists(new.called, new.record.target.org)
    # The id of a stack that a plan creates derives from the plan, and is used again if an operation of it showed its
    # token and did not start.
    before = tx.operations.last_on(new.record.id)
    return new, Lease(token=before.token if before else 0)


def _taken(tx: Transaction, stack: Stack, last: Lease, request: BeginRequest, now: int) -> Lease:
    """Acquire the lease of *stack* for a new operation, and end the operation on it that died before it started."""
    lease = leases.acquired(last, stack, sanitize.clean(request.holder), request.id, request.ttl, now)
    unstarted.end_dead(tx, stack, now)
    tx.leases.put(stack.record.id, lease)
    return lease
