"""
Operations that the store blocks by itself, as whoever holds their lease cannot (docs/reference/engine.md, "Driver
answers").
"""

from collections.abc import Callable
from dataclasses import replace

from services.engine.operation import FINISHED, OperationState
from stack_svc import journal, leases, texts
from stack_svc.journal import Write
from stack_svc.store.leases import Lease
from stack_svc.store.operations import Blocks, Operation
from stack_svc.store.stacks import Stack, State
from stack_svc.store.store import Transaction

MOST_DEFECTS = 3
"""Attempts to resume an operation that a defect ends, until it is BLOCKED."""

STORE_RESTORED = 5
"""Number of the ``pkger.model.v1.BlockedReason``."""

RESTORED = "the store was restored from a backup; nobody knows what became of it since"

Told = Callable[[Operation, str, Stack | None, int], bytes]
"""
Makes the last event of an operation that is BLOCKED, as a ``pkger.journal.v1.StoredEvents`` in its wire format, of: the
operation before that event, its cause, its stack as others see it (None: there is none), and the time.
"""


def report_defect(tx: Transaction, name: str, token: int, problem: str, blocks: Blocks, told: Told) -> bytes:
    """
    Count a defect that ended an attempt to resume an operation, and give its lease back.

    Args:
        tx: The transaction.
        name: The operation.
        token: Of its lease.
        problem: The text of the defect.
        blocks: The steps that are open or blocked, for the case that it is BLOCKED.
        told: Makes its last event then.

    Returns:
        That event; empty when it is not BLOCKED.

    Raises:
        OperationNotFound: There is no such operation.
        LeaseLost: The lease is over.
    """
    stack = tx.lock_stack(tx.operations.stack_of(name) or "")
    operation, lease, now = journal.fenced(tx, name, token)
    if operation.state is OperationState.BLOCKED and not blocks.step_count:
        # What it was blocked by before is not decided yet.
        blocks = blocks._replace(step_count=operation.blocks.step_count, body=tx.operations.blocked_steps(name))
    return count_defect(tx, operation, lease, stack, problem, blocks, told, now)


def count_defect(
    tx: Transaction,
    operation: Operation,
    lease: Lease,
    stack: Stack | None,
    problem: str,
    blocks: Blocks,
    told: Told,
    now: int,
) -> bytes:
    """
    As ``report_defect``, for an *operation* whose *stack* is locked and whose *lease* is held.

    An operation that never started sent nothing: it gives way to the next one on its stack.
    """
    given_back, defects = leases.given_back(lease), operation.defects + 1
    is_blocked = operation.state is OperationState.BLOCKED
    if operation.state is OperationState.PREPARING or (not is_blocked and defects < MOST_DEFECTS):
        tx.leases.put(operation.stack, given_back)
        tx.operations.update(replace(operation, defects=defects))
        return b""
    times = "" if is_blocked else f", {defects} times in a row"
    cause = f"a defect keeps it from being resumed{times}: {texts.clean(problem)}"
    tx.leases.put(operation.stack, given_back)
    return _block(tx, operation, stack, cause, blocks, told, now)


def _block(
    tx: Transaction, operation: Operation, stack: Stack | None, cause: str, blocks: Blocks, told: Told, now: int
) -> bytes:
    event = told(operation, cause, stack if stack and stack.state is State.ACTIVE else None, now)
    write = Write(operation.position + 1, b"", event, [operation.last_seq + 1])
    blocked = journal.appended(tx, operation, write, now, state=OperationState.BLOCKED, cause=cause)
    tx.operations.update(blocked)
    if operation.state is OperationState.BLOCKED:
        tx.operations.unblock(operation.name)
    tx.operations.block(operation.name, blocks)
    return event


def mark_restored(tx: Transaction, name: str, told: Told) -> bool | None:
    """
    Block an operation of a store that was restored from a backup, or end it when it never started.

    Args:
        tx: The transaction.
        name: The operation.
        told: Makes its last event.

    Returns:
        Whether it is BLOCKED now; None when nothing changed: it is finished, or was marked before.

    Raises:
        OperationNotFound: There is no such operation.
    """
    stack = tx.lock_stack(tx.operations.stack_of(name) or "")
    now = tx.now()
    operation = journal.existing(tx, name)
    if operation.state in FINISHED or operation.blocks.reason == STORE_RESTORED:
        return None
    lease = tx.leases.of(operation.stack) or Lease()
    blocks = Blocks(STORE_RESTORED, operation.blocks.step_count, tx.operations.blocked_steps(name))
    tx.leases.put(operation.stack, leases.given_back(lease))
    if operation.state is OperationState.PREPARING:
        ended = replace(operation, state=OperationState.FAILED, cause=RESTORED, update_time=now)
        tx.operations.update(ended)
        tx.requests.forget(name)
        return False
    _block(tx, operation, stack, RESTORED, blocks, told, now)
    return True
