"""
The end of an operation: what it left behind, and its lease given back, in one fenced write (engine.md 6).

An applier that got no answer sends it again: when it has taken effect and nobody worked on the stack since, it is
answered as it was before.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import orjson
import sqlite_utils

from services.core.errors import LeaseLost, RequestInvalid, StackMoved
from services.core.model import InventoryEntry
from services.engine.operation import FINISHED, OperationState
from stack_svc import events, inventory, leases, operations, plans, requests, stacks
from stack_svc.events import Event
from stack_svc.operations import NOT_BLOCKED, Blocks, Operation
from stack_svc.stacks import Stack, State


@dataclass(frozen=True, slots=True)
class Record:
    """The stack owns *resources* now; ``platform_changed`` moves the record even when they are the same as before."""

    resources: Collection[InventoryEntry]
    sources: Collection[str]
    platform_changed: bool


@dataclass(frozen=True, slots=True)
class Abandon:
    """The record stays as it is."""


@dataclass(frozen=True, slots=True)
class Remove:
    """The stack owns nothing any more and goes away."""


Outcome = Record | Abandon | Remove

LastEvent = Callable[[int], Event]
"""Makes the last event of an operation from the generation of its stack."""


@dataclass(frozen=True, slots=True)
class StalePlan:
    """A stored plan, and what it was made from that has changed."""

    plan: str
    problem: str


@dataclass(frozen=True, slots=True)
class Ending:
    """
    How an operation ended.

    Attributes:
        state: A finished one, or BLOCKED.
        outcome: What it left behind.
        base_generation: Generation that its plan was made from.
        cause: What failed; empty when nothing did.
        finished: Its last event, given the generation of the stack after it; None for an operation that did not start.
        blocks: What a BLOCKED operation is blocked by.
        stale: The plan that it was to run and that turned out to be stale; None for any other end.
    """

    state: OperationState
    outcome: Outcome
    base_generation: int
    cause: str
    finished: LastEvent | None
    blocks: Blocks = NOT_BLOCKED
    stale: StalePlan | None = None


_MAY_BECOME = {
    OperationState.PREPARING: {OperationState.FAILED},
    OperationState.APPLYING: {OperationState.SUCCEEDED, OperationState.ROLLED_BACK, OperationState.BLOCKED},
    OperationState.ROLLING_BACK: {OperationState.ROLLED_BACK, OperationState.BLOCKED},
}
"""Engine.md 4; a BLOCKED operation is where it was before, and one that is cancelled in time has nothing to undo."""

_MAY_LEAVE: dict[OperationState, tuple[type[Outcome], ...]] = {
    OperationState.SUCCEEDED: (Record, Abandon, Remove),
    OperationState.ROLLED_BACK: (Record, Abandon),
    OperationState.BLOCKED: (Abandon,),
    OperationState.FAILED: (Abandon,),
}
"""What is BLOCKED is not over: the record stays as it was when the operation began, and the journal says the rest."""


def finish(db: sqlite_utils.Database, stack_id: str, token: int, ending: Ending, now: int) -> int:
    """
    End the operation that has the lease with *token*.

    When the stack owns the same as before and the platform did not change either, generation, sources and update time
    stay as they are. A pending stack becomes an active one, made now, with the record of an operation that SUCCEEDED,
    or with one that lists resources; after any other end it goes away.

    Returns:
        Generation of the stack; 0 when it went away, now or before, and for an operation on behalf of none.

    Raises:
        LeaseLost: The lease is over.
        StackMoved: The plan was made from another generation.
        RequestInvalid: The operation cannot end so, or the resources of a record contradict each other.
        ResourceOwned: Another stack owns one of the resources.
    """
    operation = operations.with_token(db, stack_id, token)
    if operation is None:
        raise LeaseLost(stack_id, token)
    if not leases.holds(db, stack_id, token, now):
        return _finish_again(db, operation, ending)
    leases.release(db, stack_id, token, now)
    _check(operation, ending)
    if ending.state is not OperationState.BLOCKED:
        _leave(db, operation, ending, now)
    generation = _generation(db, stack_id)
    _end(db, operation, ending, generation, now)
    return generation


def _finish_again(db: sqlite_utils.Database, operation: Operation, ending: Ending) -> int:
    """The answer to an ending that was recorded before."""
    if operation.state is ending.state:
        if stacks.find(db, operation.stack) is None:
            # A record of success leaves a stack: somebody else has removed it since.
            if not (isinstance(ending.outcome, Record) and ending.state is OperationState.SUCCEEDED):
                return 0
        elif leases.was_given_back(db, operation.stack, operation.token):
            match ending.outcome:
                case Abandon():
                    return _generation(db, operation.stack)
                case Record(resources):
                    recorded = inventory.read(db, operation.stack)
                    if inventory.content(recorded) == inventory.content(resources):
                        return _generation(db, operation.stack)
    raise LeaseLost(operation.stack, operation.token)


def _generation(db: sqlite_utils.Database, stack_id: str) -> int:
    stack = stacks.find(db, stack_id)
    return stack.record.generation if stack else 0


def _check(operation: Operation, ending: Ending) -> None:
    going, state, outcome = operation.going, ending.state, ending.outcome
    if state not in _MAY_BECOME[going]:
        raise RequestInvalid("state", f"{operation.name} is {going} and cannot end {state}")
    if operation.sealed and state is OperationState.ROLLED_BACK:
        raise RequestInvalid("state", f"{operation.name} cannot end {state} past its point of no return")
    if not isinstance(outcome, _MAY_LEAVE[state]):
        raise RequestInvalid("outcome", f"{state} does not go with {type(outcome).__name__.lower()}")
    if operation.nameless and isinstance(outcome, Record):
        raise RequestInvalid("outcome", "an operation on behalf of no stack leaves no record; abandon it")
    if ending.finished is None and going is not OperationState.PREPARING:
        raise RequestInvalid("finished", f"{operation.name} started, so it has a last event")
    if ending.stale and state is not OperationState.FAILED:
        raise RequestInvalid("stale_plan", f"{operation.name} started, so its plan was not stale")


def _end(db: sqlite_utils.Database, operation: Operation, ending: Ending, generation: int, now: int) -> None:
    last_events = [ending.finished(generation)] if ending.finished else []
    changes = {
        "state": ending.state,
        "cause": ending.cause,
        "last_seq": events.append(db, operation.name, operation.last_seq, last_events),
    }
    operations.update(db, operation.name, changes, now)
    operations.unblock(db, operation.name)
    if ending.state is OperationState.BLOCKED:
        operations.block(db, operation.name, ending.blocks)
    if ending.state in FINISHED:
        plans.mark_applied(db, operation.name)
    if ending.state is OperationState.FAILED:
        requests.forget(db, operation.name)
    if ending.stale:
        plans.mark_stale(db, ending.stale.plan, ending.stale.problem)


def _leave(db: sqlite_utils.Database, operation: Operation, ending: Ending, now: int) -> None:
    stack = stacks.header(db, operation.stack)
    match ending.outcome:
        case Record() as record:
            _check_generation(stack, ending.base_generation)
            # What could not be taken back needs a stack that owns it.
            stays = stack.state is State.ACTIVE or ending.state is OperationState.SUCCEEDED or bool(record.resources)
            if stays:
                _record(db, stack, record, now)
        case Abandon():
            stays = stack.state is State.ACTIVE
        case Remove():
            _check_generation(stack, ending.base_generation)
            stays = False
    if not stays:
        stacks.drop(db, operation.stack)


def _record(db: sqlite_utils.Database, stack: Stack, record: Record, now: int) -> None:
    changes: dict[str, Any] = {}
    if inventory.write(db, stack.record.id, stack.record.target, record.resources) or record.platform_changed:
        changes |= {
            "generation": stack.record.generation + 1,
            "sources": orjson.dumps(list(record.sources)).decode(),
            # Clocks are set back at times; a record is never updated before it was made.
            "update_time": max(now, stack.update_time),
        }
    if stack.state is State.PENDING:
        changes |= {"state": State.ACTIVE, "create_time": now, "update_time": now}
    if changes:
        stacks.update(db, stack.record.id, changes)


def _check_generation(stack: Stack, base_generation: int) -> None:
    if stack.record.generation != base_generation:
        raise StackMoved(stack.called, base_generation, stack.record.generation)
