"""
Operations that the stack service blocks itself, as the holder of their lease cannot (docs/reference/engine.md, "Driver
answers").
"""

from collections.abc import Callable
from dataclasses import replace

from services.engine.operation import FINISHED, OperationState
from stack_svc.rules import leases, operations, sanitize, unstarted
from stack_svc.rules.operations import JournalWrite
from stack_svc.store.leases import Lease
from stack_svc.store.operations import Blocks, Operation
from stack_svc.store.stacks import Stack, State
from stack_svc.store.store import Transaction

MOST_DEFECTS = 3
"""Attempts to resume an operation that end with a defect before it is BLOCKED."""

STORE_RESTORED = 5
"""Number of the ``pkger.model.v1.BlockedReason``."""

RESTORED = "the store was restored from a backup; changes after the backup are unknown"

MakeEvent = Callable[[Operation, str, Stack | None, int], bytes]
"""
Makes the last event of a BLOCKED operation, as a ``pkger.journal.v1.StoredEvents`` in its wire format.

Its arguments are the operation before that event, its cause, its stack as clients see it (None: there is none), and the
time.
"""


def report_defect(
    tx: Transaction, operation_id: str, token: int, problem: str, blocks: Blocks, make_event: MakeEvent
) -> bytes:
    """
    Count a defect that ended an attempt to resume an operation, and release its lease.

    Args:
        tx: The transaction.
        operation_id: The operation.
        token: Fencing token of its lease.
        problem: The text of the defect.
        blocks: The open and the blocked steps; stored if the operation becomes BLOCKED.
        make_event: Makes its last event, if it becomes BLOCKED.

    Returns:
        That event; empty when it is not BLOCKED.

    Raises:
        OperationNotFound: There is no such operation.
        LeaseLost: The lease is over.
    """
    stack = tx.lock_stack(tx.operations.stack_of(operation_id) or "")
    operation, lease, now = operations.fenced(tx, operation_id, token)
    if operation.state is OperationState.BLOCKED and not blocks.step_count:
        # The steps that blocked it before still need decisions.
        blocks = blocks._replace(step_count=operation.blocks.step_count, body=tx.operations.blocked_steps(operation_id))
    return count_defect(tx, operation, lease, stack, problem, blocks, make_event, now)


def count_defect(
    tx: Transaction,
    operation: Operation,
    lease: Lease,
    stack: Stack | None,
    problem: str,
    blocks: Blocks,
    make_event: MakeEvent,
    now: int,
) -> bytes:
    """
    As ``report_defect``, for an *operation* whose *stack* is locked and whose *lease* is held.

    An operation that never started sent nothing and is not blocked: the next one on its stack ends it.
    """
    released, defects = leases.released(lease), operation.defects + 1
    is_blocked = operation.state is OperationState.BLOCKED
    if operation.state is OperationState.PREPARING or (not is_blocked and defects < MOST_DEFECTS):
        tx.leases.put(operation.stack, released)
        tx.operations.update(replace(operation, defects=defects))
        return b""
    times = "" if is_blocked else f", {defects} times in a row"
    cause = f"a defect keeps it from being resumed{times}: {sanitize.clean(problem)}"
    tx.leases.put(operation.stack, released)
    return _block(tx, operation, stack, cause, blocks, make_event, now)


def _block(
    tx: Transaction,
    operation: Operation,
    stack: Stack | None,
    cause: str,
    blocks: Blocks,
    make_event: MakeEvent,
    now: int,
) -> bytes:
    event = make_event(operation, cause, stack if stack and stack.state is State.ACTIVE else None, now)
    write = JournalWrite(operation.position + 1, b"", event, [operation.last_seq + 1])
    blocked = operations.appended(tx, operation, write, now, state=OperationState.BLOCKED, cause=cause)
    tx.operations.update(blocked)
    if operation.state is OperationState.BLOCKED:
        tx.operations.unblock(operation.id)
    tx.operations.block(operation.id, blocks)
    return event


def mark_restored(tx: Transaction, operation_id: str, make_event: MakeEvent) -> bool | None:
    """
    Block an operation of a store that was restored from a backup, or end it when it never started.

    Args:
        tx: The transaction.
        operation_id: The operation.
        make_event: Makes its last event.

    Returns:
        Whether it is BLOCKED now; None when nothing changed, as it is finished or was marked before.

    Raises:
        OperationNotFound: There is no such operation.
    """
    stack = tx.lock_stack(tx.operations.stack_of(operation_id) or "")
    now = tx.now()
    operation = operations.existing(tx, operation_id)
    if operation.state in FINISHED or operation.blocks.reason == STORE_RESTORED:
        return None
    lease = tx.leases.of(operation.stack) or Lease()
    blocks = Blocks(STORE_RESTORED, operation.blocks.step_count, tx.operations.blocked_steps(operation_id))
    tx.leases.put(operation.stack, leases.released(lease))
    if operation.state is OperationState.PREPARING:
        ended = replace(operation, state=OperationState.FAILED, cause=RESTORED, update_time=now)
        tx.operations.update(ended)
        unstarted.forget(tx, operation)
        return False
    cause = operation.cause
    if not cause.startswith(RESTORED):
        cause = f"{RESTORED}; before: {cause}" if cause else RESTORED
    _block(tx, operation, stack, cause, blocks, make_event, now)
    return True
