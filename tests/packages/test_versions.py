"""Versions: reading, order, and the text of problems."""

import itertools
import random

import pytest
import semver
from hypothesis import given
from hypothesis import strategies as st

from services.packages.versions import ParseProblem, Version
from tests.packages.problems import problem_of
from tests.packages.strategies import version_texts

ORDERED = (
    *("1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0-rc.1"),
    *("1.0.0", "1.0.0+1", "1.0.0+2", "1.0.0+10", "1.0.1"),
)
"""Row S28 of the specification, lowest first."""


def test_versions_are_ordered_by_precedence_and_revision() -> None:
    shuffled = random.Random(1).sample(ORDERED, len(ORDERED))
    assert [str(each) for each in sorted(map(Version.parse, shuffled))] == list(ORDERED)


def test_no_revision_comes_before_revision_0() -> None:
    plain, revised = Version.parse("1.0.0"), Version.parse("1.0.0+0")
    assert plain < revised
    assert plain.precedence == revised.precedence
    assert (plain.revision, revised.revision) == (None, 0)


def test_a_leading_v_is_dropped() -> None:
    version = Version.parse("v1.2.0-rc.1+3")
    assert str(version) == "1.2.0-rc.1+3"
    assert version == Version.parse("1.2.0-rc.1+3")
    assert (version.numbers, version.prerelease, version.revision) == ((1, 2, 0), "rc.1", 3)
    assert version.is_prerelease


@pytest.mark.parametrize(
    ("text", "position", "problem"),
    [
        ("", 0, "the version is empty: write one such as 1.4.0"),
        ("v", 1, "the version is empty: write one such as 1.4.0"),
        ("1.2", 3, "a version has three numbers, not 2: write 1.2.0"),
        ("1", 1, "a version has three numbers, not 1: write 1.0.0"),
        ("1.2.3.4", 5, "a version has three numbers, not 4: write 1.2.3, and a revision as +1"),
        ("1..3", 2, "the minor number is missing: write three numbers, such as 1.4.0"),
        ("01.2.0", 0, "the number 01 starts with a 0: write 1"),
        ("1.00.0", 2, "the number 00 starts with a 0: write 0"),
        ("v1.2.x", 5, "the numbers of a version have digits only, not 'x': write digits"),
        ("latest", 0, "the numbers of a version have digits only, not 'latest': write digits"),
        ("1.2.0-", 6, "an identifier of the prerelease is empty: write one such as -rc.1"),
        ("1.2.0-rc..1", 9, "an identifier of the prerelease is empty: write one such as -rc.1"),
        ("1.2.0-01", 6, "the number 01 starts with a 0: write 1"),
        ("1.2.0-rc.1234567890", 18, "the number 1234567890 has 10 digits: write at most 9"),
        ("1234567890.0.0", 9, "the number 1234567890 has 10 digits: write at most 9"),
        ("1.2.0+abc", 6, "a revision is a number, not 'abc': write digits"),
        ("1.0.0+01", 6, "the number 01 starts with a 0: write 1"),
        ("1.0.0+1234567890", 15, "the number 1234567890 has 10 digits: write at most 9"),
        ("1.0.0+1-a", 7, "a revision is a number, not '1-a': write digits"),
        ("1.0.0+", 6, "the revision is missing: write its number, such as +1, or leave out the +"),
        (f"1.0.0-{'a' * 59}", 64, "the version has 65 characters: write at most 64"),
        (
            *("1.2.3\n", 5),
            r"'\n' cannot be in a version: "
            "write three numbers, such as 1.4.0, and -PRERELEASE or +REVISION if it has them",
        ),
        (
            *("1.\u0661.3", 2),
            "'\u0661' cannot be in a version: "
            "write three numbers, such as 1.4.0, and -PRERELEASE or +REVISION if it has them",
        ),
    ],
)
def test_a_text_that_is_no_version(text: str, position: int, problem: str) -> None:
    with pytest.raises(ParseProblem) as raised:
        Version.parse(text)
    assert (raised.value.position, str(raised.value)) == (position, problem)


@pytest.mark.parametrize("text", [f"1.0.0-{'a' * 58}", f"v1.0.0-{'a' * 58}", "999999999.0.0+999999999"])
def test_a_text_at_a_bound_is_a_version(text: str) -> None:
    assert str(Version.parse(text)) == text.removeprefix("v")


@given(st.lists(version_texts, min_size=3, max_size=3))
def test_the_order_is_total(texts: list[str]) -> None:
    """Of two versions, one is lower or their texts are equal; and the order is transitive."""
    a, b, c = map(Version.parse, texts)
    assert [a < b, a == b, a > b].count(True) == 1
    assert (a == b) is (str(a) == str(b))
    assert a != b or hash(a) == hash(b)
    assert not (a <= b <= c) or a <= c


@given(version_texts, version_texts)
def test_the_precedence_is_that_of_semver(left: str, right: str) -> None:
    ours = (Version.parse(left).precedence > Version.parse(right).precedence) - (
        Version.parse(left).precedence < Version.parse(right).precedence
    )
    assert ours == semver.Version.parse(left.removeprefix("v")).compare(right.removeprefix("v"))


@given(st.text("0123v.-+ax", max_size=12) | st.text(max_size=5))
def test_a_text_is_a_version_or_a_problem_in_it(text: str) -> None:
    """No text is an error of ``semver`` or of Python."""
    problem = problem_of(Version.parse, text)
    if problem:
        assert 0 <= problem.position <= len(text)
    else:
        version = Version.parse(text)
        assert Version.parse(str(version)) == version


def test_all_short_texts_of_digits_and_dots() -> None:
    """Only three numbers are a version."""
    texts = ("".join(each) for size in range(7) for each in itertools.product("01.", repeat=size))
    accepted = {text for text in texts if not problem_of(Version.parse, text)}
    assert {each for each in accepted if len(each) == 5} == {f"{a}.{b}.{c}" for a in "01" for b in "01" for c in "01"}
    assert {each for each in accepted if len(each) == 6} == {
        *(f"1{end}.{b}.{c}" for end in "01" for b in "01" for c in "01"),
        *(f"{a}.1{end}.{c}" for a in "01" for end in "01" for c in "01"),
        *(f"{a}.{b}.1{end}" for a in "01" for b in "01" for end in "01"),
    }
