"""What the record says after an operation."""

from collections.abc import Mapping, Sequence

import pytest

from services.core.model import InventoryEntry, Key, Origin, Plan, StackRecord, Step, Target, Undo, Verb
from services.engine.conclusion import after_success, after_undo
from services.engine.outcome import Done, Failed, Outcome, Unknown
from services.engine.progress import Progress
from services.engine.step_life import StepRecord, StepState
from services.kinds.canonical import spec_of
from tests.engine.plans import a_plan, progress_of

RAW, CPU, MEM = Key("Bucket", "raw"), Key("Dashboard", "cpu"), Key("Dashboard", "mem")


def entry(key: Key, resource_id: str = "", origin: Origin = Origin.CREATED) -> InventoryEntry:
    return InventoryEntry(key, resource_id, origin)


def plan(inventory: Sequence[InventoryEntry], *found: Step) -> Plan:
    return a_plan(*found, inventory=inventory)


def record(*entries: InventoryEntry) -> StackRecord:
    return StackRecord("1", Target(), "s", 1, entries)


CREATE_CPU = Step(0, 0, Verb.CREATE, CPU, new_spec=spec_of({"name": "cpu"}))
DELETE_MEM = Step(0, 0, Verb.DELETE, MEM, "mem-1", old_spec=spec_of({"name": "mem"}), undo=Undo.RECREATE)
DELETE_RAW = Step(0, 0, Verb.DELETE, RAW, "raw-1", old_spec=spec_of({"name": "raw"}), undo=Undo.NONE)
UPDATE_RAW = Step(0, 0, Verb.UPDATE, RAW, "raw-2", old_spec=spec_of({"name": "old"}), new_spec=spec_of({"name": "new"}))
REPLACE_RAW = Step(0, 0, Verb.CREATE, RAW, new_spec=spec_of({"name": "raw"}))


@pytest.mark.parametrize(
    ("made", "recorded", "done", "leftovers", "expected"),
    [
        pytest.param(plan([entry(CPU)], CREATE_CPU), record(), {0: "cpu-1"}, [], [entry(CPU, "cpu-1")], id="a create"),
        pytest.param(
            plan([], DELETE_RAW),
            record(entry(RAW, "raw-1")),
            {},
            [0],
            [entry(RAW, "raw-1")._replace(is_pending_delete=True)],
            id="a leftover removal",
        ),
        pytest.param(plan([], DELETE_RAW), record(entry(RAW, "raw-1")), {0: "raw-1"}, [], [], id="a removal"),
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
            id="a replacement that is not there",
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
            plan([entry(RAW, "raw-1", Origin.ADOPTED)]),
            record(),
            {},
            [],
            [entry(RAW, "raw-1", Origin.ADOPTED)],
            id="an adoption",
        ),
    ],
)
def test_after_success_the_record_lists_what_is_there(
    made: Plan,
    recorded: StackRecord,
    done: Mapping[int, str],
    leftovers: Sequence[int],
    expected: Sequence[InventoryEntry],
) -> None:
    outcomes: dict[int, Outcome] = {step: Done(resource_id) for step, resource_id in done.items()}
    progress = progress_of(made, outcomes | {step: Failed("no") for step in leftovers})
    assert after_success(progress, recorded, leftovers) == expected


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
            plan([], DELETE_MEM),
            record(entry(MEM, "mem-1")),
            {0: Done("mem-1")},
            {0: Done("mem-2")},
            [entry(MEM, "mem-2")],
            id="deleted and created again",
        ),
        pytest.param(
            plan([], DELETE_MEM),
            record(entry(MEM, "mem-1")),
            {0: Done("mem-1")},
            {0: Unknown("?")},
            [],
            id="deleted and perhaps created again",
        ),
        pytest.param(
            plan([], DELETE_MEM),
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
            plan([entry(Key("Dashboard", "new"), "mem-1")]),
            record(entry(MEM, "mem-1")),
            {},
            {},
            [entry(MEM, "mem-1")],
            id="moved to another key",
        ),
    ],
)
def test_after_an_undo_the_record_is_as_it_was_but_for_what_could_not_be_undone(
    made: Plan,
    recorded: StackRecord,
    done: dict[int, Outcome],
    undone: dict[int, Outcome],
    expected: Sequence[InventoryEntry],
) -> None:
    assert after_undo(progress_of(made, done, undone), recorded) == expected


def test_a_creation_that_was_kept_is_an_adoption_however_the_operation_ends() -> None:
    progress = Progress(plan([entry(CPU)], CREATE_CPU))
    progress.fold([StepRecord(0, StepState.UNKNOWN)])
    progress.fold([StepRecord(0, StepState.KEPT, "cpu-9")])
    expected = [entry(CPU, "cpu-9", Origin.ADOPTED)]
    assert after_success(progress, record(), []) == expected
    assert after_undo(progress, record()) == expected
