"""Locks of several stacks, which all transactions take in one order, so that none waits for another in a circle."""

from collections.abc import Collection

from stack_svc.store.stacks import Choice, Stack
from stack_svc.store.store import Transaction


def lock_all(tx: Transaction, choices: Collection[Choice]) -> dict[Choice, Stack | None]:
    """Lock stacks in the order of their ids; None for those that do not exist."""
    ids = {choice: choice if isinstance(choice, str) else _id_of(tx.stacks.find(choice)) for choice in choices}
    return {choice: tx.lock_stack(choice) for choice in sorted(ids, key=lambda each: (ids[each], str(each)))}


def _id_of(stack: Stack | None) -> str:
    return stack.record.id if stack else ""
