"""
The end of an operation: one fenced write stores its outcome and releases its lease (docs/reference/engine.md, "Leases
and fencing").

An applier that got no response sends the request again, and gets the same response.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pkger.journal.v1 import journal_pb2
from pkger.model.v1 import operation_pb2

from services.core.errors import LeaseLost, RequestInvalid, StackMoved
from services.core.model import Baseline, Key, OperationKind, RecordChanges, Use
from services.engine.operation import FINISHED, OperationState
from stack_svc.rules import (
    baselines,
    claims,
    drift_checks,
    inventory,
    leases,
    operations,
    ownership_transfer,
    packages,
    plans,
    revisions,
    sanitize,
    unstarted,
)
from stack_svc.rules.operations import NO_WRITES, JournalWrite, Writes
from stack_svc.rules.ownership_transfer import Transfer
from stack_svc.store.operations import NOT_BLOCKED, Blocks, Operation
from stack_svc.store.stacks import Stack, State
from stack_svc.store.store import ReadTransaction, Transaction


@dataclass(frozen=True, slots=True)
class RecordOutcome:
    """
    The outcome that changes the record of the stack.

    Attributes:
        changes: Changes of the inventory.
        sources: Names of the sources that were applied.
        platform_changed: Whether resources changed; the generation then increases even if the record stays the same.
        secrets_written: Whether secrets were written; only the generation increases then.
        baselines: Baselines of the resources that were written.
        is_in_sync: Whether the platform holds exactly what the package declares.
    """

    changes: RecordChanges
    sources: Sequence[str]
    platform_changed: bool
    secrets_written: bool = False
    baselines: Sequence[Baseline] = ()
    is_in_sync: bool = False


@dataclass(frozen=True, slots=True)
class AbandonOutcome:
    """The outcome that leaves the record as it is."""


@dataclass(frozen=True, slots=True)
class RemoveOutcome:
    """
    The outcome that removes the stack.

    Attributes:
        staying: Keys of resources that were not deleted, as other stacks use or own them.
        staying_labels: Labels that stay attached, as the records of other stacks want them.
    """

    staying: Sequence[Key] = ()
    staying_labels: Sequence[Use] = ()


Outcome = RecordOutcome | AbandonOutcome | RemoveOutcome


@dataclass(frozen=True, slots=True)
class StalePlan:
    """A stored plan that is stale, and the change that made it so."""

    plan: str
    problem: str


@dataclass(frozen=True, slots=True)
class FinishRequest:
    """
    The end of an operation.

    Attributes:
        position: Position of this write in its journal.
        records: A ``pkger.journal.v1.StoredRecords`` in its wire format, with the digest of the request.
        state: A finished state, or BLOCKED.
        outcome: What it does to its stack.
        base_generation: Generation that its plan was made from.
        cause: The failure that ended it; empty when nothing failed.
        finished: Its last event, in which the store sets the generation; None for an operation that did not start.
        blocks: The reason and the steps that block a BLOCKED operation.
        stale: The plan that it was to run, if that is stale; else None.
        seen_token: The highest token that the platform has seen, where the store is older than the platform; else 0.
        leftover_count: Number of its leftovers.
        is_shown: Whether the platform has answered a request with its token.
    """

    position: int
    records: bytes
    state: OperationState
    outcome: Outcome
    base_generation: int
    cause: str
    finished: operation_pb2.OperationEvent | None
    blocks: Blocks = NOT_BLOCKED
    stale: StalePlan | None = None
    seen_token: int = 0
    leftover_count: int = 0
    is_shown: bool = False


_S = OperationState

_MAY_BECOME = {
    _S.PREPARING: {_S.FAILED},
    _S.APPLYING: {_S.SUCCEEDED, _S.ROLLED_BACK, _S.BLOCKED},
    _S.ROLLING_BACK: {_S.ROLLED_BACK, _S.BLOCKED},
}
"""
The transitions of docs/reference/engine.md, "Operations". A BLOCKED operation counts in the state before; one cancelled
early may be ROLLED_BACK at once.
"""

_ACTION_SET_MAY_BECOME = {
    _S.PREPARING: {_S.FAILED},
    _S.APPLYING: {_S.SUCCEEDED, _S.FAILED, _S.CANCELLED, _S.BLOCKED},
    _S.ROLLING_BACK: {_S.FAILED, _S.CANCELLED, _S.BLOCKED},
}
"""The transitions of an action set; one that is stopped by its last write may end at once."""

_MAY_LEAVE: dict[OperationState, tuple[type[Outcome], ...]] = {
    OperationState.SUCCEEDED: (RecordOutcome, AbandonOutcome, RemoveOutcome),
    OperationState.ROLLED_BACK: (RecordOutcome, AbandonOutcome),
    OperationState.BLOCKED: (AbandonOutcome,),
    OperationState.FAILED: (AbandonOutcome,),
    OperationState.CANCELLED: (AbandonOutcome,),
}
"""A BLOCKED operation has not ended: the record stays as it was when it began, and its journal holds its changes."""


@dataclass(frozen=True, slots=True)
class FinishResult:
    """
    A stack after the end of an operation.

    Attributes:
        generation: Its generation; 0 when it has been removed, and for an operation without a stack.
        orphaned: Keys of resources that were to be left to other stacks, but that no stack would own. If there is any,
            nothing was written.
        orphaned_labels: Labels that were to stay attached, but that no record would want. If there is any, nothing was
            written.
    """

    generation: int = 0
    orphaned: Sequence[Key] = ()
    orphaned_labels: Sequence[Use] = ()


def finish(
    tx: Transaction, operation_id: str, token: int, request: FinishRequest, writes: Writes = NO_WRITES
) -> FinishResult:
    """
    Make *writes* of the operation that has the lease with *token*, and end it.

    If neither inventory nor packages nor platform changed, generation, sources and update time stay as they are.
    Packages change with success only. Success makes a revision, unless the package is the same as well. A pending stack
    becomes active, created now, when the operation SUCCEEDED or its record lists resources; after any other end the
    stack is removed.

    A resource that the stack releases while others use it is handed over to the stack that has used it longest. The
    owner of a resource that the stack takes over becomes a user of that resource.

    The reservations of an action set end with it, and so does its use of snapshots.

    Raises:
        OperationNotFound: There is no such operation.
        LeaseLost: The lease is over.
        StackMoved: The plan was made from another generation.
        RequestInvalid: The operation cannot end in that state, or the changes of the record contradict each other, or
            stacks are to be reserved with its end.
        ResourceOwned: Another stack has some of the resources.
        ClaimsRefused: As for ``operations.advance``, whose other errors are raised, too.
    """
    if writes.reserve:
        raise RequestInvalid("writes", "stacks are reserved before the end; send the write with AdvanceOperation")
    stack_id = tx.operations.stack_of(operation_id) or ""
    unlocked = tx.stacks.find(stack_id)
    others = (
        {*_transfer(tx, unlocked, request.outcome).stacks, *_yielding(tx, unlocked, request.outcome)}
        if unlocked
        else set()
    )
    # All transactions lock stacks in the order of their ids.
    locked = {each: tx.lock_stack(each) for each in sorted({stack_id, *others})}
    stack = locked[stack_id]
    now = tx.now()
    operation = operations.existing(tx, operation_id)
    if _is_repeated(tx, operation, token, request):
        if request.finished and operation.last_event:
            return FinishResult(operation_pb2.OperationEvent.FromString(operation.last_event).finished.generation)
        return FinishResult(stack.record.generation if stack else 0)
    lease = leases.check(tx.leases.of(operation.stack), operation.stack, token, now)
    if stack is None or operation.token != token:
        raise LeaseLost(operation.stack, token)
    transfer = _transfer(tx, stack, request.outcome)
    if transfer.orphaned or transfer.orphaned_labels:
        return FinishResult(0, transfer.orphaned, transfer.orphaned_labels)
    operation = operations.written(tx, operation, writes, now)
    _check(operation, request)
    if request.position != operation.position + 1:
        raise RequestInvalid(
            "position",
            f"the next position of operation {operation_id} is {operation.position + 1}, and not {request.position}",
        )
    existing = {key: each for key, each in locked.items() if each}
    if isinstance(request.outcome, RecordOutcome) and (owned := _yielding(tx, stack, request.outcome)):
        changes = ownership_transfer.take_over(tx, request.outcome.changes, owned, existing, now)
        request = replace(request, outcome=replace(request.outcome, changes=changes))
    left = stack if request.state is OperationState.BLOCKED else _left(tx, operation, stack, request, now)
    generation = left.record.generation if left else 0
    if left:
        tx.leases.put(operation.stack, leases.released(lease, request.seen_token, request.is_shown))
    else:
        tx.stacks.delete(operation.stack)
    ownership_transfer.hand_over(tx, transfer, existing, now)
    _end(tx, operation, request, generation, now)
    return FinishResult(generation)


def _transfer(reading: ReadTransaction, stack: Stack, outcome: Outcome) -> Transfer:
    """The resources that *stack* releases."""
    target, stack_id = stack.record.target, stack.record.id
    match outcome:
        case RecordOutcome(changes=changes):
            return ownership_transfer.transfer_of(reading, target, stack_id, changes)
        case RemoveOutcome(staying=staying, staying_labels=labels):
            return ownership_transfer.whole_transfer(reading, target, stack_id, staying, labels)
        case AbandonOutcome():
            return ownership_transfer.NOTHING


def _yielding(reading: ReadTransaction, stack: Stack, outcome: Outcome) -> dict[str, dict[Key, Key]]:
    """The stacks that own what *stack* takes over, as returned by ``ownership_transfer.yielding``."""
    match outcome:
        case RecordOutcome(changes=changes):
            return ownership_transfer.yielding(reading, stack.record.target, stack.record.id, changes)
        case _:
            return {}


def _is_repeated(reading: ReadTransaction, operation: Operation, token: int, request: FinishRequest) -> bool:
    """Whether this request was recorded before, as its response was lost."""
    if (operation.token, operation.position, operation.state) != (token, request.position, request.state):
        return False
    row = reading.journal.row(operation.id, request.position)
    # An operation that did not start has no journal.
    return row is None or row.records == request.records


def _check(operation: Operation, request: FinishRequest) -> None:
    current, state, outcome = operation.unblocked_state, request.state, request.outcome
    is_action_set = operation.kind is OperationKind.ACTION
    if state not in (_ACTION_SET_MAY_BECOME if is_action_set else _MAY_BECOME).get(current, ()):
        raise RequestInvalid("state", f"operation {operation.id} is {current} and cannot end {state}")
    if operation.sealed and state is OperationState.ROLLED_BACK:
        raise RequestInvalid("state", f"operation {operation.id} is sealed and cannot end {state}")
    if not isinstance(outcome, AbandonOutcome if is_action_set else _MAY_LEAVE[state]):
        raise RequestInvalid(
            "outcome", f"{type(outcome).__name__.lower()} is not an outcome of an operation that ends {state}"
        )
    if operation.stackless and isinstance(outcome, RecordOutcome):
        raise RequestInvalid("outcome", "an operation without a stack has no record; send abandon")
    if request.finished is None and current is not OperationState.PREPARING:
        raise RequestInvalid("finished", f"must be set, as operation {operation.id} has started")
    if request.stale and current is not OperationState.PREPARING:
        raise RequestInvalid("stale_plan", f"operation {operation.id} has started, so its plan was not stale")


def _end(tx: Transaction, operation: Operation, request: FinishRequest, generation: int, now: int) -> None:
    changes: dict[str, Any] = {"state": request.state, "cause": sanitize.clean(request.cause)}
    if request.finished:
        event = _with_generation(request.finished, generation)
        events = journal_pb2.StoredEvents(events=[event]).SerializeToString()
        body = event.SerializeToString() if request.state in FINISHED else b""
        write = JournalWrite(request.position, request.records, events, [event.seq])
        ended = operations.appended(tx, operation, write, now, last_event=body, **changes)
    else:
        update_time = max(operation.update_time, now)
        ended = replace(operation, update_time=update_time, position=request.position, **changes)
    tx.operations.update(ended)
    if operation.state is OperationState.BLOCKED:
        tx.operations.unblock(operation.id)
    if request.state is OperationState.BLOCKED:
        tx.operations.block(operation.id, request.blocks)
    if request.state in FINISHED:
        claims.drop(tx, operation)
        plans.mark_applied(tx, operation.plan)
    if request.state in FINISHED and operation.action_set:
        tx.reservations.drop(operation.id)
        tx.snapshots.release(operation.id)
    if operation.state is OperationState.PREPARING:
        unstarted.forget(tx, operation)
    if request.stale:
        plans.mark_stale(tx, request.stale.plan, request.stale.problem)


def _with_generation(last: operation_pb2.OperationEvent, generation: int) -> operation_pb2.OperationEvent:
    """The last event of an operation, with the *generation* of its stack after it."""
    event = operation_pb2.OperationEvent()
    event.CopyFrom(last)
    event.finished.generation = generation
    return event


def _left(tx: Transaction, operation: Operation, stack: Stack, request: FinishRequest, now: int) -> Stack | None:
    """The stack after a finished operation; None: it is removed."""
    match request.outcome:
        case RecordOutcome() as record:
            _check_generation(stack, operation, request.base_generation)
            # Resources that could not be undone need a stack that owns them.
            is_kept = request.state is OperationState.SUCCEEDED or bool(record.changes.entries)
            if stack.state is State.ACTIVE or is_kept:
                return _recorded(tx, operation, stack, record, request, now)
            return None
        case AbandonOutcome():
            return stack if stack.state is State.ACTIVE else None
        case RemoveOutcome():
            _check_generation(stack, operation, request.base_generation)
            return None


def _recorded(
    tx: Transaction, operation: Operation, stack: Stack, record: RecordOutcome, request: FinishRequest, now: int
) -> Stack:
    recorded, plan, changes = stack, tx.plans.find(operation.plan), record.changes
    has_succeeded = request.state is OperationState.SUCCEEDED
    seen = baselines.planned(tx, plan) if plan and has_succeeded else []
    kept_baselines = baselines.of_entries(tx, stack.record.id, changes, [*seen, *record.baselines])
    moved = {} if has_succeeded else baselines.moved(tx, stack.record.id, changes)
    inventory_changed, count = inventory.change(tx, stack, changes, now)
    moves, installed = packages.change(tx, stack, plan) if plan and has_succeeded else ((), ())
    is_changed = inventory_changed or bool(moves) or record.platform_changed
    if is_changed or record.secrets_written:
        recorded = replace(recorded, record=replace(stack.record, generation=stack.record.generation + 1))
    if is_changed:
        recorded = replace(
            recorded,
            resource_count=count,
            package_count=len(installed) if moves else stack.package_count,
            record=replace(recorded.record, sources=tuple(record.sources)),
            # A clock may be set back; ``update_time`` is never before ``create_time``.
            update_time=max(now, stack.update_time),
        )
    if plan and has_succeeded and (is_changed or plan.package_digest != stack.record.package_digest):
        revised = revisions.after(tx, operation, plan, moves, installed, recorded.record, request.leftover_count, now)
        recorded = replace(recorded, record=revised)
    tx.baselines.put(stack.record.id, kept_baselines)
    if moved:
        tx.baselines.rebind(stack.record.id, moved)
    if is_changed and record.is_in_sync and has_succeeded:
        drift_checks.after_apply(tx, recorded.record.id, recorded.record.generation, count, now)
    if stack.state is State.PENDING:
        # The stack gets the sources of the apply that created it, even if that apply had nothing to do.
        header = replace(recorded.record, sources=tuple(record.sources))
        recorded = replace(recorded, record=header, state=State.ACTIVE, create_time=now, update_time=now)
    if recorded is not stack:
        tx.stacks.update(recorded)
    return recorded


def _check_generation(stack: Stack, operation: Operation, base_generation: int) -> None:
    # While an operation holds the lease, only hand-overs by other stacks change the generation.
    moved = stack.record.generation - base_generation
    if not 0 <= moved <= operation.handed_over:
        raise StackMoved(stack.called, base_generation, stack.record.generation)
