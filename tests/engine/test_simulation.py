"""In every case an operation ends with all or nothing of its plan, and the record of the stack is right."""

from functools import cache

import pytest

from services.engine.operation import OperationState
from services.engine.step_life import StepState
from tests.engine import cases
from tests.engine.cases import Family
from tests.engine.changes import CHANGES
from tests.engine.model_platform import Fault, Memory, Script
from tests.engine.simulation import Case, Run, Situation

prepared = cache(Situation)


@pytest.fixture(params=CHANGES)
def change(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=Memory, ids=lambda memory: memory.name)
def situation(request: pytest.FixtureRequest, change: str) -> Situation:
    return prepared(change, request.param)


@pytest.fixture
def is_whole(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--faults"))


def try_out(situation: Situation, family: Family, share: float = 1) -> None:
    """Try out all cases, or a fixed sample."""
    for case in cases.sample(family, situation, share):
        situation.try_out(case)


def test_a_plan_without_faults_is_applied_and_leaves_no_steps(situation: Situation) -> None:
    situation.try_out(Case())


def test_the_plan_of_an_applier_that_dies_at_any_point_is_resumed_and_ended(
    situation: Situation,
) -> None:
    try_out(situation, cases.crashes)


def test_the_next_applier_may_die_at_any_point_as_well(situation: Situation, is_whole: bool) -> None:
    try_out(situation, cases.two_crashes, 1 if is_whole else 0.1)


def test_a_fault_at_any_mutation_is_tolerated_or_undone_or_left_for_the_next_apply(situation: Situation) -> None:
    try_out(situation, cases.faults)


def test_so_is_a_fault_with_a_crash(situation: Situation, is_whole: bool) -> None:
    try_out(situation, cases.faults_and_crashes, 1 if is_whole else 0.04)


def test_so_are_two_faults(situation: Situation, is_whole: bool) -> None:
    try_out(situation, cases.two_faults, 1 if is_whole else 0.02)


def test_an_operation_that_is_cancelled_at_any_point_is_undone_unless_it_is_sealed(situation: Situation) -> None:
    try_out(situation, cases.cancellations)


def test_so_is_one_with_a_fault_or_a_crash(situation: Situation, is_whole: bool) -> None:
    try_out(situation, cases.cancellations_and_more, 1 if is_whole else 0.02)


def test_an_operation_whose_record_is_refused_is_undone_unless_it_is_sealed(
    situation: Situation, is_whole: bool
) -> None:
    try_out(situation, cases.refused_records, 1 if is_whole else 0.2)


def test_a_later_step_about_a_resource_is_undone_before_an_earlier_one_also_after_a_failed_undo() -> None:
    """The rule loses its endpoint, which becomes one of another kind, and gets it back: two updates of one rule."""
    situation = prepared("turned", Memory.KEYS)
    first, second = (step.number for step in situation.plan.steps if step.key.kind == "NotificationRule")
    # All steps are done and then undone, the last first; the inverse of the second update is rejected.
    case = Case(Script(((2 * len(situation.plan.steps) - second - 1, Fault.REJECT),)), is_refused=True)
    run = Run(situation, case)
    run.drive()
    assert run.store.state is OperationState.BLOCKED
    states = [run.store.step_state(step) for step in (second, first)]
    assert states == [StepState.UNDO_FAILED, StepState.DONE]
    situation.try_out(case)
