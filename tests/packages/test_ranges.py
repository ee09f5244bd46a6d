"""Ranges of versions: what they match, their canonical text, and the text of problems."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.packages.ranges import MAX_GROUPS, MAX_RANGE_LENGTH, Range
from services.packages.versions import ParseProblem, Version
from tests.packages.problems import problem_of
from tests.packages.strategies import range_texts, version_texts

VERSIONS = [
    Version.parse(f"{major}.{minor}.{patch}{rest}")
    for major, minor, patch in itertools.product(range(4), range(6), range(7))
    for rest in ("", "-0", "-rc.1", "+3")
]
"""Near the bounds of the ranges below."""


@pytest.mark.parametrize(
    ("text", "version", "matches"),
    [
        (">=1.2.0 <1.3.0", "1.2.0", True),
        (">=1.2.0 <1.3.0", "1.2.0+0", True),
        (">=1.2.0 <1.3.0", "1.2.0-rc.1", False),
        (">=1.2.0 <1.3.0", "1.3.0-alpha.1", False),
        ("~1.2.0", "1.2.9", True),
        ("~1.2", "1.3.0", False),
        ("~1", "1.9.0", True),
        ("1.2.x", "1.2.4", True),
        ("^1", "1.7.9+1", True),
        ("^1", "1.0.0-rc.1", False),
        ("^0.2.3", "0.3.0", False),
        ("^0.0.3", "0.0.4", False),
        ("^0", "0.9.0", True),
        (">= 1.0.0-alpha.1", "1.0.0-beta.0", True),
        (">= 1.0.0-alpha.1", "1.0.0-alpha.0", False),
        (">= 1.0.0-alpha.1", "3.0.0", True),
        (">=1.0.0-alpha.1 <2.0.0", "1.5.0-rc.1", True),
        (">=1.0.0-alpha.1 <2.0.0", "2.0.0-rc.1", False),
        ("^1.0.0 || 2.0.0", "2.0.1", False),
        (">= 1, < 2", "1.1.1", True),
        ("1.2 - 1.4", "1.4.9", True),
        (">11", "11.1.0", False),
        ("<=2.x", "2.9.0", True),
        ("!=1.2.x", "1.2.4", False),
        ("*", "2.0.0-rc.1", False),
        ("*", "2.0.0", True),
        ("", "0.0.1", True),
        ("^1.2.3-0", "1.3.0-rc.1", True),
        ("1.0.0-rc.1 || ^2", "2.1.0-rc.1", False),
        (">1.2.3", "1.2.3+1", False),
        ("=1.2.3", "1.2.3+7", True),
        ("!=1.2.3", "1.2.3+7", False),
        (">*", "1.0.0", False),
        ("<*", "1.0.0", False),
        ("!=*", "1.0.0", False),
        ("^999999999", "999999999.1.0", True),
    ],
)
def test_a_version_is_in_a_range(text: str, version: str, matches: bool) -> None:
    """Rows S of the specification, and the edges of its rules."""
    assert Range.parse(text).matches(Version.parse(version)) is matches


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("1.2", ">=1.2.0 <1.3.0"),
        ("1.2.x", ">=1.2.0 <1.3.0"),
        ("=1.2", ">=1.2.0 <1.3.0"),
        ("1.2.3", ">=1.2.3 <=1.2.3"),
        ("~1.2.3", ">=1.2.3 <1.3.0"),
        ("~1.2", ">=1.2.0 <1.3.0"),
        ("~1", ">=1.0.0 <2.0.0"),
        ("^1.2.3", ">=1.2.3 <2.0.0"),
        ("^0.2.3", ">=0.2.3 <0.3.0"),
        ("^0.0.3", ">=0.0.3 <0.0.4"),
        ("^0.0", ">=0.0.0 <0.1.0"),
        ("^0.0.0", ">=0.0.0 <0.0.1"),
        ("^0", ">=0.0.0 <1.0.0"),
        (">1.2", ">=1.3.0"),
        ("<=1.2", "<1.3.0"),
        (">=1.2", ">=1.2.0"),
        ("<1.2", "<1.2.0"),
        ("!=1.2.x", "<1.2.0 || >=1.3.0"),
        ("!=1.2.3", "<1.2.3 || >1.2.3"),
        ("1.2 - 1.4", ">=1.2.0 <1.5.0"),
        ("1.2 - 1.4.5", ">=1.2.0 <=1.4.5"),
        ("v1.2 - *", ">=1.2.0"),
        ("~1.2.3-rc.1", ">=1.2.3-rc.1 <1.3.0"),
        ("^0.0.3-rc.1", ">=0.0.3-rc.1 <0.0.4"),
        ("*", ""),
        ("~*", ""),
        ("^x", ""),
        (">=X", ""),
        ("<=*", ""),
    ],
)
def test_a_range_means_these_bounds(text: str, meaning: str) -> None:
    """The table of the specification, on all versions near the bounds."""
    ours, spelled = Range.parse(text), Range.parse(meaning)
    assert [each for each in VERSIONS if ours.matches(each)] == [each for each in VERSIONS if spelled.matches(each)]


@pytest.mark.parametrize(
    ("text", "version", "matches"),
    [
        ("*", "2.0.0-rc.1", True),
        ("*", "0.0.0-rc.1", True),
        ("^1", "1.5.0-rc.1", True),
        ("^1", "1.0.0-rc.1", False),
        ("<2.0.0", "2.0.0-rc.1", False),
        ("<=2.0.0", "2.0.0-rc.1", True),
        ("<2", "2.0.0-rc.1", False),
        ("!=1.2.x", "1.3.0-rc.1", True),
        ("!=1.2.x", "1.2.3-rc.1", False),
    ],
)
def test_prereleases_can_be_allowed(text: str, version: str, matches: bool) -> None:
    """The order decides then, but a bound without a prerelease keeps out its own."""
    assert Range.parse(text).matches(Version.parse(version), prereleases_allowed=True) is matches


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("", "*"),
        (" \t", "*"),
        ("x.X.*", "*"),
        ("=v1.2.3", "1.2.3"),
        (">= v1.2.x", ">=1.2"),
        ("1.2.x  -  v1.4.5", "1.2 - 1.4.5"),
        (">=1,<2||  3", ">=1 <2 || 3"),
        ("~ 1.2.3-rc.1 , !=1.2.4", "~1.2.3-rc.1 !=1.2.4"),
    ],
)
def test_the_canonical_text(text: str, canonical: str) -> None:
    assert str(Range.parse(text)) == canonical
    assert Range.parse(text) == Range.parse(canonical)


def test_the_canonical_text_of_a_range_at_the_bounds_is_a_range() -> None:
    """Blanks around each || would make it longer than a range may be."""
    group = ",".join(["1"] * (MAX_GROUPS - 1))
    text = "||".join([group] * 8) + "||1.2.3-" + "a"
    assert len(text) <= MAX_RANGE_LENGTH < len(" || ".join(text.split("||")))
    assert Range.parse(str(Range.parse(text))) == Range.parse(text)


@pytest.mark.parametrize(
    ("text", "position", "problem"),
    [
        ("latest", 0, "'latest' is no part of a range: write a version such as 1.2.0 or 1.2, or * for every release"),
        ("~>1", 1, "~> is no operator: write ~"),
        ("1 =>2", 3, "=> is no operator: write >="),
        ("=<1", 1, "=< is no operator: write <="),
        ("==1", 1, "== is no operator: write ="),
        ("!1", 0, "! is no operator: write !="),
        (">>=1", 1, ">>= is no operator: write one of = != > >= < <= ~ ^"),
        (">=<1", 2, ">=< is no operator: write one of = != > >= < <= ~ ^"),
        ("1.2.3.4", 5, "a version has three numbers: write 1.2.3"),
        ("x.1", 2, "the number 1 comes after x: write x"),
        ("1.*.2", 4, "the number 2 comes after *: write *"),
        ("1.2-rc", 3, "a prerelease needs three numbers: write 1.2.0-rc, or a range with blanks around its hyphen"),
        ("1-2", 1, "a prerelease needs three numbers: write 1.0.0-2, or a range with blanks around its hyphen"),
        (">=1.0.0+3", 7, "build metadata not allowed: remove +3, as ranges ignore revisions"),
        (">=1.0.0-rc.1+3", 12, "build metadata not allowed: remove +3, as ranges ignore revisions"),
        ("1.2.3-rc.01", 9, "the number 01 starts with a 0: write 1"),
        ("1.2.3-", 6, "an identifier of the prerelease is empty: write one such as -rc.1"),
        ("^ 01.2", 2, "the number 01 starts with a 0: write 1"),
        ("1.1234567890", 11, "the number 1234567890 has 10 digits: write at most 9"),
        (
            *("1.", 2),
            "the range ends where a number is missing: write a version such as 1.2.0 or 1.2, or * for every release",
        ),
        (">=", 0, "no version comes after >=: write one, such as >=1.2"),
        ("^1 ||", 3, "no comparator comes after ||: write one, or remove the ||"),
        ("^1 || || 2", 3, "no comparator comes after ||: write one, or remove the ||"),
        ("|| 1", 0, "no comparator comes before ||: write one, or remove the ||"),
        (", 1", 0, "no comparator comes before ,: write one, or remove the ,"),
        ("1 || , 2", 5, "no comparator comes before ,: write one, or remove the ,"),
        ("1,", 1, "no comparator comes after ,: write one, or remove the ,"),
        ("1, ,2", 1, "no comparator comes after ,: write one, or remove the ,"),
        ("1 , || 2", 2, "no comparator comes after ,: write one, or remove the ,"),
        (
            *("1 | 2", 2),
            "'|' is no part of a range: write a version such as 1.2.0 or 1.2, or * for every release",
        ),
        (">=1<2", 3, "'<' is no part of a range: separate comparators by a blank or a comma, and groups by ||"),
        ("1.2.3\n", 5, r"'\n' is no part of a range: separate comparators by a blank or a comma, and groups by ||"),
        ("1 -2", 2, "the hyphen has no blank on both sides: write it as in 1.2 - 1.4"),
        ("1 -", 2, "no version comes after the hyphen: write the upper end, such as 1.2 - 1.4"),
        (">=1 - 2", 4, "a version with an operator starts no range with a hyphen: remove >= or the hyphen"),
        (
            *("1 - >2", 4),
            "'>' is no part of a range: write a version such as 1.2.0 or 1.2, or * for every release",
        ),
        ("1" * 257, 256, "the range has 257 characters: write at most 256"),
        ("||".join("1" * 17), 48, "the range has more than 16 groups: write at most 16"),
        (" ".join("1" * 17), 32, "the group has more than 16 comparators: write at most 16"),
    ],
)
def test_a_text_that_is_no_range(text: str, position: int, problem: str) -> None:
    with pytest.raises(ParseProblem) as raised:
        Range.parse(text)
    assert (raised.value.position, str(raised.value)) == (position, problem)


@given(range_texts, st.lists(version_texts, max_size=5))
def test_a_range_that_is_written_again_means_the_same(text: str, versions: list[str]) -> None:
    written = str(Range.parse(text))
    again = Range.parse(written)
    assert again == Range.parse(text)
    assert str(again) == written
    for version in map(Version.parse, versions):
        for prereleases_allowed in (False, True):
            assert again.matches(version, prereleases_allowed) is Range.parse(text).matches(
                version, prereleases_allowed
            )


@given(range_texts, version_texts)
def test_a_revision_is_ignored(text: str, version: str) -> None:
    read = Range.parse(text)
    assert read.matches(Version.parse(version)) is read.matches(Version.parse(version.partition("+")[0]))


@given(range_texts, version_texts)
def test_allowing_prereleases_only_adds(text: str, version: str) -> None:
    """It adds prereleases only, and takes nothing away."""
    read, one = Range.parse(text), Version.parse(version)
    assert read.matches(one, True) or not read.matches(one)
    assert one.is_prerelease or read.matches(one, True) is read.matches(one)


@given(st.text("012xv.-+ ,|<>=!~^a*", max_size=14) | st.text(max_size=5))
def test_a_text_is_a_range_or_a_problem_in_it(text: str) -> None:
    problem = problem_of(Range.parse, text)
    if problem:
        assert 0 <= problem.position <= len(text)
    else:
        read = Range.parse(text)
        assert Range.parse(str(read)) == read
