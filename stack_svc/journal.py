"""
The life of an operation, up to its end: it begins with a lease, and each of its writes is fenced by that
(docs/reference/engine.md, "Leases and fencing").

An applier that got no answer to a write sends it again, so each write that has taken effect already answers as it did
before: its position tells. The exception is a claim: nobody can tell the same applier from another task of it, so the
second one waits.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from services.core.errors import LeaseLost, OperationNotFound, PlanNotFound, PlanStale, RequestInvalid, StackExists
from services.core.model import OperationKind, Target
from services.engine.claims import Claim, Refusal
from services.engine.operation import FINISHED, OperationState
from stack_svc import claiming, leases, owners, plans, preparing, requests, stacks, texts, uses
from stack_svc.plans import NewPlan
from stack_svc.requests import Request
from stack_svc.store.journal import Row
from stack_svc.store.leases import Lease
from stack_svc.store.operations import NOT_BLOCKED, Operation
from stack_svc.store.plans import StoredPlan, Work
from stack_svc.store.stacks import Choice, Named, Stack, State
from stack_svc.store.store import Reading, Transaction

MOST_ABANDONED = 100
"""Operations in one answer (journal.proto)."""


@dataclass(frozen=True, slots=True)
class Planned:
    """The stack that a stored plan is for; *plan* is its name."""

    plan: str


@dataclass(frozen=True, slots=True)
class Beginning:
    """
    A new operation.

    Attributes:
        name: Its name.
        choice: The stack; a target: none, there.
        create_missing: A stack named by a name that does not exist is made, pending until the operation succeeds; one
            that an earlier operation left pending is taken over when that sent nothing and its lease ran out.
        kind: What it is for; None, as is *create_missing* false: as the plan of *choice* says.
        holder: Who works on it.
        ttl: Microseconds that the lease lasts without renewal.
        new_stack: Id of the stack that is made, if one is; that of a stored plan follows from the plan.
        request: The request that it is for.
        author: Who asks for it.
    """

    name: str
    choice: Choice | Target | Planned
    create_missing: bool
    kind: OperationKind | None
    holder: str
    ttl: int
    new_stack: str
    request: Request
    author: str = ""


@dataclass(frozen=True, slots=True)
class Begun:
    """An operation with the lease of its stack; ``plan`` is the stored one, or None."""

    stack: Stack
    lease: Lease
    operation: Operation
    plan: Work | None


@dataclass(frozen=True, slots=True)
class Write:
    """
    One write of an operation.

    Attributes:
        position: Its position.
        records: A ``pkger.journal.v1.StoredRecords`` in its wire format.
        events: A ``pkger.journal.v1.StoredEvents`` in its wire format.
        seqs: The seq of each of the events.
        steps: Numbers of the steps that records and events are about.
    """

    position: int
    records: bytes
    events: bytes
    seqs: Sequence[int]
    steps: Collection[int] = ()


@dataclass(frozen=True, slots=True)
class Advance:
    """
    What a write says beside records and events.

    Attributes:
        claims: What steps that are about to be sent, or what came of others, need for the operation alone.
        released: What it claimed and needs no more.
        done_count: Number of steps that are in effect.
        seal: Whether the operation passes the point of no return.
        rollback: Whether it turns back.
        cause: What failed; empty: as noted before.
    """

    claims: Sequence[Claim]
    released: Sequence[Claim]
    done_count: int
    seal: bool
    rollback: bool
    cause: str


@dataclass(frozen=True, slots=True)
class Advanced:
    """
    What a write came to.

    Attributes:
        cancel_requested: Whether somebody asked the operation to turn back.
        refused: The claims that somebody else is in the way of; if there is any, nothing was written.
    """

    cancel_requested: bool
    refused: Sequence[Refusal] = ()


@dataclass(frozen=True, slots=True)
class Claimed:
    """
    All that the journal knows of an operation.

    ``blocked_steps``, which only a BLOCKED one has, are as in ``Blocks.body``; ``rows`` are all of its writes.
    """

    stack: Stack
    lease: Lease
    operation: Operation
    blocked_steps: bytes
    plan: Work | None
    rows: Sequence[Row]


@dataclass(frozen=True, slots=True)
class Story:
    """Writes of an operation with events that somebody asked for, whether there are more, and how far it is."""

    rows: Sequence[Row]
    has_more: bool
    state: OperationState


def begin(tx: Transaction, wanted: Beginning) -> Begun | Operation:
    """
    Take the lease of a stack for a new operation.

    Returns:
        The operation with its lease; without one the operation that the same request began before.

    Raises:
        StackNotFound: There is no such stack and none is to be made.
        PlanNotFound: There is no such plan.
        RequestIdReused: The request id was used with other content.
        OperationNotFound: The operation of the request was too old to be kept.
        StackLeased: Another operation holds the lease.
        OperationUnfinished: Another operation on the stack waits to be recovered.
        PlanUsed: An operation ran the plan before.
        PlanStale: The plan was found to be stale.
        PlanExpired: The plan was not applied in time.
        RequestInvalid: The operation or its holder has no name, or one that is in use, the time of the lease is out of
            bounds, or the name is none for a stack.
    """
    for field, value in (("operation", wanted.name), ("holder", wanted.holder)):
        if not value:
            raise RequestInvalid(field, "must not be empty")
    planned = tx.plans.find(wanted.choice.plan) if isinstance(wanted.choice, Planned) else None
    choice, missing, kind = _as_planned(planned) if planned else _as_asked(wanted)
    found = None if isinstance(choice, Target) else tx.lock_stack(choice)
    earlier_name = requests.answered_name(tx, wanted.request)
    again, earlier = _lock_of(tx, wanted.name), _lock_of(tx, earlier_name)
    now = tx.now()
    plan = plans.as_of(planned, now) if planned else None
    if again:
        stack, lease = _begin_again(tx, again, existing(tx, wanted.name), choice, kind, wanted, now)
        return Begun(stack, lease, existing(tx, wanted.name), plans.work(tx, plan.name) if plan else None)
    if earlier and preparing.has_died(tx, existing(tx, earlier_name), now):
        # What the request began before came to nothing, so it may begin anew.
        preparing.end_dead(tx, earlier, now)
    elif made := requests.earlier_answer(tx, wanted.request, now):
        return existing(tx, made)
    new_id = stacks.id_for_plan(planned.name) if planned and missing else wanted.new_stack
    stack, lease = _stack_to_work_on(tx, found, choice, missing, new_id, now)
    lease = _taken(tx, stack, lease, wanted, now)
    if plan:
        plans.refuse_unusable(plan)
    operation = Operation(
        name=wanted.name,
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
        author=texts.checked_author(wanted.author),
    )
    if not tx.operations.insert(operation):
        raise RequestInvalid("operation", f"{wanted.name} exists already; choose another name")
    requests.remember(tx, wanted.request, wanted.name, now)
    return Begun(stack, lease, operation, plans.work(tx, plan.name) if plan else None)


def start(
    tx: Transaction, name: str, token: int, source: NewPlan | str, write: Write, claims: Sequence[Claim] = ()
) -> None:
    """
    Give an operation its plan, a new one or a stored one by name, its first event, and what the plan adopts and uses.

    Raises:
        ResourceOwned: Another stack has what the plan adopts, or takes away what it uses.
        OperationNotFound: There is no such operation.
        LeaseLost: The lease is over.
        RequestInvalid: It started with another plan before, or another plan has the name of the new one.
        PlanNotFound: There is no such plan.
        PlanUsed: An operation ran it before.
        PlanStale: It was found to be stale, or no stack owns any more what it uses.
        PlanExpired: It was not applied in time.
    """
    operation, _, now = fenced(tx, name, token)
    if operation.state is not OperationState.PREPARING:
        if operation.plan != _name_of(source) or (isinstance(source, NewPlan) and not plans.is_kept(tx, source)):
            raise RequestInvalid("plan", f"{name} started with another plan")
        row = tx.journal.row(name, write.position)
        if row and row.events != write.events:
            raise RequestInvalid("accepted", f"{name} started with another event")
        return
    if problem := uses.unowned(tx, operation.target, claims):
        raise PlanStale(_name_of(source), problem)
    if refused := claiming.claim(tx, operation, claims, now):
        raise owners.refusal(refused)
    match source:
        case NewPlan():
            plan = plans.insert_running(tx, source, name, now)
        case _:
            plan = plans.take(tx, source, name)
    state = OperationState.APPLYING
    tx.operations.update(appended(tx, operation, write, now, state=state, step_count=plan.step_count))


def advance(tx: Transaction, name: str, token: int, write: Write, change: Advance) -> Advanced:
    """
    Append a write to the journal of an operation that started, unless somebody else has what it claims.

    Raises:
        OperationNotFound: There is no such operation.
        LeaseLost: The lease is over.
        RequestInvalid: It did not start, lacks a write or an event before this one, has another write at the position,
            has no such step, or would turn back past its point of no return.
    """
    operation, _, now = fenced(tx, name, token)
    state = operation.going
    if state is OperationState.PREPARING:
        raise RequestInvalid("operation", f"{name} did not start")
    if is_repeated(tx, operation, write):
        return Advanced(operation.cancel_requested)
    sealed, rolling_back = operation.sealed or change.seal, operation.rolling_back or change.rollback
    if sealed and rolling_back:
        field = "rollback" if change.rollback else "seal"
        raise RequestInvalid(field, f"{name} cannot turn back past its point of no return")
    for step in (min(write.steps, default=0), max(write.steps, default=0)):
        if not 0 <= step < max(operation.step_count, 1):
            raise RequestInvalid("steps", f"there is no step {step} in a plan of {operation.step_count} steps")
    if not 0 <= change.done_count <= operation.step_count:
        raise RequestInvalid("done_count", f"{change.done_count} of {operation.step_count} steps cannot be in effect")
    if refused := claiming.claim(tx, operation, change.claims, now):
        return Advanced(operation.cancel_requested, refused)
    claiming.give_back(tx, operation, change.released)
    if operation.state is OperationState.BLOCKED:
        tx.operations.unblock(name)
    advanced = appended(
        tx,
        operation,
        write,
        now,
        state=OperationState.ROLLING_BACK if rolling_back else state,
        sealed=sealed,
        rolling_back=rolling_back,
        done_count=change.done_count,
        cause=texts.clean(change.cause) if change.rollback and change.cause else operation.cause,
        blocks=NOT_BLOCKED,
    )
    tx.operations.update(advanced)
    return Advanced(operation.cancel_requested)


def renew(tx: Transaction, name: str, token: int, ttl: int, raise_to: int = 0) -> tuple[int, bool]:
    """
    Let the lease of an operation last *ttl* microseconds from now, with the token *raise_to*; 0: it keeps its token.

    A retry is the same request: its *token* is the one before the raise, too.

    Returns:
        When it ends, and whether somebody asked the operation to turn back.

    Raises:
        OperationNotFound: There is no such operation.
        LeaseLost: It is over.
        RequestInvalid: *ttl* is out of bounds, or *raise_to* does not follow on *token*.
    """
    tx.lock_stack(tx.operations.stack_of(name) or "")
    now = tx.now()
    operation = existing(tx, name)
    lease = tx.leases.of(operation.stack)
    if lease and leases.is_raised(lease, token, raise_to):
        token, raise_to = raise_to, 0
    renewed = leases.renewed(_held(operation, lease, token, now), ttl, now)
    if raise_to:
        renewed = leases.raised(renewed, raise_to)
    tx.leases.put(operation.stack, renewed)
    tx.operations.update(replace(_heard_of(operation, now), token=renewed.token))
    return renewed.expires, operation.cancel_requested


def claim(tx: Transaction, name: str, holder: str, ttl: int) -> Claimed:
    """
    Take the lease of the stack of an unfinished operation. A BLOCKED one is so until its new holder writes.

    Raises:
        OperationNotFound: There is no such operation, or it is finished.
        StackLeased: Somebody works on it.
        RequestInvalid: *holder* is empty, or *ttl* is out of bounds.
    """
    if not holder:
        raise RequestInvalid("holder", "must not be empty")
    stack_id = tx.operations.stack_of(name) or ""
    stack = tx.lock_stack(stack_id)
    now = tx.now()
    operation, last = unfinished(tx, name), tx.leases.of(stack_id)
    if stack is None or last is None:
        raise OperationNotFound(name)
    lease = leases.acquired(last, stack, texts.clean(holder), name, ttl, now)
    tx.leases.put(stack_id, lease)
    # Whoever recovers a BLOCKED operation believes that what blocks it is mended.
    defects = 0 if operation.state is OperationState.BLOCKED else operation.defects
    claimed = replace(_heard_of(operation, now), holder=lease.holder, token=lease.token, defects=defects)
    tx.operations.update(claimed)
    plan = plans.work(tx, operation.plan) if operation.plan else None
    return Claimed(stack, lease, claimed, tx.operations.blocked_steps(name), plan, tx.journal.rows(name))


def request_cancel(tx: Transaction, name: str) -> Operation:
    """
    Note that an operation is to turn back. That is no word of its applier, so its update time stays.

    Returns:
        The operation.

    Raises:
        OperationNotFound: There is no such operation, or it is finished.
    """
    tx.lock_stack(tx.operations.stack_of(name) or "")
    cancelled = replace(unfinished(tx, name), cancel_requested=True)
    tx.operations.update(cancelled)
    return cancelled


def told(reading: Reading, name: str, after_seq: int, most_bytes: int) -> Story:
    """
    What happened in an operation after the event *after_seq*: events of *most_bytes* or a few more.

    Raises:
        OperationNotFound: There is no such operation.
    """
    operation = existing(reading, name)
    rows, has_more = reading.journal.rows_after(name, after_seq, most_bytes)
    return Story(rows, has_more, operation.state)


def existing(reading: Reading, name: str) -> Operation:
    """
    The operation of that name.

    Raises:
        OperationNotFound: There is none.
    """
    operation = reading.operations.find(name)
    if operation is None:
        raise OperationNotFound(name)
    return operation


def unfinished(reading: Reading, name: str) -> Operation:
    """
    The operation of that name.

    Raises:
        OperationNotFound: There is none, or it is finished.
    """
    operation = existing(reading, name)
    if operation.state in FINISHED:
        raise OperationNotFound(name)
    return operation


def fenced(tx: Transaction, name: str, token: int) -> tuple[Operation, Lease, int]:
    """
    Lock an operation for a write by the holder of its lease.

    Returns:
        The operation, its lease, and the time.

    Raises:
        OperationNotFound: There is no such operation.
        LeaseLost: The lease is over.
    """
    tx.lock_stack(tx.operations.stack_of(name) or "")
    now = tx.now()
    operation = existing(tx, name)
    return operation, _held(operation, tx.leases.of(operation.stack), token, now), now


def is_repeated(reading: Reading, operation: Operation, write: Write) -> bool:
    """
    Whether a write was made before, so that its answer was lost.

    Raises:
        RequestInvalid: Another write has its position, or one before it is missing.
    """
    if write.position == operation.position + 1:
        return False
    row = reading.journal.row(operation.name, write.position)
    if row and (row.records, row.events) == (write.records, write.events):
        return True
    raise RequestInvalid(
        "position", f"{operation.name} goes on at {operation.position + 1}; at {write.position} is no such write"
    )


def appended(tx: Transaction, operation: Operation, write: Write, now: int, **changes: Any) -> Operation:
    """
    Append a write to a journal.

    Returns:
        The operation after it, with *changes* of its attributes, for the caller to update.

    Raises:
        RequestInvalid: An event is missing before one of these.
    """
    last_seq = operation.last_seq
    for seq in write.seqs:
        if seq != last_seq + 1:
            raise RequestInvalid("events", f"seq {seq} does not go on where the last event ended, at {last_seq}")
        last_seq = seq
    tx.journal.append(operation.name, Row(write.position, operation.token, last_seq, write.records, write.events, now))
    heard = max(operation.update_time, now)
    return replace(operation, update_time=heard, position=write.position, last_seq=last_seq, **changes)


def _held(operation: Operation, lease: Lease | None, token: int, now: int) -> Lease:
    if operation.token != token:
        raise LeaseLost(operation.stack, token)
    return leases.check(lease, operation.stack, token, now)


def _lock_of(tx: Transaction, operation: str) -> Stack | None:
    """Lock the stack of an operation; None: there is no such operation, or its stack is gone."""
    stack = tx.operations.stack_of(operation) if operation else None
    return tx.lock_stack(stack) if stack else None


def _heard_of(operation: Operation, now: int) -> Operation:
    """*operation*, of whose applier the store heard now; clocks are set back at times."""
    return replace(operation, update_time=max(operation.update_time, now))


def _name_of(source: NewPlan | str) -> str:
    return source.name if isinstance(source, NewPlan) else source


def _as_asked(wanted: Beginning) -> tuple[Choice | Target, Named | None, OperationKind]:
    """What an operation is about, the stack to make if there is none, and its kind."""
    if isinstance(wanted.choice, Planned):
        raise PlanNotFound(wanted.choice.plan)
    if wanted.kind is None:
        raise RequestInvalid("kind", "must be set")
    missing = wanted.choice if wanted.create_missing and isinstance(wanted.choice, Named) else None
    return wanted.choice, missing, wanted.kind


def _as_planned(plan: StoredPlan) -> tuple[Choice | Target, Named | None, OperationKind]:
    """Likewise, as *plan* says."""
    named = Named(plan.target, plan.stack_name)
    if plan.stack:
        return plan.stack, None, plan.kind
    if plan.creates_nameless_stack:
        # An earlier operation of the plan may have made it, and died.
        return stacks.id_for_plan(plan.name), named, plan.kind
    return (named, named, plan.kind) if plan.stack_name else (plan.target, None, plan.kind)


def _begin_again(
    tx: Transaction,
    stack: Stack,
    known: Operation,
    choice: Choice | Target,
    kind: OperationKind,
    wanted: Beginning,
    now: int,
) -> tuple[Stack, Lease]:
    """Answer as before, with the lease counted from now, as its holder does."""
    lease = tx.leases.of(known.stack)
    if (
        known.state is OperationState.PREPARING
        and (known.kind, known.holder) == (kind, texts.clean(wanted.holder))
        and choice == _choice_of(known, choice)
        and leases.holds(lease, known.token, now)
    ):
        assert lease is not None  # noqa: S101 - it lasts
        renewed = leases.renewed(lease, wanted.ttl, now)
        tx.leases.put(known.stack, renewed)
        return stack, renewed
    raise RequestInvalid("operation", f"{known.name} exists already ({known.state}); choose another name")


def _choice_of(known: Operation, like: Choice | Target) -> Choice | Target | None:
    """The stack of an operation, named in the same way as *like*; None when that is no way to name it."""
    match like:
        case Target():
            return known.target if known.stackless else None
        case Named():
            return Named(known.target, known.stack_name)
        case _:
            return known.stack


def _stack_to_work_on(
    tx: Transaction, found: Stack | None, choice: Choice | Target, missing: Named | None, new_id: str, now: int
) -> tuple[Stack, Lease]:
    """The stack with its last lease; made as *missing* if there is none and that is given."""
    if isinstance(choice, Target):
        made = stacks.new_stack(Named(choice, ""), new_id, "", State.STACKLESS, now)
    elif missing is None:
        stack = stacks.visible(found, choice)
        return stack, tx.leases.of(stack.record.id) or Lease()
    elif found:
        return found, tx.leases.of(found.record.id) or Lease()
    else:
        if missing.name or choice == missing:
            stacks.check_name(missing.name)
        made = stacks.new_stack(missing, new_id, "", State.PENDING, now)
    if not tx.stacks.insert(made):
        raise StackExists(made.called, made.record.target.org)
    return made, Lease()


def _taken(tx: Transaction, stack: Stack, last: Lease, wanted: Beginning, now: int) -> Lease:
    """The lease of *stack* for a new operation, once what died on it is out of the way."""
    lease = leases.acquired(last, stack, texts.clean(wanted.holder), wanted.name, wanted.ttl, now)
    preparing.end_dead(tx, stack, now)
    tx.leases.put(stack.record.id, lease)
    return lease
