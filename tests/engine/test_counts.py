"""Counts of steps by verb, and of steps in effect."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.core.model import LABEL, SECRET, DataLoss, Key, Step, Undo, Verb
from services.engine.counts import StepCounts, counts_in_effect, counts_of
from services.engine.effects import effect_of
from services.engine.outcome import Done, Failed, GivenUp, Outcome, Skipped, Unknown
from services.engine.progress import Progress
from services.engine.step_state import StepRecord, StepState
from tests.engine.plans import a_plan, progress_of

TASK, RED = Key("Task", "t"), Key(LABEL, "red")


def a_step(verb: Verb, key: Key = TASK, undo: Undo = Undo.EXACT) -> Step:
    return Step(0, 0, verb, key, label=RED if verb in (Verb.ATTACH, Verb.DETACH) else None, undo=undo)


SORTS: list[tuple[Step, StepCounts]] = [
    (a_step(Verb.CREATE), StepCounts(creates=1)),
    (a_step(Verb.UPDATE), StepCounts(updates=1)),
    (
        a_step(Verb.UPDATE, undo=Undo.NONE)._replace(loss=DataLoss("/every", "data")),
        StepCounts(updates=1, irreversible=1, losses=1),
    ),
    (a_step(Verb.DELETE, undo=Undo.RECREATE), StepCounts(deletes=1)),
    (a_step(Verb.DELETE, undo=Undo.NONE), StepCounts(deletes=1, irreversible=1)),
    (a_step(Verb.ATTACH), StepCounts(attaches=1)),
    (a_step(Verb.DETACH), StepCounts(detaches=1)),
    (a_step(Verb.CREATE, Key(SECRET, "k")), StepCounts(secrets=1)),
    # Overwriting a secret cannot be undone either, but it is no deletion and does not run last.
    (a_step(Verb.UPDATE, Key(SECRET, "k"), Undo.NONE), StepCounts(secrets=1)),
]


@pytest.mark.parametrize(("step", "expected"), SORTS)
def test_a_step_counts_as_what_it_does(step: Step, expected: StepCounts) -> None:
    assert counts_of([effect_of(step)]) == expected


def test_nothing_counts_nothing() -> None:
    assert counts_of([]) == counts_in_effect(Progress(a_plan())) == StepCounts(0, 0, 0, 0, 0, 0, 0)


@given(st.lists(st.sampled_from(SORTS), max_size=20))
def test_counts_of_many_steps_are_the_sum_of_the_counts_of_each(sorts: list[tuple[Step, StepCounts]]) -> None:
    counts = counts_of(effect_of(step) for step, _ in sorts)
    assert counts == StepCounts(*(sum(column) for column in zip(*(each for _, each in sorts), strict=True)))
    assert sum(counts) - counts.irreversible - counts.losses == len(sorts)


@pytest.mark.parametrize(
    ("done", "undone", "expected"),
    [
        ({}, {}, StepCounts()),
        ({0: Done("1"), 1: Done("2")}, {}, StepCounts(creates=1, deletes=1, irreversible=1)),
        ({0: Done("1"), 1: Failed("no")}, {}, StepCounts(creates=1)),
        ({0: Done("1"), 1: Skipped("stopped")}, {0: Done("1")}, StepCounts()),
        ({0: Done("1")}, {0: Failed("no")}, StepCounts(creates=1)),
        ({0: Done("1")}, {0: Unknown("?")}, StepCounts(creates=1)),
        ({0: Unknown("?")}, {}, StepCounts()),
        ({0: GivenUp("so be it")}, {}, StepCounts()),
    ],
)
def test_only_steps_that_are_in_effect_count(
    done: dict[int, Outcome], undone: dict[int, Outcome], expected: StepCounts
) -> None:
    plan = a_plan(a_step(Verb.CREATE), a_step(Verb.DELETE, undo=Undo.NONE))
    assert counts_in_effect(progress_of(plan, done, undone)) == expected


def test_a_step_with_the_decision_keep_is_in_effect() -> None:
    progress = Progress(a_plan(a_step(Verb.UPDATE)))
    progress.fold([StepRecord(0, StepState.UNKNOWN)])
    progress.fold([StepRecord(0, StepState.KEPT, "1")])
    assert counts_in_effect(progress) == StepCounts(updates=1)
