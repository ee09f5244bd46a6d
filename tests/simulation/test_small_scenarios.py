"""One operation of a few steps ends as it has to, whatever fault, crash or cancellation it meets, or pair of them."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from services.engine.operation import OperationState
from tests.simulation.faults import OF_MUTATIONS
from tests.simulation.running import Result, run
from tests.simulation.scenario import MutationFault, Scenario, from_json, to_json
from tests.simulation.small_scenarios import (
    CHANGES,
    COMBINED,
    FAMILIES,
    IDENTITIES,
    LEAST,
    NOTHING,
    SINGLE,
    Case,
    Family,
    Situation,
    drawn,
)

Runs = Callable[[Scenario], Result]

PAIRED = [("least", identity) for identity in IDENTITIES] + [("replaced", "SEARCH")]
"""Situations in which all pairs are tried."""


@pytest.fixture
def runs(folder: Path) -> Runs:
    return lambda scenario: run(scenario, folder)


def check(situation: Situation, case: Case) -> None:
    """The operation meets the whole case, and violates nothing."""
    result = situation.result(case)
    assert result.violations == {}, json.dumps(to_json(situation.scenario(case)))
    assert result.counts["kill applier"] == len(case.crashes)
    assert sum(result.counts[f"mutation {fault}"] for fault in OF_MUTATIONS) >= len(case.faults)


@pytest.mark.parametrize(("number", "change"), list(enumerate(CHANGES)), ids=CHANGES)
def test_an_operation_ends_in_some_cases_of_each_family(number: int, change: str, runs: Runs) -> None:
    """Platforms and families take turns."""
    situation = Situation(change, IDENTITIES[number % len(IDENTITIES)], runs)
    for family in FAMILIES[number % 5 :: 5]:
        for case in drawn(situation, family, 1, lasting=False):
            check(situation, case)


@pytest.mark.slow
@pytest.mark.parametrize(("number", "change"), list(enumerate(CHANGES)), ids=CHANGES)
def test_an_operation_ends_in_more_cases_of_each_family(number: int, change: str, runs: Runs) -> None:
    """Some of these faults last. Platforms and families take turns, in another order than above."""
    situation = Situation(change, IDENTITIES[(number + 1) % len(IDENTITIES)], runs)
    for family in FAMILIES[(number + 2) % 5 :: 5]:
        for case in drawn(situation, family, 1):
            check(situation, case)


@pytest.mark.faults
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("family", SINGLE, ids=lambda family: family.__name__)
@pytest.mark.parametrize("identity", IDENTITIES)
@pytest.mark.parametrize("change", CHANGES)
def test_an_operation_ends_with_each_single_fault(change: str, identity: str, family: Family, runs: Runs) -> None:
    situation = Situation(change, identity, runs)
    for case in family(situation):
        check(situation, case)


@pytest.mark.faults
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("family", COMBINED, ids=lambda family: family.__name__)
@pytest.mark.parametrize(("change", "identity"), PAIRED)
def test_a_small_operation_ends_with_each_pair_of_faults(
    change: str, identity: str, family: Family, runs: Runs
) -> None:
    assert change in LEAST
    situation = Situation(change, identity, runs)
    for case in family(situation):
        check(situation, case)


@pytest.mark.slow
def test_an_earlier_step_about_a_resource_is_not_undone_after_the_undo_of_a_later_one_failed(runs: Runs) -> None:
    """
    The rule loses its endpoint, which becomes one of another kind, and gets it back: two updates of one rule.

    All steps are done, and then undone because the record is refused; the platform refuses one undo.
    """
    situation = Situation("turned", "NATIVE", runs)
    sent = situation.extent(NOTHING).sent
    for nth in range(sent + 1, situation.extent(Case(is_refused=True)).sent + 1):
        case = Case((MutationFault(2, nth, "refused"),), is_refused=True)
        check(situation, case)
        assert situation.result(case).counts[f"operation {OperationState.BLOCKED}"] > 0


@pytest.mark.slow
def test_an_undo_without_answers_blocks_until_the_operator_retries_it(runs: Runs) -> None:
    situation = Situation("least", "NATIVE", runs)
    lost = MutationFault(2, situation.extent(NOTHING).sent + 1, "lost", is_lasting=True)
    case = Case((lost,), is_refused=True)
    check(situation, case)
    assert situation.result(case).counts[f"operation {OperationState.BLOCKED}"] > 0


def test_a_small_scenario_is_the_same_as_json(runs: Runs) -> None:
    case = Case((MutationFault(2, 1, "refused", is_lasting=True),), (("after_intent", 3),), 2, is_refused=True)
    scenario = Situation("secrets", "SEARCH", runs).scenario(case)
    assert from_json(to_json(scenario)) == scenario
