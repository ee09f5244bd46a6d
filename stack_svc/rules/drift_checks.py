"""
The last drift detection of each stack: the counts of a comparison of all its resources (docs/reference/engine.md,
"History").
"""

from services.core.drift import DriftCounts
from services.core.errors import RequestInvalid
from stack_svc.rules import stacks
from stack_svc.store.drift_checks import DriftCheck
from stack_svc.store.store import Transaction


def record(tx: Transaction, stack_id: str, generation: int, counts: DriftCounts) -> bool:
    """
    Store the counts of a drift detection, unless the stack has changed since, or an operation runs on it.

    Returns:
        Whether they were stored.

    Raises:
        StackNotFound: There is no such stack.
        RequestInvalid: A count is negative.
    """
    if negative := [status for status, count in counts._asdict().items() if count < 0]:
        raise RequestInvalid(f"counts.{negative[0]}", "must not be negative")
    stack = stacks.visible(tx.lock_stack(stack_id), stack_id)
    now = tx.now()
    # A resource that a running operation has yet to write would count as drift.
    if stack.record.generation != generation or tx.operations.unfinished_on(stack_id):
        return False
    tx.drift_checks.put(stack_id, DriftCheck(now, generation, counts))
    return True


def after_apply(tx: Transaction, stack_id: str, generation: int, resource_count: int, now: int) -> None:
    """Store an apply as a drift detection: all *resource_count* resources are in sync, as it wrote or read them."""
    tx.drift_checks.put(stack_id, DriftCheck(now, generation, DriftCounts(in_sync=resource_count)))
