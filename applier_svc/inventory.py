"""What the record says after an operation, for every way in which it can end."""

from collections.abc import Collection
from dataclasses import replace

from applier_svc.ids import Ids
from services.core.model import InventoryEntry, Key, Plan, StackRecord, Verb, by_key


def after_success(plan: Plan, record: StackRecord, ids: Ids, leftovers: Collection[int]) -> list[InventoryEntry]:
    """
    The inventory once all steps are done, but for *leftovers*.

    What could not be removed stays in the inventory, so that the next apply tries again.
    """
    recorded = by_key(record.resources)
    entries = {
        entry.key: replace(entry, remote_id=ids.get(entry.key)) for entry in plan.inventory if ids.get(entry.key)
    }
    for number in leftovers:
        step = plan.steps[number]
        if step.verb is Verb.DELETE and step.key in recorded and step.key not in entries:
            entries[step.key] = recorded[step.key]
    return [entries[key] for key in sorted(entries)]


def after_undo(plan: Plan, record: StackRecord, ids: Ids, created: Collection[Key]) -> list[InventoryEntry]:
    """
    The inventory once all that was done is undone, as far as that went.

    Args:
        plan: The plan.
        record: What was recorded before.
        ids: Where resources are now: what was deleted and created again has a new id.
        created: Keys of resources that the operation created and could not delete again.
    """
    entries = {entry.key: replace(entry, remote_id=ids.get(entry.key) or entry.remote_id) for entry in record.resources}
    for entry in plan.inventory:
        if entry.key in created and ids.get(entry.key):
            entries[entry.key] = replace(entry, remote_id=ids.get(entry.key))
    return [entries[key] for key in sorted(entries)]


def same(entries: Collection[InventoryEntry], record: StackRecord) -> bool:
    """Whether *entries* are what is recorded."""
    return sorted(entries, key=lambda entry: entry.key) == sorted(record.resources, key=lambda entry: entry.key)
