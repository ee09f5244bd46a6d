"""
Hands resources over: those that a stack releases, to the stack that has used each of them longest; and those that a
stack takes over, to that stack (docs/reference/engine.md, "Shared resources").
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from services.core.model import InventoryEntry, Key, Origin, RecordChanges, Target, Use
from stack_svc.rules import owners, uses
from stack_svc.rules.inventory import resource_of
from stack_svc.store.owners import RECORDED, Owner
from stack_svc.store.stacks import Stack
from stack_svc.store.store import ReadTransaction, Transaction

ALL = 1_000_000_000
"""Entries of a page that has no end."""


@dataclass(frozen=True, slots=True)
class Transfer:
    """
    The resources that a stack releases.

    Attributes:
        new_owners: For each resource that other stacks use, as the store's text of it: the entry of the releasing
            stack, and the user that becomes the owner.
        orphaned: Keys of resources that were to be left to other users, but have none, sorted.
        orphaned_labels: Labels that were to stay attached, but that no other record wants, sorted.
    """

    new_owners: Mapping[str, tuple[InventoryEntry, Owner]]
    orphaned: tuple[Key, ...] = ()
    orphaned_labels: tuple[Use, ...] = ()

    @property
    def stacks(self) -> set[str]:
        """Ids of the stacks that become owners."""
        return {owner.stack for _, owner in self.new_owners.values()}


NOTHING = Transfer({})
"""The transfer of a stack that releases nothing."""


def transfer_of(reading: ReadTransaction, target: Target, stack: str, changes: RecordChanges) -> Transfer:
    """The resources that leave the record of *stack*, of *target*, with *changes*; a renamed entry does not leave."""
    entries = reading.inventory.entries(stack, changes.removed) if changes.removed else []
    kept = {resource_of(entry) for entry in changes.entries}
    leaving = [entry for entry in entries if resource_of(entry) not in kept]
    left = _transfer(reading, target, stack, leaving, changes.staying)
    return replace(left, orphaned_labels=_orphaned(reading, target, stack, changes.staying_labels))


def whole_transfer(
    reading: ReadTransaction, target: Target, stack: str, staying: Collection[Key], labels: Sequence[Use]
) -> Transfer:
    """
    The resources that leave when *stack* is removed; *staying* and *labels* as ``staying`` and ``staying_labels`` of
    ``RecordChanges``.
    """
    if not (staying or labels or reading.uses.of_stack(target, stack)):
        return NOTHING
    left = _transfer(reading, target, stack, reading.inventory.page(stack, Key("", ""), ALL), staying)
    return replace(left, orphaned_labels=_orphaned(reading, target, stack, labels))


def _orphaned(reading: ReadTransaction, target: Target, stack: str, labels: Sequence[Use]) -> tuple[Use, ...]:
    """The *labels* that no other record wants."""
    if not labels:
        return ()
    owned, used, labels_used = uses.holdings(reading, target, {(each.kind, each.resource_id) for each in labels})
    others = {
        (*resource, label)
        for resource, holder in (*owned, *used)
        if holder.stack != stack
        for label in labels_used.get((holder.stack, resource), ())
    }
    return tuple(sorted(each for each in labels if (each.kind, each.resource_id, each.label_id) not in others))


def _transfer(
    reading: ReadTransaction, target: Target, stack: str, entries: Collection[InventoryEntry], staying: Collection[Key]
) -> Transfer:
    owned = {owners.what_of(*resource_of(each)): each for each in entries if each.origin is not Origin.SHARED}
    new_owners: dict[str, tuple[InventoryEntry, Owner]] = {}
    for user in reading.uses.of(target, owned) if owned else ():
        if user.operation == RECORDED and user.stack != stack:
            new_owners.setdefault(user.what, (owned[user.what], user))
    orphaned = {entry.key for what, entry in owned.items() if what not in new_owners} & {*staying}
    return Transfer(new_owners, tuple(sorted(orphaned)))


def hand_over(tx: Transaction, transfer: Transfer, locked: Mapping[str, Stack], now: int) -> None:
    """
    Make the new owners the owners of the released resources.

    Args:
        tx: The store, in which the resources have no owner any more.
        transfer: The released resources.
        locked: The stacks of the new owners, locked.
        now: The time.
    """
    by_stack: defaultdict[str, dict[Key, tuple[str, Origin]]] = defaultdict(dict)
    for what, (left, owner) in transfer.new_owners.items():
        by_stack[owner.stack][Key(left.key.kind, owner.name)] = (what, left.origin)
    for stack_id, received in sorted(by_stack.items()):
        stack = locked[stack_id]
        record = stack.record
        entries = [entry._replace(origin=received[entry.key][1]) for entry in tx.inventory.entries(stack_id, received)]
        names = {received[entry.key][0]: entry.key.name for entry in entries}
        tx.uses.remove(stack_id, record.target, names)
        tx.owners.take(stack_id, record.target, RECORDED, names, now)
        tx.inventory.change(stack_id, record.target, (), entries)
        _move(tx, stack, now)


def yielding(reading: ReadTransaction, target: Target, stack: str, changes: RecordChanges) -> dict[str, dict[Key, Key]]:
    """
    The stacks that own what *stack* takes over with *changes*.

    Returns:
        For each owner, the keys under which it has the resources, each with the key of *stack*.
    """
    if not changes.taken_over:
        return {}
    keys = {*changes.taken_over}
    taken = {entry: owners.what_of(*resource_of(entry)) for entry in changes.entries if entry.key in keys}
    holders = {each.what: each for each in reading.owners.of(target, [*taken.values()])}
    by_stack: defaultdict[str, dict[Key, Key]] = defaultdict(dict)
    for entry, what in taken.items():
        owner = holders.get(what)
        if owner and owner.operation == RECORDED and owner.stack != stack:
            by_stack[owner.stack][Key(entry.key.kind, owner.name)] = entry.key
    return by_stack


def take_over(
    tx: Transaction,
    changes: RecordChanges,
    owned: Mapping[str, Mapping[Key, Key]],
    locked: Mapping[str, Stack],
    now: int,
) -> RecordChanges:
    """
    Make the owners of the resources that a stack takes over users of them.

    Args:
        tx: The store.
        changes: The changes of the record of the stack.
        owned: What ``yielding`` returned.
        locked: The owners, locked.
        now: The time.

    Returns:
        *changes*, where the resources have the origins that they had with their owners.
    """
    origins: dict[Key, Origin] = {}
    for stack_id, keys in sorted(owned.items()):
        target = locked[stack_id].record.target
        entries = tx.inventory.entries(stack_id, keys)
        origins |= {keys[entry.key]: entry.origin for entry in entries}
        names = {owners.what_of(*resource_of(entry)): entry.key.name for entry in entries}
        tx.owners.release(stack_id, target, names)
        tx.uses.add(stack_id, target, RECORDED, names, now)
        tx.inventory.change(stack_id, target, (), [entry._replace(origin=Origin.SHARED) for entry in entries])
        _move(tx, locked[stack_id], now)
    taken = (entry._replace(origin=origins.get(entry.key, entry.origin)) for entry in changes.entries)
    return replace(changes, entries=tuple(taken))


def _move(tx: Transaction, stack: Stack, now: int) -> None:
    """Increase the generation of a stack whose record another stack has changed."""
    record = stack.record
    moved = replace(record, generation=record.generation + 1)
    tx.stacks.update(replace(stack, record=moved, update_time=max(now, stack.update_time)))
    if operation := tx.operations.unfinished_on(record.id):
        tx.operations.update(replace(operation, handed_over=operation.handed_over + 1))
