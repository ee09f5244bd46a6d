"""Changes that a watcher of a stack receives: the record when it changes, and the phases of operations on the stack."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from services.engine.operation import FINISHED, OperationState
from stack_svc.rules import reservations, stacks
from stack_svc.store.drift_checks import DriftCheck
from stack_svc.store.operations import Operation
from stack_svc.store.reservations import Reservation
from stack_svc.store.stacks import Choice, Stack, State
from stack_svc.store.store import ReadTransaction


class Phase(StrEnum):
    """The phases of an operation that watchers distinguish."""

    BEGUN = "begun"
    BLOCKED = "blocked"
    ENDED = "ended"


class WatchPosition(NamedTuple):
    """
    The last change that a watcher received.

    Attributes:
        stack: Id of the stack.
        record: Digest of its record as clients see it.
        operation: The last operation that began on the stack; empty: there was none.
        token: Fencing token of its last lease; a later operation has a higher one.
        phase: The phase in which it was.
    """

    stack: str = ""
    record: str = ""
    operation: str = ""
    token: int = 0
    phase: str = ""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """
    A stack at one moment.

    Attributes:
        stack: The stack; None: it has been removed.
        operations: The operations on it, in the order in which they began, from the last one that the watcher knows.
        drift: Its last drift detection; None: there was none.
        reservation: The action set that has it reserved; None: none has.
    """

    stack: Stack | None
    operations: Sequence[Operation]
    drift: DriftCheck | None = None
    reservation: Reservation | None = None


class PhaseChange(NamedTuple):
    """An operation on the stack began, was blocked or ended."""

    operation: Operation
    phase: Phase


def watched(reading: ReadTransaction, choice: Choice) -> Stack:
    """
    The stack of a new watcher.

    Raises:
        StackNotFound: There is none, or its first apply has not ended.
    """
    return stacks.active(reading.stacks.find(choice), choice)


def snapshot(reading: ReadTransaction, stack_id: str, position: WatchPosition) -> Snapshot:
    """A stack with the operations on it since *position*; for a new watcher, with the last operation only."""
    stack = reading.stacks.find(stack_id)
    if position.stack:
        operations = reading.operations.since(stack_id, position.token)
    else:
        last = reading.operations.last_on(stack_id)
        operations = [last] if last else []
    active = stack if stack and stack.state is State.ACTIVE else None
    reservation = reservations.of_stack(reading, active) if active else None
    return Snapshot(active, operations, reading.drift_checks.find(stack_id), reservation)


def changes(
    position: WatchPosition, seen: Snapshot, record: str
) -> Iterator[tuple[PhaseChange | Stack | None, WatchPosition]]:
    """
    The changes in *seen* that a watcher at *position* has not received.

    Args:
        position: The last change that it received; without a stack for a new watcher.
        seen: The stack as it is now.
        record: Digest of its record; ignored when it has been removed.

    Yields:
        A phase change, the record, or None when the stack has been removed, each with the position after it. A phase
        change comes before the record that the operation leaves; a new watcher gets the record first.
    """
    stack = seen.stack
    if not position.stack and stack:
        position = WatchPosition(stack.record.id, record)
        # Operations that ended before the watch began are not reported.
        for operation in seen.operations:
            if operation.state in FINISHED:
                position = _after(position, operation, Phase.ENDED)
        yield stack, position
    for operation in seen.operations:
        for phase in _new_phases(position, operation):
            position = _after(position, operation, phase)
            yield PhaseChange(operation, phase), position
        # An operation in the same phase may have another lease.
        if position.operation == operation.id:
            position = position._replace(token=operation.token)
    if stack is None:
        yield None, position
    elif position.record != record:
        position = position._replace(record=record)
        yield stack, position


def _new_phases(position: WatchPosition, operation: Operation) -> list[Phase]:
    """The phases that *operation* has reached since *position*, in order."""
    phase = _phase(operation)
    if position.operation != operation.id:
        return [Phase.BEGUN] if phase is Phase.BEGUN else [Phase.BEGUN, phase]
    if phase is Phase.BLOCKED:
        # A recovered operation that is BLOCKED again has another lease.
        return [phase] if (position.phase, position.token) != (phase, operation.token) else []
    return [phase] if phase is Phase.ENDED and position.phase != phase else []


def _phase(operation: Operation) -> Phase:
    if operation.state in FINISHED:
        return Phase.ENDED
    return Phase.BLOCKED if operation.state is OperationState.BLOCKED else Phase.BEGUN


def _after(position: WatchPosition, operation: Operation, phase: Phase) -> WatchPosition:
    return position._replace(operation=operation.id, token=operation.token, phase=str(phase))
