"""What people and programs read of a resolution: sentences, ways, commands, bounds."""

from itertools import count
from typing import Any

import pytest

from planner_svc.resolution.bounds import Bounds
from planner_svc.resolution.model import Conflict, ConflictCode, Fact, FactKind, Resolution
from planner_svc.resolution.published import is_empty
from services.core.errors import RequestInvalid
from services.packages.ranges import Range
from tests.packages.resolving import resolved
from tests.packages.rows import D, as_text, case

TEAM = (
    "team-dashboards 1.4.0 [base-labels ^1.2] | 1.2.0 [base-labels ^1]",
    "base-labels 1.1.0 | 1.3.0",
)


def conflict(*arguments: Any) -> Conflict:
    answer = resolved(case(*arguments))
    assert isinstance(answer, Conflict)
    return answer


def test_a_conflict_is_told_from_what_was_requested_to_what_is_installed() -> None:
    """The example of the specification."""
    answer = conflict(TEAM, ["base-labels 1.1.0"], "install team-dashboards")
    assert answer.text == "team-dashboards 1.4.0 needs another base-labels than the one installed"
    assert (answer.package, answer.is_explained) == ("base-labels", True)
    assert answer.facts == (
        Fact(FactKind.REQUESTED, ("team-dashboards",), "team-dashboards 1.4.0 was asked for", (("team-dashboards",),)),
        Fact(
            FactKind.REQUIRES,
            ("team-dashboards", "base-labels"),
            "team-dashboards 1.4.0 requires base-labels ^1.2",
            (("team-dashboards",),),
        ),
        Fact(
            FactKind.INSTALLED,
            ("base-labels",),
            "base-labels 1.1.0 is installed",
            (("base-labels",), ("team-dashboards", "base-labels")),
        ),
    )
    assert [" ".join(each.command) for each in answer.suggestions] == [
        "pkger install team-dashboards --update-dependencies",
        "pkger install team-dashboards@1.2.0",
    ]
    assert as_text(answer)[1:3] == [
        "update: ^base-labels 1.3.0, +team-dashboards 1.4.0",
        "other-version: +team-dashboards 1.2.0",
    ]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((["p 1.0.0 [d]"], [], "install p"), "nothing has d, which p 1.0.0 requires"),
        (
            (["p 1.0.0 [d ^1.2.3]", D], ["d 1.2.1 pinned"], "install p"),
            "d is pinned at 1.2.1, and p 1.0.0 requires ^1.2.3",
        ),
        (
            ([{"name": "a", "only": ["web-*"], "packages": ["d 1.0.0"]}, {"name": "b"}], [], "install a/d"),
            "the patterns of repository a leave d out: web-*",
        ),
        (([D], ["d 1.2.1 suspended"], "uninstall d"), "d is suspended at 1.2.1, and cannot be uninstalled"),
        (([D], ["p 1.0.0 [d]", "d 1.2.1"], "uninstall d"), "d cannot be uninstalled: p 1.0.0 requires it"),
        ((["p 1.0.0 [a]", "a 1.0.0 [p]"], [], "install p"), "a and p require each other: a -> p -> a"),
        (
            (["p 1.0.0 [a]", "a 1.0.0 [b]", "b 1.0.0 [p]"], [], "install p"),
            "a requires itself: a -> b -> p -> a",
        ),
        (
            (["p 1.0.0 [d ^1.2.3]", D], ["d 2.0.0"], "install p"),
            "p 1.0.0 goes with no version of d that is not lower than 2.0.0: it does not support it yet",
        ),
        (
            (["p 1.0.0 [d ^1.3]", "d 1.4.0 yanked"], [], "install p"),
            "p 1.0.0 requires d ^1.3, and d 1.4.0 is yanked: loses data",
        ),
        (
            (["p 1.0.0 [d ^1.3]", "d 1.4.0-rc.1 | 1.2.0"], [], "install p"),
            "p 1.0.0 requires d ^1.3, and d 1.4.0-rc.1 is a prerelease",
        ),
        (
            (["p 1.0.0 [d ^3]", D], [], "install p"),
            "p 1.0.0 requires d ^3, and d is published as 2.1.0, 2.0.0 and 3 more versions, none of them in ^3",
        ),
        (
            (["d 1.0.0"], ["d 2.0.0"], "install d@1"),
            "d 2.0.0 is installed, and only lower versions are in what was asked for",
        ),
        (
            (["p 1.0.0 [d ^2]"], ["d 1.0.0 from gone"], "install p"),
            "d, which p 1.0.0 requires, cannot be had: repository gone is not configured",
        ),
        (
            (["p 1.0.0 [d ^1.2.3]", D, "x 1.0.0 [d <1.2.5]"], ["x 1.0.0 [d <1.2.5]", "d 1.2.1"], "install p"),
            "no versions of d, p and x go together",
        ),
        (([D], [], "update d"), "d is not installed, so it cannot be updated"),
        (([D], [], "uninstall d"), "d is not installed, so it cannot be uninstalled"),
        (
            ([{"name": "main", "unreachable": True}], [], "install d"),
            "repository main cannot be read: no answer within 30 s",
        ),
        (
            ([{"name": "a", "packages": ["d 1.0.0"]}, {"name": "b", "packages": ["d 1.0.0"]}], [], "install d"),
            "d is in a and b, which have the same priority; name one of them, or give them different priorities",
        ),
    ],
)  # fmt: skip
def test_the_sentence_of_a_conflict(arguments: tuple[Any, ...], text: str) -> None:
    assert conflict(*arguments).text == text


FOR_99 = {"platform": "0.3.0"}
MIXED = "b 1.0.0 yanked | 2.0.0 for >=99 | 3.0.0-rc.1"


@pytest.mark.parametrize(
    ("arguments", "code", "package", "text"),
    [
        (([MIXED], [], "install b", FOR_99), ConflictCode.PLATFORM, "b", "b 2.0.0 is for pkger >=99"),
        (
            (["a 1.0.0 [b *]", MIXED], [], "install a", FOR_99),
            ConflictCode.YANKED_ONLY, "b", "a 1.0.0 requires b *, and b 1.0.0 is yanked: loses data",
        ),
        (
            (["b*1.2.0 1.0.0 yanked | 1.2.0 for >=99 | 2.0.0 yanked | 2.0.0-rc.1"], [], "install b", FOR_99),
            ConflictCode.PLATFORM, "b", "b 1.2.0 is for pkger >=99",
        ),
        (
            (["p 1.0.0 [c ^1]", "c 1.1.0 yanked | 1.2.0 for >=99"], [], "install p", FOR_99),
            ConflictCode.YANKED_ONLY, "c", "p 1.0.0 requires c ^1, and c 1.1.0 is yanked: loses data",
        ),
        (
            (["p 1.0.0 [d ^1]", "d 1.2.1 yanked | 1.2.9 yanked"], [], "install p"),
            ConflictCode.YANKED_ONLY, "d", "p 1.0.0 requires d ^1, and d 1.2.9 and 1.2.1 are yanked: loses data",
        ),
        (
            (["d 1.1.0 [z ^1.0.0-0] | 1.2.0 yanked"], [], "install d@*"),
            ConflictCode.YANKED_ONLY, "d", "d 1.2.0 is yanked: loses data",
        ),
        (
            (["a 1.0.0 [b 1 - 2] | 2.0.0 [b 2 - 3]", "b 1.0.0 [z ^9] | 2.0.0 [z ^9]", "z 1.0.0"], [], "install a@*"),
            ConflictCode.NO_MATCHING_VERSION, "z",
            "2.0.0 and 1.0.0 of b require z ^9, and z is published as 1.0.0, none of them in ^9",
        ),
        (
            (["d 1.0.0", "b 1.1.0 [d ^1]"], [], "install d@^2 b@^1"),
            ConflictCode.NO_MATCHING_VERSION, "d", "d is published as 1.0.0, none of them in ^2",
        ),
        (
            (["e 1.0.0", "b 1.0.0 | 2.0.0 yanked"], [], "install e@^2 b@^2"),
            ConflictCode.NO_MATCHING_VERSION, "e", "e is published as 1.0.0, none of them in ^2",
        ),
        (
            (["p 1.0.0 [d !=*]", "d 1.0.0"], [], "install p"),
            ConflictCode.NO_MATCHING_VERSION, "d", "p 1.0.0 requires d !=*, and no version can be in that range",
        ),
        (
            (["p 1.0.0 [d ^2]"], ["d 1.0.0 from gone"], "install p"),
            ConflictCode.REPOSITORY_UNKNOWN, "d",
            "d, which p 1.0.0 requires, cannot be had: repository gone is not configured",
        ),
        (
            (["p 1.0.0 [a ^1, d ^2]", "a 1.0.0", "d 1.0.0 | 2.0.0"], ["a 1.0.0 pinned", "d 1.0.0 pinned"], "install p"),
            ConflictCode.PINNED, "d", "d is pinned at 1.0.0, and p 1.0.0 requires ^2",
        ),
        (
            (["b 1.0.0"], ["b 3.0.0-alpha.1"], "update b@>=1.1"),
            ConflictCode.PRERELEASE_ONLY, "b", "b 3.0.0-alpha.1 is a prerelease",
        ),
        (
            (["a 1.0.0 yanked", "b 1.0.0"], ["b 1.0.0 pinned"], "install a; uninstall b"),
            ConflictCode.PINNED, "b", "b is pinned at 1.0.0, and cannot be uninstalled",
        ),
    ],
)  # fmt: skip
def test_the_sentence_is_about_what_the_code_says(
    arguments: tuple[Any, ...], code: ConflictCode, package: str, text: str
) -> None:
    answer = conflict(*arguments)
    assert (answer.code, answer.package, answer.text) == (code, package, text)
    assert package in {name for fact in answer.facts for name in fact.packages}


@pytest.mark.parametrize("versions", [">=1 <1", "!=*", "<0.0.0-0", ">=2 <1 || >1 <=1"])
def test_a_range_without_versions_is_told(versions: str) -> None:
    written = case(["d 1.0.0"], [], "install d")
    written["request"] = {"install": [{"name": "d", "version": versions}]}
    answer = resolved(written)
    assert isinstance(answer, Conflict)
    text = f"d {Range.parse(versions)} was asked for, and no version can be in that range"
    assert (answer.code, answer.text) == (ConflictCode.NO_MATCHING_VERSION, text)
    assert [each.text for each in answer.facts] == [text]


@pytest.mark.parametrize("versions", ["*", "<0.0.0-1", "=1.0.0", ">=1.0.0-a <1.0.0-b", "!=1 || >2 <1", "!=1 !=2"])
def test_a_range_with_versions_is_not_empty(versions: str) -> None:
    assert not is_empty(Range.parse(versions))


@pytest.mark.parametrize(
    ("arguments", "fact"),
    [
        (
            (["a 1.0.0 [d, c ^2]", "d 1.2.0 [c ^1]| 2.0.0-rc.1", "c 1.0.0 | 2.0.0"], [], "install a"),
            "only 1.2.0 of d is published, as d 2.0.0-rc.1 is a prerelease",
        ),
        (
            (["p 1.0.0 [b]", MIXED], [], "install p", FOR_99),
            "b 1.0.0 is yanked: loses data, b 2.0.0 is for pkger >=99 and b 3.0.0-rc.1 is a prerelease",
        ),
        (
            (["q 1.0.0 [d >=2] | 2.0.0 [d >=3]", "d 1.0.0 | 2.0.0 yanked | 3.0.0-rc.1"], [], "install q@*"),
            "d is published as 3.0.0-rc.1, 2.0.0 and 1 more version, none of them in >=3, and d 2.0.0 is yanked: loses"
            " data and d 3.0.0-rc.1 is a prerelease",
        ),
    ],
)  # fmt: skip
def test_the_fact_of_what_is_published(arguments: tuple[Any, ...], fact: str) -> None:
    assert fact in [each.text for each in conflict(*arguments).facts]


def test_of_a_package_without_a_range_the_latest_version_is_told() -> None:
    published = ["h 1.0.0 | 2.0.0 [z ^2]", "k 1.0.0 [z ^1]", "z 1.0.0 | 2.0.0"]
    answer = resolved(case(published, [], "install h k"), Bounds(explanation_steps=1))
    assert isinstance(answer, Conflict)
    texts = [each.text for each in answer.facts]
    assert "the latest version of h is 2.0.0" in texts
    assert not any(each.startswith("only 2.0.0 of h") for each in texts)


def test_versions_that_say_the_same_are_one_fact() -> None:
    published = ["p 1.0.0 [d ^3] | 1.1.0 [d ^3] | 1.2.0 [d ^3] | 1.3.0 [d ^4]", D]
    texts = [each.text for each in conflict(published, [], "install p@^1").facts]
    assert "1.2.0, 1.1.0 and 1 more version of p require d ^3" in texts
    assert "p 1.3.0 requires d ^4" in texts


def test_a_fact_has_ten_ways_and_the_number_of_the_others() -> None:
    middle = [f"m{number:02} 1.0.0 [d ^3]" for number in range(14)]
    published = [f"p 1.0.0 [{', '.join(each.split()[0] for each in middle)}, d ^3]", *middle, D]
    facts = conflict(published, [], "install p").facts
    ways = next(each for each in facts if each.kind is FactKind.PUBLISHED)
    assert ways.paths[0] == ("p", "d")
    assert len(ways.paths) + ways.further_paths >= 1


def test_a_package_is_kept_for_its_data() -> None:
    published = ["p 1.0.0 [d ^1] | 2.0.0 [d ^2]", "d 1.0.0 | 2.0.0", "c 1.0.0 [d ^1]"]
    installed = ["p 1.0.0 [d ^1]", "d 1.0.0 auto", "c 1.0.0 [d ^1] auto"]
    answer = conflict(published, installed, "update p@2.0.0", {"update_dependencies": True, "keep": ["c"]})
    assert "c is required by nothing, and has data" in [each.text for each in answer.facts]
    assert answer.suggestions[-1].command == ("pkger", "uninstall", "c")


def test_a_request_of_several_kinds_has_no_one_command() -> None:
    answer = conflict(TEAM, ["base-labels 1.1.0", "x 1.0.0"], "install team-dashboards; uninstall x")
    assert [each.command for each in answer.suggestions] == [(), ()]


def test_a_version_for_another_platform_is_not_chosen() -> None:
    written = case(["p 1.0.0 | 2.0.0"], ["q 1.0.0"], "install p", {"platform": "0.3.0-rc.1"})
    packages = written["repositories"][0]["packages"]
    packages["p"]["versions"][1]["platform"] = ">=0.4"
    packages["q"] = {"versions": [{"version": "1.0.0", "platform": ">=0.4"}]}
    answer = resolved(written)
    assert isinstance(answer, Conflict)
    assert (answer.code, answer.text) == (ConflictCode.PLATFORM, "p 2.0.0 is for pkger >=0.4")
    written["request"] = {"install": [{"name": "p", "version": "*"}]}
    assert as_text(resolved(written)) == ["+p 1.0.0", "PLATFORM q"]
    packages["p"]["versions"][1]["platform"] = ">=0.3"
    assert as_text(resolved(written)) == ["+p 2.0.0", "PLATFORM q"]


def test_what_is_held_back_has_its_facts() -> None:
    published = ["a 1.0.0 [d ^1] | 2.0.0 [d ^2]", "b 1.0.0 [d ^1]", "d 1.0.0 | 2.0.0"]
    answer = resolved(case(published, ["a 1.0.0 [d ^1]", "b 1.0.0 [d ^1]", "d 1.0.0 auto"], "update-all"))
    assert isinstance(answer, Resolution)
    rest = ["b 1.0.0 is installed", "no version of b above 1.0.0 is published", "b 1.0.0 requires d ^1"]
    assert {each.name: [fact.text for fact in each.facts] for each in answer.held_back} == {
        "a": ["a 2.0.0 comes first", "a 2.0.0 requires d ^2", *rest],
        "d": ["d 2.0.0 comes first", *rest],
    }


@pytest.mark.parametrize("request_text", ["install d d", "install d; update d", "update d; uninstall d"])
def test_a_package_is_named_once(request_text: str) -> None:
    with pytest.raises(RequestInvalid, match="package d is named more than once; name it once"):
        resolved(case([D], ["d 1.2.1"], request_text))


def test_a_bound_on_time_is_never_called_impossible() -> None:
    ticks = count()
    bounds = Bounds(seconds=1, clock=lambda: float(next(ticks)))
    answer = resolved(case(TEAM, ["base-labels 1.1.0"], "install team-dashboards"), bounds)
    assert isinstance(answer, Conflict)
    assert (answer.code, answer.facts, answer.resolvable, answer.is_explained) == (ConflictCode.LIMIT, (), False, False)


def test_an_explanation_has_a_bound_of_its_own() -> None:
    ticks = count()
    bounds = Bounds(seconds=1_000, explanation_seconds=1, clock=lambda: float(next(ticks)))
    answer = resolved(case(TEAM, ["base-labels 1.1.0"], "install team-dashboards"), bounds)
    assert isinstance(answer, Conflict)
    assert (answer.code, answer.is_explained) == (ConflictCode.VERSION_CONFLICT, False)
    assert answer.facts
