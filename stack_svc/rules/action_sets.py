"""Action sets: how they are created, read and deleted. As operations, they run by the rules of ``operations``."""

from dataclasses import dataclass
from zlib import decompress

from pkger.journal.v1 import action_set_pb2

from services.core.errors import (
    ActionSetExists,
    ActionSetHasSnapshots,
    ActionSetNotFound,
    ActionSetUnfinished,
    LimitReached,
)
from services.engine.operation import FINISHED, OperationState
from services.rpc.convert.objects import target_from_pb
from stack_svc.rules import snapshots
from stack_svc.store.action_sets import StoredActionSet
from stack_svc.store.journal import Row
from stack_svc.store.operations import Operation
from stack_svc.store.snapshots import StoredSnapshot
from stack_svc.store.stacks import StackName
from stack_svc.store.store import ReadTransaction, Transaction

MOST_UNFINISHED = 1000
"""Largest number of unfinished action sets in a store."""


@dataclass(frozen=True, slots=True)
class NewActionSet:
    """
    An action set to be created.

    Attributes:
        header: What lists show of it.
        body: What it is to run: a ``pkger.journal.v1.NewActionSet`` in its wire format, compressed.
        reserved: The stacks that it reserves before its first phase.
        snapshots: The ids of its input snapshots.
    """

    header: StoredActionSet
    body: bytes
    reserved: tuple[StackName, ...]
    snapshots: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WholeActionSet:
    """
    An action set with its journal.

    Attributes:
        body: What it is to run, as in ``NewActionSet``.
        operation: Its operation.
        rows: The writes of its journal, in order.
        deleted: The deleted snapshots that it made or used.
        unknown: The ids of input snapshots that the store does not have any more.
    """

    body: bytes
    operation: Operation
    rows: list[Row]
    deleted: list[StoredSnapshot]
    unknown: list[str]


def create(tx: Transaction, operation: Operation, action_set: NewActionSet) -> None:
    """
    Create the action set of *operation*, which starts.

    Raises:
        ActionSetExists: Another one has its name.
        ArtifactGone: One of its snapshots is deleted, or does not exist.
        LimitReached: The store has as many unfinished ones as it may have.
    """
    unfinished_count = tx.action_sets.unfinished_count()
    if not tx.action_sets.insert(action_set.header, action_set.body):
        raise ActionSetExists(action_set.header.name)
    if unfinished_count >= MOST_UNFINISHED:
        raise LimitReached("store", MOST_UNFINISHED)
    if action_set.snapshots:
        snapshots.use(tx, operation, action_set.snapshots)


def body_of(reading: ReadTransaction, operation: Operation) -> bytes:
    """What the action set of an operation is to run, as in ``NewActionSet.body``; empty when it has none."""
    return reading.action_sets.body(operation.action_set) if operation.action_set else b""


def reserved_stacks(reading: ReadTransaction, operation_id: str) -> tuple[StackName, ...]:
    """The stacks that the action set of an operation reserves; none when it has no action set."""
    operation = reading.operations.find(operation_id)
    body = body_of(reading, operation) if operation else b""
    return reserved_of(message_of(body)) if body else ()


def message_of(body: bytes) -> action_set_pb2.NewActionSet:
    """The message in a ``NewActionSet.body``."""
    return action_set_pb2.NewActionSet.FromString(decompress(body))


def reserved_of(message: action_set_pb2.NewActionSet) -> tuple[StackName, ...]:
    """The stacks that an action set reserves."""
    return tuple(StackName(target_from_pb(each.target), each.name) for each in message.reserved)


def existing(reading: ReadTransaction, name: str) -> StoredActionSet:
    """
    Read an action set.

    Raises:
        ActionSetNotFound: There is none.
    """
    action_set = reading.action_sets.find(name)
    if action_set is None:
        raise ActionSetNotFound(name)
    return action_set


def whole(reading: ReadTransaction, name: str) -> WholeActionSet:
    """
    Read an action set with its journal.

    Raises:
        ActionSetNotFound: There is none.
    """
    operation = _operation_of(reading, existing(reading, name))
    body = reading.action_sets.body(name)
    used = reading.snapshots.used_by(operation.id)
    unknown = sorted({*message_of(body).snapshots} - {each.id for each in used})
    deleted = [each for each in used if each.delete_time is not None]
    return WholeActionSet(body, operation, reading.journal.rows(operation.id), deleted, unknown)


def delete(tx: Transaction, name: str, force: bool) -> None:
    """
    Remove an action set with its operation.

    Args:
        tx: The transaction.
        name: Its name.
        force: Whether to remove it although it is BLOCKED, and with the snapshots that it made.

    Raises:
        ActionSetNotFound: There is none.
        ActionSetUnfinished: It has not ended.
        ActionSetHasSnapshots: It made snapshots that are not deleted.
    """
    stack = _operation_of(tx, existing(tx, name)).stack
    locked = tx.lock_stack(stack)
    now = tx.now()
    operation = _operation_of(tx, existing(tx, name))
    is_blocked = operation.state is OperationState.BLOCKED
    if operation.state not in FINISHED and not (force and is_blocked):
        raise ActionSetUnfinished(name, operation.id, operation.state)
    live = tx.snapshots.made_by(operation.id)
    if live and not force:
        raise ActionSetHasSnapshots(name, live)
    for snapshot in live:
        tx.snapshots.delete(snapshot, now, "")
    if operation.state not in FINISHED:
        tx.reservations.drop(operation.id)
        tx.snapshots.release(operation.id)
    tx.operations.delete(operation.id)
    if locked:
        tx.stacks.delete(stack)


def _operation_of(reading: ReadTransaction, action_set: StoredActionSet) -> Operation:
    operation = reading.operations.find(action_set.operation)
    if operation is None:
        raise ActionSetNotFound(action_set.name)
    return operation
