"""The record after an operation."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.core.model import (
    LABEL,
    InventoryEntry,
    Key,
    OperationKind,
    Origin,
    Plan,
    RecordChanges,
    StackRecord,
    Step,
    Target,
    Undo,
    Use,
    Verb,
)
from services.engine.conclusion import Conclusion, Orphans, after_success, after_undo
from services.engine.operation import OperationState
from services.engine.outcome import Done, Failed, Outcome, Unknown
from services.engine.progress import Progress
from services.engine.scheduler import Finish
from services.engine.step_state import StepRecord, StepState
from services.kinds.format.canonical import spec_of
from tests.engine.plans import a_plan, changed, changes_to, progress_of

RAW, CPU, MEM = Key("Bucket", "raw"), Key("Dashboard", "cpu"), Key("Dashboard", "mem")
BLUE, RED = Key(LABEL, "blue"), Key(LABEL, "red")


def entry(key: Key, resource_id: str = "", origin: Origin = Origin.CREATED) -> InventoryEntry:
    return InventoryEntry(key, resource_id, origin)


def plan(entries: Sequence[InventoryEntry], *found: Step, removed: Sequence[Key] = ()) -> Plan:
    return a_plan(*found, entries=entries, removed=removed)


def record(*entries: InventoryEntry) -> StackRecord:
    return StackRecord("1", Target(), "s", 1, entries)


def _after(recorded: StackRecord, changes: RecordChanges) -> list[InventoryEntry]:
    return list(changed(recorded.resources, changes))


CREATE_CPU = Step(0, 0, Verb.CREATE, CPU, new_spec=spec_of({"name": "cpu"}))
DELETE_MEM = Step(0, 0, Verb.DELETE, MEM, "mem-1", old_spec=spec_of({"name": "mem"}), undo=Undo.RECREATE)
DELETE_RAW = Step(0, 0, Verb.DELETE, RAW, "raw-1", old_spec=spec_of({"name": "raw"}), undo=Undo.NONE)
DETACH_RED = Step(0, 0, Verb.DETACH, RAW, "raw-1", label=RED, label_id="red-1")
UPDATE_RAW = Step(0, 0, Verb.UPDATE, RAW, "raw-2", old_spec=spec_of({"name": "old"}), new_spec=spec_of({"name": "new"}))
REPLACE_RAW = Step(0, 0, Verb.CREATE, RAW, new_spec=spec_of({"name": "raw"}))
REPLACE_MEM = Step(0, 0, Verb.CREATE, MEM, new_spec=spec_of({"name": "new"}))


@pytest.mark.parametrize(
    ("made", "recorded", "done", "leftovers", "expected"),
    [
        pytest.param(plan([entry(CPU)], CREATE_CPU), record(), {0: "cpu-1"}, [], [entry(CPU, "cpu-1")], id="a create"),
        pytest.param(
            plan([], DELETE_RAW, removed=[RAW]),
            record(entry(RAW, "raw-1")),
            {},
            [0],
            [entry(RAW, "raw-1")._replace(is_pending_delete=True)],
            id="a leftover removal",
        ),
        pytest.param(
            plan([], DETACH_RED, DELETE_RAW, removed=[RAW]),
            record(entry(RAW, "raw-1")._replace(associations=(BLUE, RED)), entry(BLUE, "blue-1"), entry(RED, "red-1")),
            {0: "raw-1"},
            [1],
            [
                entry(RAW, "raw-1")._replace(associations=(BLUE,), is_pending_delete=True),
                entry(BLUE, "blue-1"),
                entry(RED, "red-1"),
            ],
            id="a leftover removal, after a label was detached",
        ),
        pytest.param(
            plan([], DELETE_RAW, removed=[RAW]), record(entry(RAW, "raw-1")), {0: "raw-1"}, [], [], id="a removal"
        ),
        pytest.param(
            plan([entry(RAW)], DELETE_RAW, REPLACE_RAW),
            record(entry(RAW, "raw-1")),
            {0: "raw-1", 1: "raw-2"},
            [],
            [entry(RAW, "raw-2")],
            id="a replacement",
        ),
        pytest.param(
            plan([entry(RAW)], DELETE_RAW, REPLACE_RAW),
            record(entry(RAW, "raw-1")),
            {0: "raw-1"},
            [1],
            [],
            id="a replacement that was not created",
        ),
        pytest.param(
            plan([entry(RAW)], DELETE_RAW, REPLACE_RAW),
            record(entry(RAW, "raw-1")),
            {},
            [0, 1],
            [entry(RAW, "raw-1")],
            id="a replacement that did not begin",
        ),
        pytest.param(
            plan([entry(RAW)], DELETE_RAW, REPLACE_RAW),
            record(entry(RAW, "raw-1", Origin.ADOPTED)),
            {},
            [0, 1],
            [entry(RAW, "raw-1", Origin.ADOPTED)],
            id="a replacement of an adopted resource that did not begin",
        ),
        pytest.param(
            plan([entry(RAW)], DELETE_RAW, REPLACE_RAW),
            record(),
            {},
            [0, 1],
            [],
            id="a replacement of an unowned resource that did not begin",
        ),
        pytest.param(
            plan([entry(RAW)], REPLACE_RAW, DELETE_RAW),
            record(entry(RAW, "raw-1")),
            {0: "raw-2", 1: "raw-1"},
            [],
            [entry(RAW, "raw-2")],
            id="a replacement that creates first",
        ),
        pytest.param(
            plan([entry(RAW)], REPLACE_RAW, DELETE_RAW),
            record(entry(RAW, "raw-1")._replace(associations=(RED,))),
            {0: "raw-2"},
            [1],
            [
                entry(RAW, "raw-2"),
                entry(Key("Bucket", "raw~raw-1"), "raw-1")._replace(is_pending_delete=True),
            ],
            id="a replacement that creates first and does not delete",
        ),
        pytest.param(
            plan([entry(RAW)], REPLACE_RAW, DELETE_RAW),
            record(entry(RAW, "raw-0")),
            {0: "raw-2"},
            [1],
            [entry(RAW, "raw-2")],
            id="a replacement of an unowned resource that creates first and does not delete",
        ),
        pytest.param(
            plan([entry(RAW, "raw-1", Origin.ADOPTED)]),
            record(),
            {},
            [],
            [entry(RAW, "raw-1", Origin.ADOPTED)],
            id="an adoption",
        ),
        pytest.param(
            plan([], removed=[CPU]),
            record(entry(CPU, "cpu-1"), entry(MEM, "mem-1")),
            {},
            [],
            [entry(MEM, "mem-1")],
            id="one that leaves the stack without a step, one that is unchanged",
        ),
        pytest.param(
            plan([entry(MEM, "mem-1")._replace(associations=(RED,))]),
            record(entry(CPU, "cpu-1"), entry(MEM, "mem-1")),
            {},
            [],
            [entry(CPU, "cpu-1"), entry(MEM, "mem-1")._replace(associations=(RED,))],
            id="other labels",
        ),
    ],
)
def test_after_success_the_record_lists_the_existing_resources(
    made: Plan,
    recorded: StackRecord,
    done: Mapping[int, str],
    leftovers: Sequence[int],
    expected: Sequence[InventoryEntry],
) -> None:
    outcomes: dict[int, Outcome] = {step: Done(resource_id) for step, resource_id in done.items()}
    progress = progress_of(made, outcomes | {step: Failed("no") for step in leftovers})
    assert _after(recorded, after_success(progress, leftovers, recorded.resources)) == expected


@pytest.mark.parametrize(
    ("made", "recorded", "done", "undone", "expected"),
    [
        pytest.param(
            plan([entry(CPU)], CREATE_CPU), record(), {0: Done("cpu-1")}, {0: Done("cpu-1")}, [], id="all undone"
        ),
        pytest.param(
            plan([entry(CPU)], CREATE_CPU),
            record(),
            {0: Done("cpu-1")},
            {0: Failed("no")},
            [entry(CPU, "cpu-1")],
            id="created and left",
        ),
        pytest.param(
            plan([entry(CPU)], CREATE_CPU), record(), {0: Unknown("?")}, {}, [], id="perhaps created, id unknown"
        ),
        pytest.param(
            plan([], DELETE_MEM, removed=[MEM]),
            record(entry(MEM, "mem-1")),
            {0: Done("mem-1")},
            {0: Done("mem-2")},
            [entry(MEM, "mem-2")],
            id="deleted and created again",
        ),
        pytest.param(
            plan([], DELETE_MEM, removed=[MEM]),
            record(entry(MEM, "mem-1")),
            {0: Done("mem-1")},
            {0: Unknown("?")},
            [],
            id="deleted and perhaps created again",
        ),
        pytest.param(
            plan([], DELETE_MEM, removed=[MEM]),
            record(entry(MEM, "mem-1")),
            {0: Unknown("?")},
            {},
            [entry(MEM, "mem-1")],
            id="perhaps deleted",
        ),
        pytest.param(
            plan([entry(RAW, "raw-2", Origin.ADOPTED)], UPDATE_RAW),
            record(entry(RAW, "raw-1")),
            {0: Done("raw-2")},
            {0: Done("raw-2")},
            [entry(RAW, "raw-1")],
            id="another resource of the name was adopted in place of one that is gone",
        ),
        pytest.param(
            plan([entry(CPU)], CREATE_CPU),
            record(entry(CPU, "cpu-0")),
            {0: Done("cpu-1")},
            {0: Failed("no")},
            [entry(CPU, "cpu-1")],
            id="created in place of one that is gone, and left",
        ),
        pytest.param(
            plan([entry(Key("Dashboard", "new"), "mem-1")], removed=[MEM]),
            record(entry(MEM, "mem-1")),
            {},
            {},
            [entry(MEM, "mem-1")],
            id="moved to another key",
        ),
        pytest.param(
            plan([entry(MEM)], REPLACE_MEM, DELETE_MEM),
            record(entry(MEM, "mem-1")),
            {0: Done("mem-2"), 1: Done("mem-1")},
            {0: Done("mem-2"), 1: Done("mem-3")},
            [entry(MEM, "mem-3")],
            id="replaced, the new one created first",
        ),
        pytest.param(
            plan([entry(MEM)], REPLACE_MEM, DELETE_MEM),
            record(entry(MEM, "mem-1")),
            {0: Done("mem-2")},
            {0: Done("mem-2")},
            [entry(MEM, "mem-1")],
            id="to be replaced, the new one created first",
        ),
        pytest.param(
            plan([entry(MEM)], REPLACE_MEM, DELETE_MEM),
            record(entry(MEM, "mem-1")),
            {0: Done("mem-2"), 1: Done("mem-1")},
            {0: Failed("no"), 1: Done("mem-3")},
            [
                entry(MEM, "mem-3"),
                entry(Key("Dashboard", "mem~mem-2"), "mem-2")._replace(is_pending_delete=True),
            ],
            id="replaced, the new one created first and left",
        ),
        pytest.param(
            plan([entry(MEM)], REPLACE_MEM, DELETE_MEM),
            record(entry(MEM, "mem-1")),
            {0: Done("mem-2"), 1: Done("mem-1")},
            {0: Failed("no"), 1: Failed("no")},
            [entry(MEM, "mem-2")],
            id="replaced, the new one left, the old one gone",
        ),
    ],
)
def test_after_a_rollback_the_record_is_restored_but_for_steps_that_could_not_be_undone(
    made: Plan,
    recorded: StackRecord,
    done: dict[int, Outcome],
    undone: dict[int, Outcome],
    expected: Sequence[InventoryEntry],
) -> None:
    assert _after(recorded, after_undo(progress_of(made, done, undone), recorded.resources)) == expected


def test_a_kept_creation_is_an_adoption_in_every_end_of_the_operation() -> None:
    progress = Progress(plan([entry(CPU)], CREATE_CPU))
    progress.fold([StepRecord(0, StepState.UNKNOWN)])
    progress.fold([StepRecord(0, StepState.KEPT, "cpu-9")])
    expected = [entry(CPU, "cpu-9", Origin.ADOPTED)]
    assert _after(record(), after_success(progress, [], [])) == expected
    assert _after(record(), after_undo(progress, [])) == expected


def test_a_leftover_of_an_operation_without_a_stack_is_reported() -> None:
    """The plan of such an operation changes no record, so it has no entries."""
    progress = progress_of(plan([], CREATE_CPU), {0: Done("cpu-1")}, {0: Failed("no")})
    assert _after(record(), after_undo(progress, [])) == [entry(CPU, "cpu-1")]


Fate = tuple[list[InventoryEntry], list[InventoryEntry], list[Step]]
"""The entries of one object before and after a plan, and the steps about it."""


def _fates(number: int) -> st.SearchStrategy[Fate]:
    """The possible fates of one object."""
    key, spec = Key("Dashboard", f"d{number}"), spec_of({"name": f"d{number}"})
    made, gone, adopted = entry(key), entry(key, f"old {number}"), entry(key, f"live {number}", Origin.ADOPTED)
    create = Step(0, 0, Verb.CREATE, key, new_spec=spec)
    delete = Step(0, 0, Verb.DELETE, key, gone.resource_id, old_spec=spec, undo=Undo.RECREATE)
    update = Step(0, 0, Verb.UPDATE, key, gone.resource_id, old_spec=spec, new_spec=spec)
    fates: list[Fate] = [
        ([gone], [gone], []),
        ([gone], [gone], [update]),
        ([gone], [gone._replace(associations=(RED,))], [update]),
        ([gone._replace(is_pending_delete=True)], [gone], []),
        ([], [made], [create]),
        ([gone], [made], [create]),
        ([gone], [made], [delete, create]),
        ([gone], [], [delete]),
        ([gone], [], []),
        ([], [adopted], []),
        ([gone], [adopted], [update._replace(resource_id=adopted.resource_id)]),
    ]
    return st.sampled_from(fates)


@st.composite
def _operations(draw: st.DrawFn) -> tuple[StackRecord, list[InventoryEntry], list[Step], list[list[StepRecord]]]:
    """A record, the inventory that a plan wants instead, its steps, and the records of each step."""
    fates = [draw(_fates(number)) for number in range(draw(st.integers(1, 4)))]
    before = [each for was, _, _ in fates for each in was]
    after = [each for _, becomes, _ in fates for each in becomes]
    steps = [step for _, _, found in fates for step in found]
    done = st.builds(StepRecord, st.just(0), st.just(StepState.DONE), st.sampled_from(["new", "newer"]))
    ends = st.one_of(
        st.just([]),
        st.tuples(done).map(list),
        st.just([StepRecord(0, StepState.FAILED)]),
        st.just([StepRecord(0, StepState.UNKNOWN)]),
        st.just([StepRecord(0, StepState.UNKNOWN), StepRecord(0, StepState.KEPT, "kept")]),
        done.map(lambda record: [record, StepRecord(0, StepState.UNDONE, "again")]),
        done.map(lambda record: [record, StepRecord(0, StepState.UNDO_FAILED, record.resource_id)]),
        done.map(lambda record: [record, StepRecord(0, StepState.UNDO_UNKNOWN, record.resource_id)]),
    )
    journal: list[list[StepRecord]] = [
        [each._replace(step=number, resource_id=f"{each.resource_id} {number}") for each in draw(ends)]
        for number in range(len(steps))
    ]
    return record(*before), after, steps, journal


@given(_operations())
def test_the_record_after_an_operation_does_not_depend_on_unchanged_entries_in_the_plan(
    operation: tuple[StackRecord, list[InventoryEntry], list[Step], list[list[StepRecord]]],
) -> None:
    """A plan with changes only results in the same record as a plan with the whole inventory."""
    recorded, inventory, steps, journal = operation
    lean = a_plan(*steps)
    lean = replace(lean, record=changes_to(inventory, recorded.resources))
    whole = replace(lean, record=RecordChanges(tuple(inventory), lean.record.removed))
    by_changes, by_all = Progress(lean), Progress(whole)
    for records in journal:
        for each in records:
            by_changes.fold([each])
            by_all.fold([each])
    leftovers = [each.number for each in by_all.effects if not by_all.took_effect(each.number)]
    resources = recorded.resources
    assert after_undo(by_changes, resources) == after_undo(by_all, resources)
    lean_end, whole_end = (after_success(each, leftovers, resources) for each in (by_changes, by_all))
    assert _after(recorded, lean_end) == _after(recorded, whole_end)
    recreated = [by_all.ids.get(each.key) and each._replace(resource_id=by_all.ids.get(each.key)) for each in inventory]
    if not journal or all(records == [] or records[-1].state is StepState.DONE for records in journal):
        assert _after(recorded, after_success(by_changes, [], [])) == [each for each in recreated if each]


USED = Use(RAW, "Bucket", "raw-1", "red-1")


@pytest.mark.parametrize(
    ("changes", "recorded", "orphans", "expected"),
    [
        pytest.param(
            RecordChanges((), (RAW,), (RAW,)),
            # Its label may have left the record before.
            record(entry(RAW, "raw-1")._replace(associations=(RED,))),
            Orphans(frozenset({RAW})),
            [entry(RAW, "raw-1")._replace(is_pending_delete=True)],
            id="a resource",
        ),
        pytest.param(
            RecordChanges((), (RAW, RED), (RAW, RED), (USED,)),
            record(entry(RAW, "raw-1", Origin.SHARED)._replace(associations=(RED,)), entry(RED, "red-1")),
            Orphans(frozenset(), frozenset({USED})),
            [
                entry(RAW, "raw-1", Origin.SHARED)._replace(associations=(RED,), is_pending_delete=True),
                entry(RED, "red-1")._replace(is_pending_delete=True),
            ],
            id="a label that leaves with its resource",
        ),
        pytest.param(
            RecordChanges((entry(RAW, "raw-1"),), (), (), (USED,)),
            record(entry(RAW, "raw-1")._replace(associations=(RED, Key(LABEL, "gone"))), entry(RED, "red-1")),
            Orphans(frozenset(), frozenset({USED})),
            [entry(RAW, "raw-1")._replace(associations=(RED,)), entry(RED, "red-1")],
            id="a label of a resource that stays, beside one that left the record before",
        ),
    ],
)
def test_orphans_stay_in_the_record(
    changes: RecordChanges, recorded: StackRecord, orphans: Orphans, expected: list[InventoryEntry]
) -> None:
    made = replace(plan([]), record=changes)
    end = Finish(OperationState.SUCCEEDED)
    concluded = Conclusion(Progress(made), end, OperationKind.APPLY, "1", False, False, recorded.resources, orphans)
    assert _after(recorded, concluded.changes) == expected
    assert (concluded.leftover_count, "'raw' stays in the record" in concluded.cause) == (1, True)
