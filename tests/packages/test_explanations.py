"""Why installed packages are there, which version an update of each alone would reach, and what holds it back."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings

from planner_svc.resolution.bounds import Bounds
from planner_svc.resolution.explanations import DependencyPath, Explanation, explain_packages
from planner_svc.resolution.model import Options, PackageRequest, Request, Resolution
from planner_svc.resolution.nab_search import search
from planner_svc.resolution.resolve import resolve
from planner_svc.resolution.search import Assignment, Budget, Failure, Question, Search, Values
from tests.packages import large_worlds
from tests.packages.large_worlds import Calls
from tests.packages.resolving import installed, options, repository
from tests.packages.rows import case
from tests.packages.worlds import worlds

Json = Mapping[str, Any]


def explained(
    written: Json, *names: str, bounds: Bounds | None = None, search: Search = search
) -> dict[str, Explanation]:
    """The explanations of packages by name; of all, without names."""
    packages = list(map(installed, written["installed"]))
    explanations = explain_packages(
        map(repository, written["repositories"]),
        packages,
        names or [each.name for each in packages],
        options(written["options"]),
        bounds or Bounds(),
        search,
    )
    return {each.installed.name: each for each in explanations}


def as_text(explanation: Explanation) -> list[str]:
    """What a package can become as lines: reachable and latest version, then the facts."""
    reachable, latest = explanation.reachable or "unknown", explanation.latest or "none"
    return [f"{reachable} {latest}", *(fact.text for fact in explanation.held_back_by)]


def path_text(path: DependencyPath) -> str:
    """A path as a line."""
    return " > ".join([path.start, *(f"{each.name} {each.range or ''}".strip() for each in path.requirements)])


D = "d 1.0.0 | 1.5.0 | 2.0.0"

ROWS: Mapping[str, tuple[Sequence[str], Sequence[str], list[str]]] = {
    "nothing newer": (["d 1.0.0"], ["d 1.0.0"], ["1.0.0 1.0.0"]),
    "the latest": ([D], ["d 1.0.0"], ["2.0.0 2.0.0"]),
    "a dependant": (
        ["p 1.0.0 [d ^1]", D], ["p 1.0.0 [d ^1]", "d 1.0.0 auto"],
        ["1.5.0 2.0.0", "p 1.0.0 is installed", "p 1.0.0 requires d ^1"],
    ),
    "a dependant that comes along": (
        ["p 1.0.0 [q]", "q 1.0.0 [d ^1]", D], ["p 1.0.0 [q]", "q 1.0.0 [d ^1] auto", "d 1.0.0 auto"],
        ["1.5.0 2.0.0", "q 1.0.0 is installed", "q 1.0.0 requires d ^1"],
    ),
    "a dependant that nothing requires has no say": (
        ["q 1.0.0 [d ^1]", D], ["q 1.0.0 [d ^1] auto", "d 1.0.0"], ["2.0.0 2.0.0"],
    ),
    "two dependants": (
        ["p 1.0.0 [d <1.5]", "q 1.0.0 [d >=1]", D], ["p 1.0.0 [d <1.5]", "q 1.0.0 [d >=1]", "d 1.0.0 auto"],
        ["1.0.0 2.0.0", "p 1.0.0 is installed", "p 1.0.0 requires d <1.5"],
    ),
    "a dependency that stays": (
        ["d 1.0.0 | 1.5.0 [e ^1] | 2.0.0 [e ^2]", "e 1.0.0 | 2.0.0"], ["d 1.0.0", "e 1.0.0"],
        ["1.5.0 2.0.0", "d 2.0.0 requires e ^2", "e 1.0.0 is installed"],
    ),
    "a pinned dependency": (
        ["d 1.0.0 | 2.0.0 [e ^2]", "e 1.0.0 | 2.0.0"], ["d 1.0.0", "e 1.0.0 pinned"],
        ["1.0.0 2.0.0", "d 2.0.0 requires e ^2", "e 1.0.0 is installed"],
    ),
    "a new dependency": (["d 1.0.0 | 2.0.0 [e]", "e 1.0.0"], ["d 1.0.0"], ["2.0.0 2.0.0"]),
    "a new dependency that is nowhere": (
        ["d 1.0.0 | 2.0.0 [e]"], ["d 1.0.0"],
        ["1.0.0 2.0.0", "d 2.0.0 requires e", "no repository has e (asked: main)"],
    ),
    "a new dependency that needs another version of what is installed": (
        ["d 1.0.0 | 2.0.0 [e]", "e 1.0.0 [f ^2]", "f 1.0.0 | 2.0.0"], ["d 1.0.0", "f 1.0.0"],
        ["1.0.0 2.0.0", "d 2.0.0 requires e", "only 1.0.0 of e is published", "e 1.0.0 requires f ^2",
         "f 1.0.0 is installed"],
    ),
    "a cycle over what is installed": (
        ["p 1.0.0 [q]", "q 1.0.0 [d]", "d 1.0.0 | 2.0.0 [p]"], ["p 1.0.0 [q]", "q 1.0.0 [d] auto", "d 1.0.0 auto"],
        [
            "1.0.0 2.0.0", "d 2.0.0 requires p", "p 1.0.0 is installed", "p 1.0.0 requires q", "q 1.0.0 is installed",
            "q 1.0.0 requires d",
        ],
    ),
    "a requested range": ([D], ["d 1.0.0 wants ^1"], ["1.5.0 2.0.0", "d ^1 was asked for"]),
    "a requested range, and a dependant": (
        ["p 1.0.0 [d <1.5]", D], ["p 1.0.0 [d <1.5]", "d 1.0.0 wants ^1"],
        ["1.0.0 2.0.0", "d ^1 was asked for", "p 1.0.0 is installed", "p 1.0.0 requires d <1.5"],
    ),
    "a requested range above the latest version": (
        ["d*1.5.0 1.0.0 | 1.5.0 | 2.0.0"], ["d 1.0.0 wants >=1"], ["2.0.0 1.5.0"],
    ),
    "a pin": ([D], ["d 1.0.0 pinned"], ["1.0.0 2.0.0", "d is pinned at 1.0.0"]),
    "a pin at the latest version": ([D], ["d 2.0.0 pinned"], ["2.0.0 2.0.0"]),
    "a suspension": ([D], ["d 1.0.0 suspended"], ["1.0.0 2.0.0", "d is suspended at 1.0.0"]),
    "a yanked version": (
        ["d*2.0.0 1.0.0 | 2.0.0 yanked"], ["d 1.0.0"], ["1.0.0 2.0.0", "d 2.0.0 is yanked: loses data"],
    ),
    "another platform": (["d 1.0.0 | 2.0.0 for >=9"], ["d 1.0.0"], ["1.0.0 2.0.0", "d 2.0.0 is for pkger >=9"]),
    "prereleases": (["d 1.0.0 | 2.0.0-rc.1"], ["d 1.0.0"], ["1.0.0 1.0.0"]),
    "prereleases only": (["d 1.0.0-rc.1 | 1.0.0-rc.2"], ["d 1.0.0-rc.1"], ["1.0.0-rc.1 none"]),
    "a repository that is gone": (
        ["d 2.0.0"], ["d 1.0.0 from gone"], ["1.0.0 none", "repository gone is not configured"],
    ),
    "a package that is gone": (["e 2.0.0"], ["d 1.0.0"], ["1.0.0 none", "no repository has d (asked: main)"]),
    "above the latest version": (["d*1.0.0 1.0.0 | 2.0.0"], ["d 2.0.0"], ["2.0.0 1.0.0"]),
}  # fmt: skip
"""Published and installed packages, and what D can become."""


@pytest.mark.parametrize("row", ROWS)
def test_what_a_package_can_become(row: str) -> None:
    published, packages, lines = ROWS[row]
    written = case(published, packages, "install x", {"platform": "0.3.0"})
    assert as_text(explained(written)["d"]) == lines
    # It does not matter which others are explained.
    assert as_text(explained(written, "d")["d"]) == lines


def test_a_folder_is_no_repository() -> None:
    written = case([D], ["d 1.0.0"], "install x")
    written["installed"][0]["repository"] = None
    assert as_text(explained(written)["d"]) == ["1.0.0 none", "d was installed from a folder"]


def test_paths_and_ranges_are_those_of_the_record() -> None:
    packages = [
        "p 1.0.0 [d ^1, q]", "q 1.0.0 [d >=1 <3] auto", "r 1.0.0 [q ^1]", "d 1.0.0 auto", "s 1.0.0 [d ^1] pinned",
        "t 1.0.0 auto",
    ]  # fmt: skip
    explanations = explained(case(["d 1.0.0"], packages, "install x"))
    assert {name: [*map(path_text, each.paths)] for name, each in explanations.items()} == {
        "d": ["p > d ^1", "s > d ^1", "p > q > d >=1 <3", "r > q ^1 > d >=1 <3"],
        "p": ["p"],
        "q": ["p > q", "r > q ^1"],
        "r": ["r"],
        "s": ["s"],
        "t": [],
    }
    assert {name: [*map(str, each.ranges)] for name, each in explanations.items() if each.ranges} == {
        "d": [">=1 <3", "^1"],
        "q": ["^1"],
    }


def test_ten_paths_of_many_are_there() -> None:
    packages = [*(f"p{number:02} 1.0.0 [d]" for number in range(13)), "d 1.0.0 auto"]
    explanation = explained(case(["d 1.0.0"], packages, "install x"), "d")["d"]
    assert [each.start for each in explanation.paths] == [f"p{number:02}" for number in range(10)]
    assert explanation.further_paths == 3


@settings(max_examples=200)
@given(worlds())
def test_an_update_alone_reaches_the_version_that_is_told(written: Json) -> None:
    """Though only a part of the stack is looked at."""
    packages = list(map(installed, written["installed"]))
    consent = Options(prereleases=options(written["options"]).prereleases)
    repositories = list(map(repository, written["repositories"]))
    explanations = explain_packages(repositories, packages, [each.name for each in packages], consent)
    for each in explanations:
        name = each.installed.name
        answer = resolve(repositories, packages, Request(updates=(PackageRequest(name),)), consent)
        assert isinstance(answer, Resolution)
        versions = {change.name: change.new for change in answer.changes if change.new}
        assert each.reachable == versions.get(name, each.installed.version)
        if each.reachable is not None and each.latest is not None and each.latest > each.reachable:
            assert each.held_back_by


@given(worlds())
def test_the_order_of_the_input_does_not_matter(written: Json) -> None:
    shuffled = {key: value[::-1] if isinstance(value, list) else value for key, value in written.items()}
    assert explained(shuffled) == explained(written)


@pytest.mark.parametrize("world", [large_worlds.held_back, large_worlds.installed_pairs, large_worlds.updatable_chain])
def test_twice_as_many_packages_take_about_twice_as_much(world: Callable[[int], Json]) -> None:
    assert _calls(world(200)) < 2.5 * _calls(world(100))


def _calls(written: Json) -> int:
    with Calls() as calls:
        explained(written)
    return calls.number


def test_a_bound_leaves_versions_and_facts_out() -> None:
    written = large_worlds.updatable_chain(5)
    for each in explained(written, bounds=Bounds(seconds=0)).values():
        assert (each.reachable, each.latest is None) == (None, False)
    explanations = explained(written, bounds=Bounds(explanation_seconds=0)).values()
    assert {str(each.reachable) for each in explanations} == {"1.5.0"}
    assert not any(each.held_back_by for each in explanations)


def test_a_hard_package_leaves_time_for_the_others() -> None:
    """Its search is over after a second of the ten of all."""
    now = [0.0]

    def slow_for_a(question: Question, limits: Mapping[str, Values], budget: Budget) -> Assignment | Failure:
        now[0] += 5 if "a" in question.roots else 0
        budget.check()
        return search(question, limits, budget)

    written = case(["a 1.0.0 | 2.0.0", "b 1.0.0 | 2.0.0"], ["a 1.0.0", "b 1.0.0"], "update a")
    explanations = explained(written, bounds=Bounds(clock=lambda: now[0]), search=slow_for_a)
    assert {name: each.reachable and str(each.reachable) for name, each in explanations.items()} == {
        "a": None,
        "b": "2.0.0",
    }
