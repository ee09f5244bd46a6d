"""Laws of resolution, on random worlds."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner_svc.resolution import conflicts
from planner_svc.resolution.bounds import Bounds
from planner_svc.resolution.catalogue import Catalogue, Edition
from planner_svc.resolution.facts import ImaginedVersions, Reduced, Reducer, reduce
from planner_svc.resolution.model import Change, ChangeAction, Conflict, ConflictCode, Resolution
from planner_svc.resolution.nab_search import search
from planner_svc.resolution.resolve import resolve
from planner_svc.resolution.search import (
    ABSENT,
    FIRST,
    Assignment,
    Budget,
    Failure,
    Question,
    Values,
    values_of,
)
from planner_svc.resolution.world import World
from services.packages.ranges import Range
from services.packages.versions import Version
from tests.packages.brute_force import BruteForce, Present
from tests.packages.resolving import as_json, installed, repository, resolved
from tests.packages.strategies import range_texts, version_texts
from tests.packages.worlds import shuffled, worlds

Json = Mapping[str, Any]

many = settings(max_examples=60)
"""For laws that only rare worlds break; an example takes milliseconds."""


def afterwards(case: Json, changes: Iterable[Change]) -> Present:
    """What is there after the changes."""
    present = {each["name"]: Version.parse(each["version"]) for each in case["installed"]}
    for change in changes:
        if change.action is ChangeAction.REMOVE:
            del present[change.name]
        elif change.new is not None:
            present[change.name] = change.new
    return present


@many
@given(worlds())
def test_the_answer_is_that_of_brute_force(case: Json) -> None:
    """There is a solution exactly if there is one, and it is the one that comes first."""
    answer = resolved(case)
    if isinstance(answer, Resolution):
        assert afterwards(case, answer.changes) == BruteForce(case).answer()
    elif answer.code is not ConflictCode.NOT_INSTALLED:
        assert BruteForce(case).answer() is None


@given(worlds())
def test_a_solution_holds_by_itself(case: Json) -> None:
    answer = resolved(case)
    if isinstance(answer, Resolution):
        present = afterwards(case, answer.changes)
        brute = BruteForce(case)
        assert brute.holds(present)
        assert brute.roots() <= present.keys()
        assert not brute.gone & present.keys()
        assert all(present[name] == brute.own[name] for name in brute.own if brute.blocked(name))


@given(worlds())
def test_each_change_comes_after_those_of_what_it_requires(case: Json) -> None:
    answer = resolved(case)
    if isinstance(answer, Resolution):
        brute, present = BruteForce(case), afterwards(case, answer.changes)
        graph = {name: list(brute.row(name, version).requires) for name, version in present.items()}
        moved = [change.name for change in answer.changes if change.action is not ChangeAction.REMOVE]
        for at, name in enumerate(moved):
            after = set(moved[at + 1 :])
            old = {name} if present[name] == brute.own.get(name) else set()
            # Among packages that required each other before, no order is right.
            assert not after & set(graph[name]) or old


@many
@given(st.data(), worlds())
def test_the_order_of_the_input_does_not_matter(data: st.DataObject, case: Json) -> None:
    answers = [resolved(case), resolved(data.draw(shuffled(case)))]
    assert answers[0] == answers[1]
    assert json.dumps(as_json(answers[0])) == json.dumps(as_json(answers[1]))


@many
@given(worlds())
def test_no_fact_can_be_left_out(case: Json) -> None:
    """Together the facts rule each other out; without any one of them, they do not."""
    for world, reduced in _reductions(case):
        assert reduced.is_minimal
        ranges = ImaginedVersions(reduced.reasons, world.situation)
        reducer = Reducer(world, search, Budget(1_000_000, lambda: False), ranges, reduced.trims)
        assert reducer.failure_of(reduced.reasons) is not None
        for reason in reduced.reasons:
            assert reducer.failure_of([each for each in reduced.reasons if each is not reason]) is None


def _reductions(case: Json) -> list[tuple[World, Reduced]]:
    """The sets of facts of an answer, as the search sees them."""
    reductions = []

    def recording(world: World, *arguments: Any) -> Reduced:
        reductions.append((world, reduce(world, *arguments)))
        return reductions[-1][1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(conflicts, "reduce", recording)
        resolved(case)
    return reductions


@many
@given(worlds())
def test_a_suggestion_that_is_accepted_is_solved(case: Json) -> None:
    answer = resolved(case)
    for suggestion in answer.suggestions if isinstance(answer, Conflict) else ():
        packages = [installed(each) for each in case["installed"]]
        packages = [replace(each, is_pinned=each.is_pinned and each.name not in suggestion.unpins) for each in packages]
        repositories = map(repository, case["repositories"])
        accepted = resolve(repositories, packages, suggestion.request, suggestion.options)
        assert isinstance(accepted, Resolution)
        assert accepted.changes == suggestion.changes


@given(worlds())
def test_resolvable_is_said_exactly_if_an_update_is_suggested(case: Json) -> None:
    answer = resolved(case)
    if isinstance(answer, Conflict):
        kinds = [each.kind.value for each in answer.suggestions]
        assert answer.resolvable is ("update" in kinds)
        assert kinds == [each for each in ORDER if each in kinds]
        assert answer.facts
        assert all(each.text and each.packages for each in answer.facts)
        assert answer.resolvable is False or answer.code is ConflictCode.VERSION_CONFLICT


ORDER = ("update", "other-version", "downgrade", "unpin", "cascade", "remove")


@given(worlds())
def test_nothing_moves_without_consent(case: Json) -> None:
    answer = resolved(case)
    brute = BruteForce(case)
    if isinstance(answer, Resolution):
        for change in answer.changes:
            is_free = brute.requested(change.name) is None and not brute.all_move(change.name)
            if change.action is ChangeAction.UPDATE and is_free:
                assert brute.options.get("update_dependencies") or brute.options.get("allow_downgrade")
            if change.action is ChangeAction.DOWNGRADE:
                assert brute.options.get("allow_downgrade")


@given(worlds(), st.integers(0, 30))
def test_a_bound_on_steps_is_never_called_impossible(case: Json, steps: int) -> None:
    answer, bounded = resolved(case), resolved(case, Bounds(steps=steps))
    if isinstance(bounded, Conflict) and bounded.code is ConflictCode.LIMIT:
        assert bounded.facts == ()
        assert not bounded.is_explained
    else:
        assert bounded == answer


@given(worlds(), st.integers(0, 30))
def test_an_explanation_that_is_cut_short_says_so(case: Json, steps: int) -> None:
    answer, bounded = resolved(case), resolved(case, Bounds(explanation_steps=steps))
    if isinstance(answer, Conflict):
        assert isinstance(bounded, Conflict)
        assert bounded == answer or not bounded.is_explained
        assert bounded.facts
    else:
        assert isinstance(bounded, Resolution)
        assert bounded.changes == answer.changes


def depth_first(question: Question, limits: Mapping[str, Values], budget: Budget) -> Assignment | Failure:
    """A search that learns nothing, for small worlds."""

    def solved(pending: list[str], allowed: Mapping[str, Values], chosen: Assignment) -> Assignment | None:
        budget.use(1)
        if not pending:
            return chosen
        name, *others = pending
        values = question.domain(name) & limits.get(name, -1) & allowed.get(name, -1)
        candidates = [chosen[name]] if name in chosen else values_of(values)
        for value in candidates:
            if not values >> value & 1:
                continue
            needs = question.needs(name, value)
            narrowed = {**allowed, **{each: allowed.get(each, -1) & more for each, more in needs.items()}}
            picked = {**chosen, name: value}
            if any(not narrowed[each] >> picked[each] & 1 for each in needs if each in picked):
                continue
            more = [
                each for each, wanted_values in needs.items() if not wanted_values >> ABSENT & 1 and each not in picked
            ]
            answer = solved([*others, *more], narrowed, picked)
            if answer is not None:
                return answer
        return None

    roots = dict(question.roots)
    answer = solved(sorted(roots), roots, {})
    if answer is None:
        # It does not know why: everything is to blame.
        return Failure(frozenset(limits), frozenset({*roots, *limits}))
    return answer


@many
@given(worlds())
def test_the_search_can_be_replaced(case: Json) -> None:
    """Another search behind the seam gives the same changes, and the same code."""
    ours = resolved(case, Bounds(explanation_steps=1))
    theirs = resolved(case, Bounds(explanation_steps=1), depth_first)
    assert type(ours) is type(theirs)
    if isinstance(ours, Resolution) and isinstance(theirs, Resolution):
        assert ours.changes == theirs.changes


@given(range_texts, st.lists(version_texts, max_size=6), st.booleans())
def test_a_catalogue_finds_the_versions_of_a_range(text: str, versions: list[str], allowed: bool) -> None:
    ordered = sorted({Version.parse(each) for each in versions})
    catalogue = Catalogue((*(Edition(each) for each in ordered), Edition(None)))
    expected = {at for at, each in enumerate(ordered, FIRST) if Range.parse(text).matches(each, allowed)}
    assert set(values_of(catalogue.within(Range.parse(text), allowed))) == {*expected, FIRST + len(ordered)}
