"""Large worlds: whatever the input, a resolution ends within its bounds, and what comes after a bound is little."""

from collections.abc import Callable, Mapping
from itertools import pairwise, permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner_svc.resolution import texts
from planner_svc.resolution.bounds import Bounds
from planner_svc.resolution.facts import Reason
from planner_svc.resolution.model import Conflict, FactKind, HeldBack, Resolution
from planner_svc.resolution.paths import MAX_NAMES, MAX_PATHS, Ways
from planner_svc.resolution.resolve import resolve
from tests.packages import large_worlds
from tests.packages.large_worlds import Calls
from tests.packages.resolving import installed, options, repository, request, resolved
from tests.packages.rows import case

_AT_ONCE_OVER = Bounds(explanation_steps=1)


@pytest.mark.parametrize(
    "world",
    [
        large_worlds.cycle,
        large_worlds.broken_chain,
        large_worlds.many_ranges,
        large_worlds.diamonds,
        large_worlds.installed_chain,
        large_worlds.cascade,
        large_worlds.installed_pairs,
    ],
)
def test_twice_as_many_packages_take_about_twice_as_much(world: Callable[[int], Mapping[str, Any]]) -> None:
    assert _calls(world(200)) < 2.5 * _calls(world(100))


def _calls(written: Mapping[str, Any]) -> int:
    repositories, packages = list(map(repository, written["repositories"])), list(map(installed, written["installed"]))
    wanted, consent = request(written["request"]), options(written["options"])
    with Calls() as calls:
        resolve(repositories, packages, wanted, consent, _AT_ONCE_OVER)
    return calls.number


def test_the_choice_of_packages_that_move_looks_at_the_clock() -> None:
    looks = [0]

    def clock() -> float:
        looks.append(calls.number)
        return 0.0

    with Calls() as calls:
        answer = resolved(large_worlds.choices_of_moves(7), Bounds(clock=clock))
    assert isinstance(answer, Resolution)
    assert max(later - look for look, later in pairwise(looks)) < 12_000


def test_a_long_cycle_is_told_within_the_bounds() -> None:
    answer = resolved(large_worlds.cycle(3_000), _AT_ONCE_OVER)
    assert isinstance(answer, Conflict)
    assert not answer.is_explained


@pytest.mark.parametrize("world", [large_worlds.cycle, large_worlds.broken_chain, large_worlds.diamonds])
def test_the_size_of_a_conflict_is_bounded(world: Callable[[int], Mapping[str, Any]]) -> None:
    """The ways of later facts are counted only."""
    answer = resolved(world(1_000), _AT_ONCE_OVER)
    assert isinstance(answer, Conflict)
    assert 15_000 < sum(len(path) for fact in answer.facts for path in fact.paths) <= MAX_NAMES
    assert not answer.facts[-1].paths
    assert answer.facts[-1].further_paths
    assert len(answer.text) < 1_000


def test_facts_that_there_is_no_space_for_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "MAX_CHARACTERS", 60)
    answer = resolved(case(["p 1.0.0 [q]", "q 1.0.0 [d ^2]", "d 1.0.0"], [], "install p"))
    assert isinstance(answer, Conflict)
    assert not answer.is_explained
    assert [each.text for each in answer.facts] == ["p 1.0.0 was asked for", "p 1.0.0 requires q"]


def test_packages_are_held_back_by_facts_none_of_which_can_be_left_out_or_by_none() -> None:
    world = large_worlds.held_back(5)
    facts = {each.name: each.facts for each in _held_back(world, 1_000_000)}
    assert all(facts.values())
    for steps in range(1, 100):
        assert all(each.facts in ((), facts[each.name]) for each in _held_back(world, steps))


def _held_back(world: Mapping[str, Any], explanation_steps: int) -> tuple[HeldBack, ...]:
    answer = resolved(world, Bounds(explanation_steps=explanation_steps))
    assert isinstance(answer, Resolution)
    return answer.held_back


@given(st.sets(st.tuples(st.sampled_from("abcde"), st.sampled_from("abcde"))), st.sets(st.sampled_from("abcde")))
def test_ways_are_the_shortest_that_lead_through_no_package_twice(
    edges: set[tuple[str, str]], starts: set[str]
) -> None:
    reasons = [Reason(FactKind.REQUIRES, name, required) for name, required in edges]
    reasons += [Reason(FactKind.INSTALLED, name) for name in starts]
    ways = Ways(reasons)
    for package in "abcde":
        expected = [
            path
            for length in range(1, 6)
            for path in permutations("abcde", length)
            if path[0] in starts and path[-1] == package and edges.issuperset(pairwise(path))
        ]
        expected.sort(key=lambda path: (len(path), path[::-1]))
        paths = ways.to(package)
        assert paths.shortest == tuple(expected[:MAX_PATHS])
        assert paths.further == len(expected[MAX_PATHS:])
