"""
The life of an operation, up to its end: it begins with a lease, and each of its writes is fenced by that (engine.md 6).

An applier that got no answer to a write sends it again, so each write that has taken effect already answers as it did
before. The exception is a claim: nobody can tell the same applier from another task of it, so the second one waits.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlite_utils

from services.core.errors import LeaseLost, RequestInvalid
from services.core.model import OperationKind, Target
from services.engine.operation import OperationState
from services.engine.step_life import StepRecord
from stack_svc import events, leases, operations, plans, requests, stacks, steps
from stack_svc.events import Event
from stack_svc.leases import Lease
from stack_svc.operations import Operation
from stack_svc.plans import NewPlan, StoredPlan, Work
from stack_svc.stacks import Choice, Named, Stack, State


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
        request_id: Id of the request that it is for; empty: the request has none.
        request_digest: Digest of the content of that request.
    """

    name: str
    choice: Choice | Target | Planned
    create_missing: bool
    kind: OperationKind | None
    holder: str
    ttl: int
    request_id: str = ""
    request_digest: str = ""


@dataclass(frozen=True, slots=True)
class Begun:
    """An operation with the lease of its stack; ``plan`` is the stored one, or None."""

    stack: Stack
    lease: Lease
    operation: Operation
    plan: Work | None


@dataclass(frozen=True, slots=True)
class Claimed:
    """
    All that the journal knows of an operation.

    ``blocked_steps``, which only a BLOCKED one has, are as in ``operations.Blocks``, ``steps`` are sorted by step.
    """

    stack: Stack
    lease: Lease
    operation: Operation
    blocked_steps: bytes
    plan: Work | None
    steps: list[StepRecord]


@dataclass(frozen=True, slots=True)
class Story:
    """Some events of an operation in their wire format, and how far it is."""

    bodies: list[bytes]
    has_more: bool
    state: OperationState


def begin(db: sqlite_utils.Database, wanted: Beginning, now: int) -> Begun | Operation:
    """
    Take the lease of a stack for a new operation; *db* is in a write transaction.

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
    plan = plans.existing(db, wanted.choice.plan, now) if isinstance(wanted.choice, Planned) else None
    choice, create_missing, kind = _as_planned(plan) if plan else _as_asked(wanted)
    known = operations.find(db, wanted.name)
    if known:
        stack, lease = _begin_again(db, known, choice, kind, wanted.holder, wanted.ttl, now)
        return _begun(db, wanted.name, stack, lease, plan)
    operations.end_dead(db, now)
    stacks.drop_nameless(db)
    made = wanted.request_id and requests.earlier_answer(db, wanted.request_id, [wanted.request_digest], now)
    if made:
        return operations.existing(db, made)
    stack = _stack_to_work_on(db, choice, create_missing, now)
    stack_id, target = stack.record.id, stack.record.target
    lease = leases.acquire(db, stack_id, stack.called, wanted.holder, wanted.name, wanted.ttl, now)
    operations.refuse_unfinished(db, stack_id, stack.called)
    if plan:
        plans.refuse_unusable(plan)
    nameless, stack_name = stack.state is State.NAMELESS, stack.record.name
    operations.insert(db, wanted.name, stack_id, nameless, stack_name, target, kind, wanted.holder, lease.token, now)
    if wanted.request_id:
        requests.remember(db, wanted.request_id, [wanted.request_digest], wanted.name, now)
    return _begun(db, wanted.name, stacks.whole(db, stack_id), lease, plan)


def start(db: sqlite_utils.Database, name: str, token: int, source: NewPlan | str, accepted: Event, now: int) -> None:
    """
    Give an operation its plan, a new one or a stored one by name, and its first event.

    Raises:
        OperationNotFound: There is no such operation.
        LeaseLost: The lease is over.
        RequestInvalid: It started with another plan before, or another plan has the name of the new one.
        PlanNotFound: There is no such plan.
        PlanUsed: An operation ran it before.
        PlanStale: It was found to be stale.
        PlanExpired: It was not applied in time.
    """
    operation = _fenced(db, name, token, now)
    if operation.state is not OperationState.PREPARING:
        if operation.plan != _name_of(source) or (isinstance(source, NewPlan) and not plans.is_kept(db, source)):
            raise RequestInvalid("plan", f"{name} started with another plan")
        return
    if isinstance(source, NewPlan):
        plans.insert_running(db, source, name, now)
        step_count = source.step_count
    else:
        step_count = plans.take(db, source, name, now).step_count
    last_seq = events.append(db, name, operation.last_seq, [accepted])
    changes = {"state": OperationState.APPLYING, "step_count": step_count, "last_seq": last_seq}
    operations.update(db, name, changes, now)


def advance(
    db: sqlite_utils.Database,
    name: str,
    token: int,
    records: Sequence[StepRecord],
    new_events: Sequence[Event],
    seal: bool,
    rollback: bool,
    cause: str,
    now: int,
) -> bool:
    """
    Note what is known of steps, and what happened.

    Args:
        db: In a write transaction.
        name: Name of the operation, which started.
        token: Fencing token of its lease.
        records: Outcomes of what was sent, and intents of what is about to be.
        new_events: Events to append.
        seal: Whether it passes the point of no return.
        rollback: Whether it turns back.
        cause: What failed; empty: as noted before.
        now: The time.

    Returns:
        Whether somebody asked the operation to turn back.

    Raises:
        OperationNotFound: There is no such operation.
        LeaseLost: The lease is over.
        RequestInvalid: It did not start, has no such step, lacks an event before these, or would turn back past its
            point of no return.
    """
    operation = _fenced(db, name, token, now)
    state = operation.going
    if state is OperationState.PREPARING:
        raise RequestInvalid("operation", f"{name} did not start")
    sealed, rolling_back = operation.sealed or seal, operation.rolling_back or rollback
    if sealed and rolling_back:
        raise RequestInvalid("rollback" if rollback else "seal", f"{name} cannot turn back past its point of no return")
    if operation.state is OperationState.BLOCKED:
        operations.unblock(db, name)
    done = steps.write(db, name, operation.step_count, records)
    changes: dict[str, Any] = {
        "state": OperationState.ROLLING_BACK if rolling_back else state,
        "sealed": sealed,
        "rolling_back": rolling_back,
        "done_count": operation.done_count + done,
        "last_seq": events.append(db, name, operation.last_seq, new_events),
    }
    if rollback and cause:
        changes["cause"] = cause
    operations.update(db, name, changes, now)
    return operation.cancel_requested


def renew(db: sqlite_utils.Database, stack_id: str, token: int, ttl: int, now: int) -> tuple[int, bool]:
    """
    Let a lease last *ttl* microseconds from now.

    Returns:
        When it ends, and whether somebody asked the operation that holds it to turn back.

    Raises:
        LeaseLost: It is over.
        RequestInvalid: *ttl* is out of bounds.
    """
    expires = leases.renew(db, stack_id, token, ttl, now)
    operation = operations.with_token(db, stack_id, token)
    if operation is None:
        raise LeaseLost(stack_id, token)
    operations.update(db, operation.name, {}, now)
    return expires, operation.cancel_requested


def claim(db: sqlite_utils.Database, name: str, holder: str, ttl: int, now: int) -> Claimed:
    """
    Take the lease of the stack of an unfinished operation. A BLOCKED one is so until its new holder writes.

    Raises:
        OperationNotFound: There is no such operation, or it is finished.
        StackLeased: Somebody works on it.
        RequestInvalid: *holder* is empty, or *ttl* is out of bounds.
    """
    if not holder:
        raise RequestInvalid("holder", "must not be empty")
    operation = operations.unfinished(db, name)
    stack = stacks.whole(db, operation.stack)
    lease = leases.acquire(db, operation.stack, stack.called, holder, name, ttl, now)
    operations.update(db, name, {"holder": holder, "token": lease.token}, now)
    plan = plans.work(db, operation.plan) if operation.plan else None
    blocked_steps = operations.blocked_steps(db, name)
    return Claimed(stack, lease, operations.existing(db, name), blocked_steps, plan, steps.read(db, name))


def request_cancel(db: sqlite_utils.Database, name: str) -> None:
    """
    Note that an operation is to turn back. That is no word of its applier, so its update time stays.

    Raises:
        OperationNotFound: There is no such operation, or it is finished.
    """
    operation = operations.unfinished(db, name)
    db.table("operations").update(operation.name, {"cancel_requested": True})


def told(db: sqlite_utils.Database, name: str, after_seq: int, most_bytes: int) -> Story:
    """
    What happened in an operation after the event *after_seq*, as much as fits into *most_bytes*.

    Raises:
        OperationNotFound: There is no such operation.
    """
    operation = operations.existing(db, name)
    bodies, has_more = events.read(db, name, after_seq, most_bytes)
    return Story(bodies, has_more, operation.state)


def _name_of(source: NewPlan | str) -> str:
    return source.name if isinstance(source, NewPlan) else source


def _as_asked(wanted: Beginning) -> tuple[Choice | Target, bool, OperationKind]:
    if wanted.kind is None or isinstance(wanted.choice, Planned):
        raise RequestInvalid("kind", "must be set")
    return wanted.choice, wanted.create_missing, wanted.kind


def _as_planned(plan: StoredPlan) -> tuple[Choice | Target, bool, OperationKind]:
    if plan.stack:
        return plan.stack, False, plan.kind
    return (Named(plan.target, plan.stack_name) if plan.stack_name else plan.target), True, plan.kind


def _begun(db: sqlite_utils.Database, name: str, stack: Stack, lease: Lease, plan: StoredPlan | None) -> Begun:
    return Begun(stack, lease, operations.existing(db, name), plans.work(db, plan.name) if plan else None)


def _begin_again(
    db: sqlite_utils.Database,
    known: Operation,
    choice: Choice | Target,
    kind: OperationKind,
    holder: str,
    ttl: int,
    now: int,
) -> tuple[Stack, Lease]:
    """Answer as before, with the lease counted from now, as its holder does."""
    if (
        known.state is OperationState.PREPARING
        and (known.kind, known.holder) == (kind, holder)
        and choice == _choice_of(known, choice)
        and leases.holds(db, known.stack, known.token, now)
    ):
        expires = leases.renew(db, known.stack, known.token, ttl, now)
        return stacks.whole(db, known.stack), Lease(known.token, expires)
    raise RequestInvalid("operation", f"{known.name} exists already ({known.state}); choose another name")


def _choice_of(known: Operation, like: Choice | Target) -> Choice | Target | None:
    """The stack of an operation, named in the same way as *like*; None when that is no way to name it."""
    match like:
        case Target():
            return known.target if known.nameless else None
        case Named():
            return Named(known.target, known.stack_name)
        case _:
            return known.stack


def _stack_to_work_on(db: sqlite_utils.Database, choice: Choice | Target, create_missing: bool, now: int) -> Stack:
    if isinstance(choice, Target):
        return stacks.insert(db, Named(choice, ""), "", State.NAMELESS, now)
    if not (create_missing and isinstance(choice, Named)):
        return stacks.header(db, choice)
    return stacks.find(db, choice) or stacks.insert(db, choice, "", State.PENDING, now)


def _fenced(db: sqlite_utils.Database, name: str, token: int, now: int) -> Operation:
    """The operation, for a write by the holder of its lease."""
    operation = operations.existing(db, name)
    if operation.token != token:
        raise LeaseLost(operation.stack, token)
    leases.check(db, operation.stack, token, now)
    return operation
