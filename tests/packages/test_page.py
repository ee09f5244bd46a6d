"""The tables of docs/dependencies.md say what the code does."""

import re

import pytest

from services.packages.ranges import Range
from services.packages.versions import Version
from tests.needs import ROOT
from tests.packages.problems import problem_of

PAGE = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")


def rows(header: str) -> list[list[list[str]]]:
    """The cells of the table whose columns start with *header*: each as its texts in backquotes, or as a whole."""
    table = re.search(rf"^\| {re.escape(header)} \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    assert table, header
    cells = [re.split(r"(?<!\\)\|", line)[1:-1] for line in table[1].splitlines()]
    return [[re.findall(r"`([^`]+)`", cell.replace("\\|", "|")) or [cell.strip()] for cell in row] for row in cells]


@pytest.mark.parametrize("row", rows("no version"))
def test_a_text_of_the_table_is_no_version(row: list[list[str]]) -> None:
    texts, _, remedies = row
    assert all(problem_of(Version.parse, text) for text in texts)
    assert not any(problem_of(Version.parse, remedy) for remedy in remedies)


@pytest.mark.parametrize("row", rows("no range"))
def test_a_text_of_the_table_is_no_range(row: list[list[str]]) -> None:
    texts, [position], _ = row
    problems = [problem_of(Range.parse, text) for text in texts]
    assert {problem and problem.position for problem in problems} == {int(position)}


@pytest.mark.parametrize("row", rows("range | means"))
def test_a_range_of_the_table_is_one(row: list[list[str]]) -> None:
    texts, _ = row
    assert not any(problem_of(Range.parse, text) for text in texts if text != "an empty text")


def test_the_page_orders_versions() -> None:
    ordered = [*re.findall(r"`([^`]+)` <", PAGE), "1.0.1"]
    assert [str(each) for each in sorted(map(Version.parse, reversed(ordered)))] == ordered


@pytest.mark.parametrize(
    ("text", "version", "matches"),
    [
        (text, version, matches)
        for [text], inside, outside in rows("range | has")
        for matches, versions in ((True, inside), (False, outside))
        for version in versions
    ],
)
def test_a_range_has_the_prereleases_of_the_table(text: str, version: str, matches: bool) -> None:
    assert Range.parse(text).matches(Version.parse(version)) is matches
