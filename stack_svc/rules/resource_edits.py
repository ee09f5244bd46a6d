"""
Changes of a record by users: to import resources, to forget one, to rename an object (docs/reference/engine.md,
"Policies").
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from services.core.errors import RequestInvalid
from services.core.model import Baseline, InventoryEntry, Key, Origin, RecordChanges
from services.kinds.format.names import check_meta_name
from services.kinds.kind_words import meant_kind
from services.kinds.registry import family_and_name, family_of, kinds_of
from stack_svc.rules import inventory, owners, ownership_transfer, packages, requests, stacks
from stack_svc.rules.requests import RequestId
from stack_svc.store.stacks import Choice, Stack, State
from stack_svc.store.store import ReadTransaction, Transaction


def import_resources(
    tx: Transaction, stack_id: str, imports: Sequence[tuple[InventoryEntry, Baseline]], request: RequestId
) -> Stack:
    """
    Record resources that no stack owns, all or none, once for each request.

    Args:
        tx: The transaction.
        stack_id: The stack.
        imports: The entries with their baselines, in the order of the request of the client.
        request: The request.

    Raises:
        StackNotFound: There is no such stack.
        StackLeased: An operation runs on it, or an action set has it reserved.
        OperationUnfinished: An operation on it has to be recovered.
        RequestInvalid: Another object of the stack, or of the request, has a name, or the stack has a resource already.
        RequestIdReused: The request id was used with other content.
        PackageStack: The stack has installed packages, and a name is of none of them.
        ResourceOwned: Another stack has a resource, or an operation on its behalf claims it.
    """
    stack = _locked(tx, stack_id)
    now = tx.now()
    if requests.earlier_answer(tx, request, now):
        return stack
    stacks.refuse_in_use(tx, stack, now)
    entries = [entry._replace(origin=Origin.ADOPTED, is_pending_delete=False) for entry, _ in imports]
    packages.own_names(tx, stack, (entry.key.name for entry in entries))
    _refuse_own(tx, stack, entries)
    _refuse_taken(tx, stack, {f"resources[{position}].name": entry.key for position, entry in enumerate(entries)})
    changed = _changed(tx, stack, RecordChanges(tuple(sorted(entries))), now)
    tx.baselines.put(stack.record.id, [baseline for _, baseline in imports])
    requests.store_answer(tx, request, stack.record.id, now)
    return changed


def forget(tx: Transaction, choice: Choice, key: Key, request: RequestId) -> Stack:
    """
    Forget a resource, once for each request; the stack that has used it longest becomes its owner.

    Raises:
        StackNotFound: There is no such stack.
        StackLeased: An operation runs on it, or an action set has it reserved.
        OperationUnfinished: An operation on it has to be recovered.
        RequestInvalid: The stack has no such object.
        RequestIdReused: The request id was used with other content.
    """
    changes = RecordChanges(removed=(key,))
    header = stacks.existing(tx, choice).record
    stack_id, target = header.id, header.target
    new_owners = ownership_transfer.transfer_of(tx, target, stack_id, changes).stacks
    # All transactions lock stacks in the order of their ids.
    locked = {each: tx.lock_stack(each) for each in sorted({stack_id, *new_owners})}
    stack = stacks.visible(locked[stack_id], stack_id)
    now = tx.now()
    if requests.earlier_answer(tx, request, now):
        return stack
    stacks.refuse_in_use(tx, stack, now)
    _entry(tx, stack, key)
    transfer = ownership_transfer.transfer_of(tx, target, stack_id, changes)
    changed = _changed(tx, stack, changes, now)
    ownership_transfer.hand_over(tx, transfer, _there(locked), now)
    requests.store_answer(tx, request, stack_id, now)
    return changed


def rename(tx: Transaction, choice: Choice, key: Key, new_name: str, request: RequestId) -> Stack:
    """
    Rename an object in the record, once for each request; associations that refer to it by name follow.

    Raises:
        StackNotFound: There is no such stack.
        StackLeased: An operation runs on it, or an action set has it reserved.
        OperationUnfinished: An operation on it has to be recovered.
        RequestInvalid: The stack has no such object, or the new name is not valid, is its present name, or is the name
            of another object.
        PackageStack: The stack has installed packages, and the new name is of none of them.
        RequestIdReused: The request id was used with other content.
    """
    stack = _locked(tx, choice)
    now = tx.now()
    if requests.earlier_answer(tx, request, now):
        return stack
    stacks.refuse_in_use(tx, stack, now)
    entry, new_key = _entry(tx, stack, key), Key(key.kind, new_name)
    [own_name] = packages.own_names(tx, stack, [new_name])
    check_meta_name(own_name, "new_name")
    if new_key == key:
        raise RequestInvalid("new_name", f"{key} has that name already")
    if entry.is_pending_delete:
        raise RequestInvalid("key", f"{key} left the package, and the next apply deletes its resource")
    _refuse_taken(tx, stack, {"new_name": new_key})
    entries = [
        each._replace(associations=tuple(sorted(new_key if label == key else label for label in each.associations)))
        for each in tx.inventory.page(stack.record.id, Key("", ""), ownership_transfer.ALL)
        if key in each.associations and each.key != key
    ]
    renamed = entry._replace(key=new_key)
    baselines = tx.baselines.of(stack.record.id, [key])
    changed = _changed(tx, stack, RecordChanges((*entries, renamed), (key,)), now)
    tx.baselines.put(stack.record.id, [each._replace(key=new_key) for each in baselines])
    requests.store_answer(tx, request, stack.record.id, now)
    return changed


def _locked(tx: Transaction, choice: Choice) -> Stack:
    return stacks.visible(tx.lock_stack(choice), choice)


def _there(locked: Mapping[str, Stack | None]) -> dict[str, Stack]:
    return {stack_id: stack for stack_id, stack in locked.items() if stack}


def _entry(reading: ReadTransaction, stack: Stack, key: Key) -> InventoryEntry:
    for entry in reading.inventory.entries(stack.record.id, [key]):
        return entry
    raise RequestInvalid("key", f"stack {stack.called!r} has no {key}{meant_kind(key.kind)}")


def _refuse_own(reading: ReadTransaction, stack: Stack, entries: Sequence[InventoryEntry]) -> None:
    """Raise RequestInvalid if the stack owns or uses the resource of an entry, or if two entries have the resource."""
    target, whats = stack.record.target, [owners.what_of(*inventory.resource_of(entry)) for entry in entries]
    holders = [*reading.owners.of(target, whats), *reading.uses.of(target, whats)]
    own = {
        holder.what: f"in stack {stack.called!r} already, as {holder.name!r}"
        for holder in holders
        if holder.stack == stack.record.id
    }
    for position, (entry, what) in enumerate(zip(entries, whats, strict=True)):
        if what in own:
            raise RequestInvalid(f"resources[{position}]", f"{entry.key.kind} {entry.resource_id} is {own[what]}")
        own[what] = f"in the request twice, first as {entry.key.name!r}"


def _refuse_taken(reading: ReadTransaction, stack: Stack, keys: Mapping[str, Key]) -> None:
    """
    Refuse names that other objects have; a name is unique among the kinds of a family.

    Args:
        reading: The store.
        stack: The stack.
        keys: The new keys, by the field of the request that names each.

    Raises:
        RequestInvalid: An object of the stack has one of the names, or two of the *keys* have one name.
    """
    alike = [Key(kind, key.name) for key in keys.values() for kind in kinds_of(family_of(key.kind))]
    entries = reading.inventory.entries(stack.record.id, alike)
    other = f"stack {stack.called!r} has another object of that name"
    taken = {family_and_name(entry.key): f"{other}, {entry.key}" for entry in entries}
    for field, key in keys.items():
        if problem := taken.get(family_and_name(key)):
            raise RequestInvalid(field, problem)
        taken[family_and_name(key)] = f"another resource of the request gets that name, {key}"


def _changed(tx: Transaction, stack: Stack, changes: RecordChanges, now: int) -> Stack:
    """Write *changes* to the record of a stack; its generation changes, so earlier plans become stale."""
    _, count = inventory.change(tx, stack, changes, now)
    changed = replace(
        stack,
        record=replace(stack.record, generation=stack.record.generation + 1),
        resource_count=count,
        update_time=max(now, stack.update_time),
        state=State.ACTIVE,
    )
    tx.stacks.update(changed)
    return changed
