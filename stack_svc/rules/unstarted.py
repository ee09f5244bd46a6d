"""Operations that never started: they sent nothing, so nothing but their own row remains of them."""

from dataclasses import replace

from services.core.errors import OperationUnfinished
from services.engine.operation import OperationState
from stack_svc.rules import leases
from stack_svc.store.operations import GONE, Operation
from stack_svc.store.stacks import Stack
from stack_svc.store.store import ReadTransaction, Transaction


def has_died(reading: ReadTransaction, operation: Operation, now: int) -> bool:
    """Whether *operation* never started, and its lease is free."""
    lease = reading.leases.of(operation.stack)
    return operation.state is OperationState.PREPARING and (lease is None or leases.is_free(lease, now))


def end_dead(tx: Transaction, stack: Stack, now: int) -> None:
    """
    End the unfinished operation on *stack*, if it has died.

    Raises:
        OperationUnfinished: It may have sent something, so it has to be recovered.
    """
    operation = tx.operations.unfinished_on(stack.record.id)
    if operation is None:
        return
    if not has_died(tx, operation, now):
        raise OperationUnfinished(stack.called, operation.id, operation.state)
    ended = replace(operation, state=OperationState.FAILED, cause=GONE, update_time=max(operation.update_time, now))
    tx.operations.update(ended)
    forget(tx, operation)


def forget(tx: Transaction, operation: Operation) -> None:
    """Remove the id of the request and the plan of *operation*, which ended and never started."""
    tx.requests.forget(operation.id)
    if operation.plan:
        tx.plans.delete(operation.plan)
