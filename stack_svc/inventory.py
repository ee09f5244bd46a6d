"""What stacks own: the map from object keys to resources; a resource has one owner (engine.md 1, I8)."""

from services.core.errors import RequestInvalid, ResourceOwned
from services.core.model import InventoryEntry, Key, RecordChanges
from stack_svc.store.inventory import Ownership, ResourceId
from stack_svc.store.stacks import Stack
from stack_svc.store.store import Transaction


def change(tx: Transaction, stack: Stack, changes: RecordChanges) -> tuple[bool, int]:
    """
    Change what a stack owns.

    Returns:
        Whether anything is different now, and the number of its resources; the order of associations means nothing.

    Raises:
        RequestInvalid: Two entries share a key or a resource, or a key or an id is empty.
        ResourceOwned: Another stack owns one of the resources.
    """
    _check(changes)
    stack_id = stack.record.id
    recorded = {
        entry.key: entry
        for entry in tx.inventory.entries(stack_id, [*changes.removed, *(entry.key for entry in changes.entries)])
    }
    gone = [key for key in changes.removed if key in recorded]
    new = [entry for entry in changes.entries if not _is_same(recorded.get(entry.key), entry)]
    if not (gone or new):
        return False, stack.resource_count
    conflicts = tx.inventory.change(stack_id, stack.record.target, gone, new)
    if conflicts:
        _refuse(conflicts[0], stack_id, {_resource(entry): entry.key for entry in new})
    return True, stack.resource_count - len(gone) + sum(entry.key not in recorded for entry in new)


def _is_same(recorded: InventoryEntry | None, entry: InventoryEntry) -> bool:
    return recorded is not None and _in_order(recorded) == _in_order(entry)


def _in_order(entry: InventoryEntry) -> InventoryEntry:
    associations = tuple(sorted(entry.associations))
    return entry if associations == entry.associations else entry._replace(associations=associations)


def _resource(entry: InventoryEntry) -> ResourceId:
    return entry.key.kind, entry.resource_id


def _check(changes: RecordChanges) -> None:
    keys: set[Key] = set(changes.removed)
    resources: set[ResourceId] = set()
    for entry in changes.entries:
        if not (entry.key.kind and entry.key.name and entry.resource_id):
            raise RequestInvalid("record.changes", f"{entry.key} lacks its kind, its name or its id")
        if entry.key in keys:
            raise RequestInvalid("record.changes", f"{entry.key} occurs twice")
        if _resource(entry) in resources:
            raise RequestInvalid("record.changes", f"{entry.key.kind} {entry.resource_id} belongs to two objects")
        keys.add(entry.key)
        resources.add(_resource(entry))


def _refuse(owner: Ownership, stack: str, keys: dict[ResourceId, Key]) -> None:
    kind, resource_id = owner.key.kind, owner.resource_id
    if owner.stack == stack:
        raise RequestInvalid("record.changes", f"{kind} {resource_id} belongs to two objects")
    raise ResourceOwned(kind, keys[kind, resource_id].name, resource_id, owner.stack, owner.stack_name)
