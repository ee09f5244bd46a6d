"""
Baselines: the resources of a stack as the platform held them after its last write (docs/reference/engine.md,
"History").
"""

from collections.abc import Iterable, Sequence

from services.core.model import Baseline, Key, RecordChanges
from services.kinds.baseline_text import read_baselines
from stack_svc.rules import attachments
from stack_svc.store.plans import StoredPlan
from stack_svc.store.store import ReadTransaction


def planned(reading: ReadTransaction, plan: StoredPlan) -> list[Baseline]:
    """Baselines that the planner read, of resources that *plan* does not write and that had none."""
    return read_baselines(attachments.text_of(reading, plan.baselines_digest))


def moved(reading: ReadTransaction, stack: str, changes: RecordChanges) -> dict[str, str]:
    """Old and new ids of the resources that an undo recreated; references in unchanged baselines follow them."""
    before = {entry.key: entry for entry in reading.inventory.entries(stack, [entry.key for entry in changes.entries])}
    return {
        before[entry.key].resource_id: entry.resource_id
        for entry in changes.entries
        if entry.key in before and before[entry.key].resource_id != entry.resource_id
    }


def of_entries(
    reading: ReadTransaction, stack: str, changes: RecordChanges, candidates: Iterable[Baseline]
) -> Sequence[Baseline]:
    """Those *candidates* whose key has an entry in the changed record of *stack*; the last spec of each key counts."""
    baselines: dict[Key, Baseline] = {}
    for each in candidates:
        before = baselines.get(each.key)
        if before and not each.spec:
            baselines[each.key] = before._replace(missing_labels=each.missing_labels)
        else:
            baselines[each.key] = each
    entries = {entry.key for entry in changes.entries}
    if unchanged := baselines.keys() - entries - {*changes.removed}:
        entries |= {entry.key for entry in reading.inventory.entries(stack, unchanged)}
    return [each for key, each in baselines.items() if key in entries]
