"""Plans of a few steps, and operations with given outcomes."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from services.core.model import InventoryEntry, Key, Plan, RecordChanges, Step, Target, by_key
from services.engine.operation import Direction
from services.engine.outcome import GivenUp, Outcome, Unknown
from services.engine.progress import Progress
from services.engine.step_state import StepRecord, StepState


def a_plan(
    *steps: Step,
    entries: Iterable[InventoryEntry] = (),
    removed: Iterable[Key] = (),
    stages: Sequence[str] = ("only",),
) -> Plan:
    """A plan with *steps*, which are numbered here; *entries* and *removed* are the changes of the record."""
    return Plan(
        target=Target(),
        stack_id="1",
        base_generation=1,
        stages=tuple(stages),
        steps=tuple(step._replace(number=number) for number, step in enumerate(steps)),
        record=RecordChanges(tuple(entries), tuple(removed)),
        no_change=False,
    )


def changes_to(inventory: Collection[InventoryEntry], record: Collection[InventoryEntry]) -> RecordChanges:
    """The changes that turn *record* into *inventory*."""
    wanted, known = {entry.key: entry for entry in inventory}, {entry.key: entry for entry in record}
    changed = [wanted[key] for key in sorted(wanted) if known.get(key) != wanted[key]]
    return RecordChanges(tuple(changed), tuple(sorted(known.keys() - wanted.keys())))


def changed(entries: Sequence[InventoryEntry], changes: RecordChanges) -> tuple[InventoryEntry, ...]:
    """An inventory after *changes*, sorted by key."""
    after = by_key(entries)
    for key in changes.removed:
        after.pop(key, None)
    after |= by_key(changes.entries)
    return tuple(after[key] for key in sorted(after))


def progress_of(
    plan: Plan,
    done: Mapping[int, Outcome] | None = None,
    undone: Mapping[int, Outcome] | None = None,
    before_ids: Mapping[int, tuple[str, ...]] | None = None,
) -> Progress:
    """The progress of an operation with the outcomes *done* of steps and *undone* of inverses, by step number."""
    progress = Progress(plan)
    progress.fold(StepRecord(step, StepState.PLANNED, before_ids=ids) for step, ids in (before_ids or {}).items())
    for direction, outcomes in ((Direction.DO, done or {}), (Direction.UNDO, undone or {})):
        for step, outcome in outcomes.items():
            if isinstance(outcome, GivenUp):
                # Only a step with an unknown outcome can be given up.
                progress.fold([progress.ended(step, Unknown("?"), direction)])
            progress.fold([progress.ended(step, outcome, direction)], {step: outcome})
    return progress
