"""What the record says after an operation, for every way in which it can end."""

from collections.abc import Collection

from applier_svc.ids import Ids
from applier_svc.progress import Progress
from services.core.model import InventoryEntry, Origin, Plan, StackRecord, Verb, by_key


def after_success(
    plan: Plan, record: StackRecord, ids: Ids, leftovers: Collection[int], kept: Collection[int] = ()
) -> list[InventoryEntry]:
    """
    The inventory once all steps are done, but for *leftovers*; sorted by key.

    A creation that was *kept* made nothing: its resource was there, and is adopted. What could not be removed stays in
    the inventory as pending, so that the next apply tries again (engine.md 3).
    """
    recorded = by_key(record.resources)
    entries = {
        entry.key: entry._replace(remote_id=ids.get(entry.key)) for entry in plan.inventory if ids.get(entry.key)
    }
    for key in {plan.steps[number].key for number in kept if plan.steps[number].verb is Verb.CREATE} & entries.keys():
        entries[key] = entries[key]._replace(origin=Origin.ADOPTED)
    for number in leftovers:
        step = plan.steps[number]
        if step.verb is Verb.DELETE and step.key in recorded and step.key not in entries:
            entries[step.key] = recorded[step.key]._replace(is_pending_delete=True)
    return [entries[key] for key in sorted(entries)]


def after_undo(plan: Plan, record: StackRecord, ids: Ids, progress: Progress) -> list[InventoryEntry]:
    """
    The inventory once what was done is undone, as far as that went; sorted by key.

    It is the recorded one, but for three things: what was deleted and created again has another id, what was deleted
    and could not be created again is gone, and what was created and could not be deleted again is there.
    """
    entries = by_key(record.resources)
    planned = by_key(plan.inventory)
    for step in filter(progress.took_effect, plan.steps):
        if step.is_secret:
            # No stack owns it.
            continue
        key, is_undone = step.key, progress.was_undone(step)
        if step.verb is Verb.DELETE and key in entries:
            if is_undone:
                entries[key] = entries[key]._replace(remote_id=ids.get(key))
            else:
                del entries[key]
        elif step.verb is Verb.CREATE and not is_undone:
            origin = Origin.ADOPTED if step.number in progress.kept else planned[key].origin
            entries[key] = planned[key]._replace(remote_id=ids.get(key), origin=origin)
    return [entries[key] for key in sorted(entries)]
