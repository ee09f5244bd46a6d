"""
The claims of an operation, granted until its end or refused for conflicts (docs/reference/engine.md, "Claims" and
"Shared resources").
"""

from collections.abc import Sequence

from services.engine.claims import Claim, ClaimedAssociation, ClaimedResource, ClaimMode, Refusal
from stack_svc.rules import owners, uses
from stack_svc.store.operations import Operation
from stack_svc.store.store import Transaction


def claim(tx: Transaction, operation: Operation, claims: Sequence[Claim], now: int) -> list[Refusal]:
    """
    Grant an operation its claims until its end: to own items, or to use them.

    Returns:
        The claims that conflict with other stacks or operations; if there is any, no claim is granted.
    """
    if not claims:
        return []
    used = [each for each in claims if each.mode.is_shared]
    alone = [each for each in claims if not each.mode.is_shared]
    removed = [
        each
        for each in alone
        if each.mode is ClaimMode.REMOVE and isinstance(each.what, ClaimedResource | ClaimedAssociation)
    ]
    refusals = [
        *uses.taken_away(tx, operation, used),
        *uses.named_owners(tx, operation, used),
        *uses.in_use(tx, operation, removed),
    ]
    items = {owners.text_of(each.what): each.key.name for each in alone}
    items |= {owners.removal_of(owners.text_of(each.what)): each.key.name for each in removed}
    if refusals:
        others = [each for each in tx.owners.of(operation.target, items) if each.stack != operation.stack]
    else:
        others = tx.owners.take(operation.stack, operation.target, operation.id, items, now)
    refusals += owners.refused(alone, others)
    if used and not refusals:
        names = {owners.text_of(each.what): each.key.name for each in used}
        tx.uses.add(operation.stack, operation.target, operation.id, names, now)
    return refusals


def release(tx: Transaction, operation: Operation, claims: Sequence[Claim]) -> None:
    """Release claims of an operation, but not the items that the record of its stack contains."""
    if claims:
        tx.owners.release(operation.stack, operation.target, [owners.text_of(each.what) for each in claims])


def drop(tx: Transaction, operation: Operation) -> None:
    """Release all claims of an operation."""
    tx.owners.drop(operation.stack, operation.id)
    tx.uses.drop(operation.stack, operation.id)
