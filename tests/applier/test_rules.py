"""The pure parts of the applier: rounds, batches, opposites, ids and inventories."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applier_svc.batches import batches, rounds
from applier_svc.ids import Ids
from applier_svc.inventory import after_success, after_undo
from applier_svc.outcomes import Direction, Done, Failed, Outcome, Skipped, Unknown
from applier_svc.progress import Progress
from applier_svc.undo import inverse, is_to_be_undone
from services.core.model import LABEL, InventoryEntry, Key, Origin, Plan, Spec, StackRecord, Step, Target, Undo, Verb
from services.kinds.canonical import spec_of
from tests.strategies import steps

RED, RAW, CPU, MEM = Key(LABEL, "red"), Key("Bucket", "raw"), Key("Dashboard", "cpu"), Key("Dashboard", "mem")


def spec(name: str) -> Spec:
    return spec_of({"name": name})


few_specs = st.sampled_from([spec("one"), spec("two"), spec("three")])
few_keys = st.sampled_from([RED, RAW, CPU, MEM])
step_lists = st.lists(st.tuples(st.sampled_from(Verb), few_keys, st.none() | few_specs), max_size=12).map(
    lambda found: [Step(number, 0, verb, key, new_spec=spec) for number, (verb, key, spec) in enumerate(found)]
)


@given(step_lists)
def test_rounds_hold_every_step_once_and_in_order(found: list[Step]) -> None:
    split = rounds(found)
    assert sorted(step.number for turn in split for step in turn) == [step.number for step in found]
    for turn in split:
        assert turn
        assert [step.number for step in turn] == sorted(step.number for step in turn)


@given(step_lists)
def test_no_two_creates_of_one_name_share_a_round(found: list[Step]) -> None:
    for turn in rounds(found):
        names = [
            (step.key.kind, step.new_spec.display_name)
            for step in turn
            if step.verb is Verb.CREATE and step.new_spec is not None
        ]
        assert len(names) == len(set(names))


@given(step_lists)
def test_all_else_runs_in_the_first_round(found: list[Step]) -> None:
    assert all(step.verb is Verb.CREATE for turn in rounds(found)[1:] for step in turn)


@given(step_lists, st.integers(1, 5), st.integers(1, 60))
def test_batches_keep_the_order_and_both_bounds(found: list[Step], max_count: int, max_bytes: int) -> None:
    cut = batches(found, max_count, max_bytes)
    assert [step for batch in cut for step in batch] == found
    for batch in cut:
        assert 1 <= len(batch) <= max_count
        length = sum(len(step.new_spec.text.encode()) for step in batch if step.new_spec)
        assert length <= max_bytes or len(batch) == 1


@given(step_lists, st.integers(1, 5), st.integers(1, 60))
def test_a_batch_ends_only_when_the_next_step_does_not_fit(found: list[Step], count: int, size: int) -> None:
    cut = batches(found, count, size)
    for batch, following in pairwise(cut):
        assert len(batches([*batch, following[0]], count, size)) == 2


@given(steps)
def test_the_opposite_of_the_opposite_is_the_step_itself(step: Step) -> None:
    assert inverse(inverse(step)) == step
    assert inverse(step).number == step.number


@given(steps)
def test_a_step_is_undone_exactly_when_it_can_be_and_had_its_effect(step: Step) -> None:
    assert is_to_be_undone(step, Done("1")) == (step.undo is not Undo.NONE)
    assert not is_to_be_undone(step, Failed("no"))
    assert not is_to_be_undone(step, Skipped("no"))
    assert not is_to_be_undone(step, Unknown("?"))


def entry(key: Key, remote_id: str = "", origin: Origin = Origin.CREATED) -> InventoryEntry:
    return InventoryEntry(key, remote_id, origin)


def plan(inventory: Sequence[InventoryEntry], *found: Step) -> Plan:
    return Plan(
        target=Target(),
        stack_id="1",
        base_generation=1,
        stages=("only",),
        steps=tuple(step._replace(number=number) for number, step in enumerate(found)),
        resource_diffs=(),
        label_mapping_diffs=(),
        inventory=tuple(inventory),
        no_change=False,
        summary="{}",
    )


def record(*entries: InventoryEntry) -> StackRecord:
    return StackRecord("1", Target(), "s", 1, entries)


CREATE_CPU = Step(0, 0, Verb.CREATE, CPU, new_spec=spec("cpu"))
DELETE_MEM = Step(0, 0, Verb.DELETE, MEM, "mem-1", old_spec=spec("mem"), undo=Undo.RECREATE)
DELETE_RAW = Step(0, 0, Verb.DELETE, RAW, "raw-1", old_spec=spec("raw"), undo=Undo.NONE)
UPDATE_RAW = Step(0, 0, Verb.UPDATE, RAW, "raw-2", old_spec=spec("old"), new_spec=spec("new"))
REPLACE_RAW = Step(0, 0, Verb.CREATE, RAW, new_spec=spec("raw"))


def ids_after(made: Plan, *effects: tuple[int, str]) -> Ids:
    ids = Ids(made)
    for number, remote_id in effects:
        ids.note(made.steps[number], remote_id)
    return ids


def test_ids_are_those_of_the_plan_until_steps_change_them() -> None:
    attach = Step(0, 0, Verb.ATTACH, CPU, label=RED)
    foreign = Step(0, 0, Verb.DETACH, Key("Dashboard", ""), "other", label=Key(LABEL, ""), label_id="theirs")
    made = plan([entry(CPU), entry(RED, "red-1")], CREATE_CPU, DELETE_MEM, attach, foreign)
    ids = Ids(made)
    assert [ids.of_resource(step) for step in made.steps] == ["", "mem-1", "", "other"]
    assert [ids.of_label(step) for step in made.steps] == ["", "", "red-1", "theirs"]
    ids = ids_after(made, (0, "cpu-1"), (1, "mem-1"))
    assert [ids.of_resource(step) for step in made.steps] == ["", "", "cpu-1", "other"]
    assert ids.of_resource(inverse(made.steps[0])) == "cpu-1"


@pytest.mark.parametrize(
    ("made", "recorded", "effects", "leftovers", "expected"),
    [
        pytest.param(
            plan([entry(CPU)], CREATE_CPU), record(), [(0, "cpu-1")], [], [entry(CPU, "cpu-1")], id="a create"
        ),
        pytest.param(
            plan([], DELETE_RAW),
            record(entry(RAW, "raw-1")),
            [],
            [0],
            [entry(RAW, "raw-1")._replace(is_pending_delete=True)],
            id="a leftover removal",
        ),
        pytest.param(plan([], DELETE_RAW), record(entry(RAW, "raw-1")), [(0, "raw-1")], [], [], id="a removal"),
        pytest.param(
            plan([entry(RAW)], DELETE_RAW, REPLACE_RAW),
            record(entry(RAW, "raw-1")),
            [(0, "raw-1"), (1, "raw-2")],
            [],
            [entry(RAW, "raw-2")],
            id="a replacement",
        ),
        pytest.param(
            plan([entry(RAW)], DELETE_RAW, REPLACE_RAW),
            record(entry(RAW, "raw-1")),
            [(0, "raw-1")],
            [1],
            [],
            id="a replacement that is not there",
        ),
        pytest.param(
            plan([entry(RAW)], DELETE_RAW, REPLACE_RAW),
            record(entry(RAW, "raw-1")),
            [],
            [0, 1],
            [entry(RAW, "raw-1")],
            id="a replacement that did not begin",
        ),
        pytest.param(
            plan([entry(RAW, "raw-1", Origin.ADOPTED)]),
            record(),
            [],
            [],
            [entry(RAW, "raw-1", Origin.ADOPTED)],
            id="an adoption",
        ),
    ],
)
def test_after_success_the_record_lists_what_is_there(
    made: Plan,
    recorded: StackRecord,
    effects: Sequence[tuple[int, str]],
    leftovers: Sequence[int],
    expected: Sequence[InventoryEntry],
) -> None:
    assert after_success(made, recorded, ids_after(made, *effects), leftovers) == expected


@pytest.mark.parametrize(
    ("made", "recorded", "done", "undone", "effects", "expected"),
    [
        pytest.param(
            plan([entry(CPU)], CREATE_CPU), record(), {0: Done("cpu-1")}, {0: Done("cpu-1")}, [], [], id="all undone"
        ),
        pytest.param(
            plan([entry(CPU)], CREATE_CPU),
            record(),
            {0: Done("cpu-1")},
            {0: Failed("no")},
            [(0, "cpu-1")],
            [entry(CPU, "cpu-1")],
            id="created and left",
        ),
        pytest.param(
            plan([entry(CPU)], CREATE_CPU), record(), {0: Unknown("?")}, {}, [], [], id="perhaps created, id unknown"
        ),
        pytest.param(
            plan([], DELETE_MEM),
            record(entry(MEM, "mem-1")),
            {0: Done("mem-1")},
            {0: Done("mem-2")},
            [(0, "mem-1")],
            [entry(MEM, "mem-2")],
            id="deleted and created again",
        ),
        pytest.param(
            plan([], DELETE_MEM),
            record(entry(MEM, "mem-1")),
            {0: Done("mem-1")},
            {0: Unknown("?")},
            [(0, "mem-1")],
            [],
            id="deleted and perhaps created again",
        ),
        pytest.param(
            plan([], DELETE_MEM),
            record(entry(MEM, "mem-1")),
            {0: Unknown("?")},
            {},
            [],
            [entry(MEM, "mem-1")],
            id="perhaps deleted",
        ),
        pytest.param(
            plan([entry(RAW, "raw-2", Origin.ADOPTED)], UPDATE_RAW),
            record(entry(RAW, "raw-1")),
            {0: Done("raw-2")},
            {0: Done("raw-2")},
            [],
            [entry(RAW, "raw-1")],
            id="another resource of the name was adopted in place of one that is gone",
        ),
        pytest.param(
            plan([entry(CPU)], CREATE_CPU),
            record(entry(CPU, "cpu-0")),
            {0: Done("cpu-1")},
            {0: Failed("no")},
            [(0, "cpu-1")],
            [entry(CPU, "cpu-1")],
            id="created in place of one that is gone, and left",
        ),
        pytest.param(
            plan([entry(Key("Dashboard", "new"), "mem-1")]),
            record(entry(MEM, "mem-1")),
            {},
            {},
            [],
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
    effects: Sequence[tuple[int, str]],
    expected: Sequence[InventoryEntry],
) -> None:
    progress = Progress(done=done, undone=undone)
    ids = ids_after(made, *effects)
    for number, outcome in undone.items():
        if isinstance(outcome, Done):
            ids.note(inverse(made.steps[number]), outcome.remote_id)
    assert after_undo(made, recorded, ids, progress) == expected


def test_an_intent_is_open_until_its_outcome_is_known() -> None:
    progress = Progress()
    progress.intend({0: ""}, Direction.DO)
    assert progress.open == {0: Direction.DO}
    assert progress.may_have_happened(CREATE_CPU, Direction.DO)
    assert not progress.may_have_happened(CREATE_CPU, Direction.UNDO)
    progress.end({0: Done("cpu-1")}, Direction.DO)
    assert progress.open == {}
    progress.intend({0: "cpu-1"}, Direction.UNDO)
    assert (progress.took_effect(CREATE_CPU), progress.was_undone(CREATE_CPU)) == (True, False)
    progress.end({0: Done("cpu-1")}, Direction.UNDO)
    assert (progress.took_effect(CREATE_CPU), progress.was_undone(CREATE_CPU)) == (True, True)
