"""What a watcher of a stack is told: the record when it changes, and what becomes of the operations on the stack."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from services.engine.operation import FINISHED, OperationState
from stack_svc import stacks
from stack_svc.store.looks import Look as DriftLook
from stack_svc.store.operations import Operation
from stack_svc.store.stacks import Choice, Stack, State
from stack_svc.store.store import Reading


class Phase(StrEnum):
    """How far an operation is, as far as watchers are told."""

    BEGUN = "begun"
    BLOCKED = "blocked"
    ENDED = "ended"


class Position(NamedTuple):
    """
    What a watcher was told last.

    Attributes:
        stack: Id of the stack.
        record: Digest of its record as others see it.
        operation: The last operation on the stack that began; empty: there was none.
        token: That of its last lease; a later operation has a higher one.
        phase: How far it was.
    """

    stack: str = ""
    record: str = ""
    operation: str = ""
    token: int = 0
    phase: str = ""


@dataclass(frozen=True, slots=True)
class Look:
    """
    A stack at one moment.

    Attributes:
        stack: The stack; None: it is gone.
        operations: Those on it from the last one that the watcher knows on, in the order in which they began.
        drift: The last look for drift; None: there was none.
    """

    stack: Stack | None
    operations: Sequence[Operation]
    drift: DriftLook | None = None


class Happened(NamedTuple):
    """An operation on the stack began, was blocked or ended."""

    operation: Operation
    phase: Phase


def watched(reading: Reading, choice: Choice) -> Stack:
    """
    The stack that somebody begins to watch.

    Raises:
        StackNotFound: There is none, or its first apply is not over.
    """
    return stacks.active(reading.stacks.find(choice), choice)


def look(reading: Reading, stack_id: str, position: Position) -> Look:
    """How a stack is, and what happened on it since *position*; from the start, only an operation at work counts."""
    found = reading.stacks.find(stack_id)
    if position.stack:
        operations = reading.operations.since(stack_id, position.token)
    else:
        last = reading.operations.last_on(stack_id)
        operations = [last] if last else []
    return Look(found if found and found.state is State.ACTIVE else None, operations, reading.looks.find(stack_id))


def changes(position: Position, seen: Look, record: str) -> Iterator[tuple[Happened | Stack | None, Position]]:
    """
    What a watcher at *position* is told of what was *seen*.

    Args:
        position: What it was told last; one without a stack: nothing.
        seen: The stack as it is.
        record: Digest of its record; of no account when it is gone.

    Yields:
        What happened, the record, or None when the stack is gone, each with the position after it. An operation comes
        before the record that it leaves behind, but from the start the record comes first.
    """
    stack = seen.stack
    if not position.stack and stack:
        position = Position(stack.record.id, record)
        # What was over before is no news.
        for operation in seen.operations:
            if operation.state in FINISHED:
                position = _after(position, operation, Phase.ENDED)
        yield stack, position
    for operation in seen.operations:
        for phase in _news(position, operation):
            position = _after(position, operation, phase)
            yield Happened(operation, phase), position
        # Without news, it may have another lease.
        if position.operation == operation.name:
            position = position._replace(token=operation.token)
    if stack is None:
        yield None, position
    elif position.record != record:
        position = position._replace(record=record)
        yield stack, position


def _news(position: Position, operation: Operation) -> list[Phase]:
    """What happened to *operation* since *position*, in order."""
    phase = _phase(operation)
    if position.operation != operation.name:
        return [Phase.BEGUN] if phase is Phase.BEGUN else [Phase.BEGUN, phase]
    if phase is Phase.BLOCKED:
        # One that was recovered has another lease.
        return [phase] if (position.phase, position.token) != (phase, operation.token) else []
    return [phase] if phase is Phase.ENDED and position.phase != phase else []


def _phase(operation: Operation) -> Phase:
    if operation.state in FINISHED:
        return Phase.ENDED
    return Phase.BLOCKED if operation.state is OperationState.BLOCKED else Phase.BEGUN


def _after(position: Position, operation: Operation, phase: Phase) -> Position:
    return position._replace(operation=operation.name, token=operation.token, phase=str(phase))
