"""
The last look at each stack: what somebody found who compared all of its resources (docs/reference/engine.md,
"History").
"""

from services.core.drift import DriftCounts
from services.core.errors import RequestInvalid
from stack_svc import stacks
from stack_svc.store.looks import Look
from stack_svc.store.store import Transaction


def record(tx: Transaction, stack_id: str, generation: int, counts: DriftCounts) -> bool:
    """
    Keep what a look found, unless the stack is no longer what was looked at, or is at work.

    Returns:
        Whether it was kept.

    Raises:
        StackNotFound: There is no such stack.
        RequestInvalid: There are fewer than no resources of a status.
    """
    if negative := [status for status, count in counts._asdict().items() if count < 0]:
        raise RequestInvalid(f"counts.{negative[0]}", "must not be negative")
    stack = stacks.visible(tx.lock_stack(stack_id), stack_id)
    now = tx.now()
    # What an operation has not written yet looks as if somebody had changed it.
    if stack.record.generation != generation or tx.operations.unfinished_on(stack_id):
        return False
    tx.looks.put(stack_id, Look(now, generation, counts))
    return True


def after_apply(tx: Transaction, stack_id: str, generation: int, resource_count: int, now: int) -> None:
    """Count an apply as a look: all of the *resource_count* resources are as it wrote or found them."""
    tx.looks.put(stack_id, Look(now, generation, DriftCounts(in_sync=resource_count)))
