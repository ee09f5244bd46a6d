"""
Inventories: the resources that stacks own and use, by object. A resource has at most one owner
(docs/reference/engine.md, "Invariants").
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from services.core.errors import RequestInvalid
from services.core.model import InventoryEntry, Key, Origin, RecordChanges, ResourceKey
from services.engine.claims import Claim, ClaimedResource, Refusal
from stack_svc.rules import owners
from stack_svc.store.owners import RECORDED
from stack_svc.store.stacks import Stack
from stack_svc.store.store import ReadTransaction, Transaction


def change(tx: Transaction, stack: Stack, changes: RecordChanges, now: int) -> tuple[bool, int]:
    """
    Change the inventory of a stack at *now*.

    If the stack is to use or to adopt a resource, but owns it meanwhile, the resource stays owned, with its origin. If
    the stack is to own a resource, but another stack has taken it over meanwhile, the resource is shared.

    Returns:
        Whether anything changed, and the number of its resources; the order of associations is ignored.

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
    entries = _with_origins(tx, stack, recorded.values(), changes.entries)
    gone = [key for key in changes.removed if key in recorded]
    new = [entry for entry in entries if not _is_same(recorded.get(entry.key), entry)]
    if not (gone or new):
        return False, stack.resource_count
    leaving = [recorded[key] for key in (*gone, *(entry.key for entry in new)) if key in recorded]
    owned, used = _apart(new)
    owned_before, used_before = _apart(leaving)
    tx.owners.release(stack_id, target, owned_before)
    # A continued use keeps its time.
    tx.uses.remove(stack_id, target, used_before.keys() - used.keys())
    conflicting = tx.owners.take(stack_id, target, RECORDED, _names(owned), now)
    claims = [Claim(0, entry.key, ClaimedResource(*resource_of(entry))) for entry in owned.values()]
    if refused := owners.refused(claims if conflicting else (), conflicting):
        _refuse(refused, stack_id)
    if used:
        tx.uses.add(stack_id, target, RECORDED, _names(used), now)
    tx.inventory.change(stack_id, target, gone, new)
    return True, stack.resource_count - len(gone) + sum(entry.key not in recorded for entry in new)


def resource_of(entry: InventoryEntry) -> ResourceKey:
    """Kind and id of the resource of *entry*."""
    return entry.key.kind, entry.resource_id


def _with_origins(
    reading: ReadTransaction, stack: Stack, recorded: Iterable[InventoryEntry], entries: Sequence[InventoryEntry]
) -> Sequence[InventoryEntry]:
    """
    *entries* with their present origins: since they were planned, another stack may have released or taken over
    resources.

    An entry whose resource the stack owns already keeps its origin. Any other shared resource that no stack owns is
    adopted. An entry of a resource that the stack shares and that another stack owns stays shared.
    """
    target, stack_id = stack.record.target, stack.record.id
    owned = {resource_of(entry): entry.origin for entry in recorded if entry.origin is not Origin.SHARED}
    used = {resource_of(entry) for entry in recorded if entry.origin is Origin.SHARED}
    free = {resource_of(entry) for entry in entries if entry.origin is Origin.SHARED} - owned.keys()
    lost = {resource_of(entry) for entry in entries if entry.origin is not Origin.SHARED} & used
    if free or lost:
        holders = dict(owners.of_resources(reading, target, free | lost))
        free -= holders.keys()
        lost = {each for each in lost if each in holders and holders[each].stack != stack_id}
    origins = dict.fromkeys(free, Origin.ADOPTED) | dict.fromkeys(lost, Origin.SHARED) | owned
    if not origins:
        return entries
    return [entry._replace(origin=origins.get(resource_of(entry), entry.origin)) for entry in entries]


def _apart(entries: Iterable[InventoryEntry]) -> tuple[dict[str, InventoryEntry], dict[str, InventoryEntry]]:
    """The owned and the used ones of *entries*, by the store's text of their resource."""
    owned: dict[str, InventoryEntry] = {}
    used: dict[str, InventoryEntry] = {}
    for entry in entries:
        (used if entry.origin is Origin.SHARED else owned)[owners.what_of(*resource_of(entry))] = entry
    return owned, used


def _names(entries: Mapping[str, InventoryEntry]) -> dict[str, str]:
    return {what: entry.key.name for what, entry in entries.items()}


def _is_same(recorded: InventoryEntry | None, entry: InventoryEntry) -> bool:
    return recorded is not None and _in_order(recorded) == _in_order(entry)


def _in_order(entry: InventoryEntry) -> InventoryEntry:
    associations = tuple(sorted(entry.associations))
    return entry if associations == entry.associations else entry._replace(associations=associations)


def _check(changes: RecordChanges) -> None:
    keys: set[Key] = set(changes.removed)
    resources: set[ResourceKey] = set()
    for entry in changes.entries:
        if not (entry.key.kind and entry.key.name and entry.resource_id):
            raise RequestInvalid("record.changes", f"{entry.key} lacks its kind, its name or its id")
        if entry.key in keys:
            raise RequestInvalid("record.changes", f"{entry.key} occurs twice")
        if resource_of(entry) in resources:
            raise RequestInvalid("record.changes", f"{entry.key.kind} {entry.resource_id} belongs to two objects")
        keys.add(entry.key)
        resources.add(resource_of(entry))


def _refuse(refused: Collection[Refusal], stack: str) -> None:
    for each in refused:
        if each.holder.stack == stack:
            raise RequestInvalid("record.changes", f"{each.claim.key.kind} {each.claim.what} belongs to two objects")
    raise owners.refusal([*refused])
