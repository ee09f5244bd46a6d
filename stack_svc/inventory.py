"""What stacks own: the map from object keys to resources; a resource has one owner (engine.md 1, I8)."""

from collections.abc import Sequence

from services.core.errors import RequestInvalid
from services.core.model import InventoryEntry, Key, RecordChanges
from services.engine.claims import Claim, ClaimedResource, Refusal
from services.engine.effects.effect import ResourceKey
from stack_svc import owners
from stack_svc.store.owners import RECORDED
from stack_svc.store.stacks import Stack
from stack_svc.store.store import Transaction


def change(tx: Transaction, stack: Stack, changes: RecordChanges, now: int) -> tuple[bool, int]:
    """
    Change what a stack owns, from *now* on.

    Returns:
        Whether anything is different now, and the number of its resources; the order of associations means nothing.

    Raises:
        RequestInvalid: Two entries share a key or a resource, or a key or an id is empty.
        ResourceOwned: Another stack has some of the resources.
    """
    _check(changes)
    stack_id, target = stack.record.id, stack.record.target
    recorded = {
        entry.key: entry
        for entry in tx.inventory.entries(stack_id, [*changes.removed, *(entry.key for entry in changes.entries)])
    }
    gone = [key for key in changes.removed if key in recorded]
    new = [entry for entry in changes.entries if not _is_same(recorded.get(entry.key), entry)]
    if not (gone or new):
        return False, stack.resource_count
    leaving = [recorded[key] for key in (*gone, *(entry.key for entry in new)) if key in recorded]
    tx.owners.give_back(stack_id, target, [owners.what_of(*_resource(entry)) for entry in leaving])
    wanted = {owners.what_of(*_resource(entry)): entry.key.name for entry in new}
    in_the_way = tx.owners.take(stack_id, target, RECORDED, wanted, now)
    claims = [Claim(0, entry.key, ClaimedResource(*_resource(entry))) for entry in new] if in_the_way else []
    if refused := owners.refused(claims, in_the_way):
        _refuse(refused, stack_id)
    tx.inventory.change(stack_id, target, gone, new)
    return True, stack.resource_count - len(gone) + sum(entry.key not in recorded for entry in new)


def _is_same(recorded: InventoryEntry | None, entry: InventoryEntry) -> bool:
    return recorded is not None and _in_order(recorded) == _in_order(entry)


def _in_order(entry: InventoryEntry) -> InventoryEntry:
    associations = tuple(sorted(entry.associations))
    return entry if associations == entry.associations else entry._replace(associations=associations)


def _resource(entry: InventoryEntry) -> ResourceKey:
    return entry.key.kind, entry.resource_id


def _check(changes: RecordChanges) -> None:
    keys: set[Key] = set(changes.removed)
    resources: set[ResourceKey] = set()
    for entry in changes.entries:
        if not (entry.key.kind and entry.key.name and entry.resource_id):
            raise RequestInvalid("record.changes", f"{entry.key} lacks its kind, its name or its id")
        if entry.key in keys:
            raise RequestInvalid("record.changes", f"{entry.key} occurs twice")
        if _resource(entry) in resources:
            raise RequestInvalid("record.changes", f"{entry.key.kind} {entry.resource_id} belongs to two objects")
        keys.add(entry.key)
        resources.add(_resource(entry))


def _refuse(refused: Sequence[Refusal], stack: str) -> None:
    for each in refused:
        if each.holder.stack == stack:
            raise RequestInvalid("record.changes", f"{each.claim.key.kind} {each.claim.what} belongs to two objects")
    raise owners.refusal(refused)
