"""Laws of the texts of a conflict: the first line is about what the code says, and the facts are true."""

import re
from collections.abc import Mapping
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from planner_svc.resolution.model import Conflict, ConflictCode
from planner_svc.resolution.situation import fits
from services.packages.ranges import Range
from services.packages.versions import Version
from tests.packages.resolving import resolved
from tests.packages.worlds import worlds

many = settings(max_examples=60)
"""For laws that only rare worlds break; an example takes milliseconds."""

SAID = {
    ConflictCode.CYCLE: r"require each other: |requires itself: ",
    ConflictCode.PINNED: r" is pinned at ",
    ConflictCode.SUSPENDED: r" is suspended at ",
    ConflictCode.YANKED_ONLY: r" (is|are) yanked",
    ConflictCode.PRERELEASE_ONLY: r" (is a prerelease|are prereleases)$",
    ConflictCode.REPOSITORY_UNKNOWN: r"repository \S+ is not configured$",
    ConflictCode.PACKAGE_NOT_FOUND: r"^nothing has |no repository has ",
    ConflictCode.NO_MATCHING_VERSION: r"none of them in |no other version can be had: |no version can be in ",
    ConflictCode.DOWNGRADE: r"and only lower versions are in what was asked for$",
    ConflictCode.REQUIRED_BY: r"cannot be uninstalled: .* requires? it$",
    ConflictCode.PLATFORM: r" (is|are) for pkger >=99$",
}
"""What the first line says."""

OUT_OF_USE = (
    r"(\w+) (\d\S*(?:(?:, | and )\d[^\s,]*)*(?: more versions?)?) (?:is|are) (yanked|for pkger|a prerelease|prerelease)"
)


@st.composite
def many_platforms(draw: st.DrawFn) -> dict[str, Any]:
    """Worlds some of whose versions are for another version of pkger."""
    case = draw(worlds())
    for package in case["repositories"][0]["packages"].values():
        for each in package["versions"]:
            if draw(st.integers(1, 100)) <= 15:
                each["platform"] = ">=99"
    return {**case, "options": {**case["options"], "platform": "0.3.0"}}


@many
@given(worlds() | many_platforms())
def test_the_first_line_is_about_what_the_code_says(case: Mapping[str, Any]) -> None:
    answer = resolved(case)
    if isinstance(answer, Conflict) and answer.code in SAID:
        assert re.search(SAID[answer.code], answer.text), (answer.code, answer.text)
        # That a repository is not configured says nothing about a package.
        assert answer.code is ConflictCode.REPOSITORY_UNKNOWN or re.search(rf"\b{answer.package}\b", answer.text)
        assert answer.package in {name for fact in answer.facts for name in fact.packages}


@many
@given(worlds() | many_platforms())
def test_each_fact_is_true(case: Mapping[str, Any]) -> None:
    answer = resolved(case)
    if isinstance(answer, Conflict):
        truth = _Truth(case)
        for text in (answer.text, *(each.text for each in answer.facts)):
            truth.check(text)


class _Truth:
    """What a case publishes, read without the code of the resolution."""

    def __init__(self, case: Mapping[str, Any]) -> None:
        self._allowed = case["options"].get("prerelease", ())
        self._own = {each["name"]: Version.parse(each["version"]) for each in case["installed"]}
        self._rows = {
            name: sorted(((Version.parse(each["version"]), each) for each in package["versions"]), reverse=True)
            for repository in sorted(case["repositories"], key=lambda each: each.get("priority", 0))
            for name, package in repository["packages"].items()
        }

    def check(self, text: str) -> None:
        """Check what a text says of published versions."""
        for name, listed, said in re.findall(OUT_OF_USE, text):
            versions = [row for row in self._rows[name] if self._is_out_of_use(name, row, said)]
            assert {version for version, _ in versions} >= set(_named(listed)), text
        if match := re.match(
            r"only (.+?) of (\w+)(?: above (\S+))? (?:is|are) (published|in (.+?))(?:, as .*)?$", text
        ):
            listed, name, above, _, range_text = match.groups()
            wanted = _parsed(range_text or "*")
            expected = [
                row[0]
                for row in self._rows[name]
                if fits(wanted, row[0], True)
                and (above is None or row[0] > Version.parse(above))
                and (self._own.get(name) == row[0] or not self._is_unusable(name, row, range_text))
            ]
            self._compare(listed, expected, text)
        if match := re.search(r"(\w+) is published as (.+?)(?:, none of them in|, and )", text):
            self._compare(match[2], [version for version, _ in self._rows[match[1]]], text)
        if match := re.search(r"(\w+) is published as .*?, none of them in (?!all of)([^,]+)(?:$|, and)", text):
            ranges = [_parsed(each) for each in match[2].split(" and ")]
            assert not any(fits(each, version, False) for version, _ in self._rows[match[1]] for each in ranges), text
        if match := re.match(r"no version of (\w+) above (\S+) is (published|in (.+))$", text):
            name, above, _, range_text = match.groups()
            ranges = [_parsed(each) for each in re.split(", | and ", range_text or "*")]
            for version, _ in self._rows[name]:
                assert version <= Version.parse(above) or not any(fits(each, version, True) for each in ranges), text

    def _is_unusable(self, name: str, row: tuple[Version, Mapping[str, Any]], range_text: str | None) -> bool:
        is_admitted = range_text is not None and fits(_parsed(range_text), row[0], False)
        return any(self._is_out_of_use(name, row, said) for said in ("yanked", "for pkger")) or (
            not is_admitted and self._is_out_of_use(name, row, "prerelease")
        )

    def _is_out_of_use(self, name: str, row: tuple[Version, Mapping[str, Any]], said: str) -> bool:
        version, written = row
        if "prerelease" in said:
            return version.is_prerelease and name not in self._allowed
        return ("yanked" if said == "yanked" else "platform") in written

    @staticmethod
    def _compare(listed: str, expected: list[Version], text: str) -> None:
        more = re.search(r"(\d+) more version", listed)
        assert _named(listed) == expected[:2], text
        assert len(expected) == len(_named(listed)) + (int(more[1]) if more else 0), text


def _parsed(text: str) -> Range | Version:
    return Version.parse(text) if "+" in text else Range.parse(text)


def _named(listed: str) -> list[Version]:
    return [Version.parse(each) for each in re.findall(r"\d+\.\d+\.\d+[^\s,]*", listed)]
