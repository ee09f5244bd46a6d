"""
Reservations: an action set has its stacks from its first phase to its end, and no operation but those of its phases
begins on them (docs/actions.md, "Action sets").
"""

from collections.abc import Mapping
from typing import NamedTuple

from services.core.errors import StackLeased
from stack_svc.rules import unstarted
from stack_svc.store.operations import Operation
from stack_svc.store.reservations import Reservation
from stack_svc.store.stacks import Choice, Stack, StackName
from stack_svc.store.store import ReadTransaction, Transaction


class Holder(NamedTuple):
    """
    Who has a stack that is to be reserved.

    Attributes:
        stack_name: Name of the stack.
        operation: The operation of another action set, or an unfinished one on the stack.
        action_set: Name of the other action set; empty for an operation on the stack.
    """

    stack_name: str
    operation: str
    action_set: str = ""


class NotReserved(Exception):
    """A stack that is to be reserved is in use; the transaction is to be rolled back."""

    def __init__(self, holder: Holder, cancel_requested: bool) -> None:
        super().__init__(holder)
        self.holder = holder
        self.cancel_requested = cancel_requested


def name_of(stack: Stack) -> StackName:
    """The name of a stack; empty when it has none."""
    return StackName(stack.record.target, stack.record.name)


def of_stack(reading: ReadTransaction, stack: Stack) -> Reservation | None:
    """The reservation of a stack: by its id, or by the name that it had got when it was made."""
    return reading.reservations.of(stack.record.id, name_of(stack))


def refuse_reserved(reading: ReadTransaction, stack: Stack, operation: str = "") -> None:
    """
    Do nothing for a stack that no action set has reserved.

    Args:
        reading: The store.
        stack: The stack.
        operation: The action set of this operation may have it; empty: none may.

    Raises:
        StackLeased: An action set has it; the error names it.
    """
    _refuse(of_stack(reading, stack), stack.called, operation)


def refuse_reserved_name(reading: ReadTransaction, named: StackName, operation: str = "") -> None:
    """
    As ``refuse_reserved``, for the name of a stack that does not exist.

    Raises:
        StackLeased: An action set has reserved the name.
    """
    _refuse(reading.reservations.of("", named), named.name, operation)


def reserve(tx: Transaction, operation: Operation, locked: Mapping[Choice, Stack | None], now: int) -> Holder | None:
    """
    Reserve stacks for an action set; an operation on one that died before it started is ended.

    Args:
        tx: The transaction.
        operation: The operation of the action set.
        locked: The stacks by their names, locked; None for those that do not exist.
        now: The time.

    Returns:
        Who has one of the stacks; the transaction must then be rolled back. None: all are reserved.
    """
    for named, stack in locked.items():
        if not isinstance(named, StackName):
            continue
        stack_id = stack.record.id if stack else ""
        there = tx.reservations.of(stack_id, named)
        if there and there.operation != operation.id:
            return Holder(named.name, there.operation, there.action_set)
        running = tx.operations.unfinished_on(stack_id) if stack else None
        if running and not unstarted.has_died(tx, running, now):
            return Holder(named.name, running.id)
        if stack:
            unstarted.end_dead(tx, stack, now)
        if not there:
            tx.reservations.insert(Reservation(named, stack_id, operation.id, operation.action_set, now))
    return None


def _refuse(reservation: Reservation | None, called: str, operation: str) -> None:
    if reservation and reservation.operation != operation:
        raise StackLeased(called, "", reservation.operation, "", reservation.action_set)
