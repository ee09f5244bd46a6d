"""
The answers of the parser to packages, mistakes and supplied values: our own, with reviewed answers, and those that the
parser of InfluxDB gave.

``pytest --update-golden`` rewrites the summaries of our own packages.
"""

import json
import re
from collections.abc import Collection, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.corpora import (
    FIXTURES,
    RECORDED,
    cases_in,
    corpus_parameters,
    package_text,
    packages_in,
    parameters,
    summary_path,
)
from tests.differences import differences
from tests.parser.golden_adapter import answer, parser

OWN_FOLDER = FIXTURES / "packages"
OWN_CASES = [FIXTURES / "mistakes.yml", FIXTURES / "supplied.yml"]
RECORDED_CASES = [RECORDED / "parse" / "errors.jsonl", RECORDED / "parse" / "env.jsonl"]

LATER_LISTS: Collection[str] = ()
"""Lists of the summary for kinds that the parser of InfluxDB lacks; the recorded answers do not have them."""

DIFFERENT = ("json-bom",)
"""Conditions of recorded cases: pkger reads JSON with a byte order mark, which Windows programs write."""

_OPTION = re.compile(r"^[ \t]*option\s+(?:params|task)\s*=\s*\{", re.MULTILINE)
_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|\s+|[^"\s]+|"')
"""The texts of a script, its blanks, and the rest."""

_DEFAULTS = {"apiVersion": "influxdata.com/v2alpha1", "metadata": {"name": "thing"}}
"""The envelope of an object of our own cases that has none."""


@pytest.mark.parametrize("folder", corpus_parameters())
async def test_every_package_has_its_summary(folder: Path, request: pytest.FixtureRequest) -> None:
    is_own = folder == OWN_FOLDER
    found: dict[str, list[str]] = {}
    async with parser() as peer:
        for path in packages_in(folder):
            case = {"source": package_text(path), "encoding": "source", "env": {}}
            answered = await answer(peer, case)
            if is_own and request.config.getoption("--update-golden"):
                text = json.dumps(answered["summary"], indent=1, ensure_ascii=False, sort_keys=True)
                summary_path(path).write_text(f"{text}\n")
            expected = json.loads(summary_path(path).read_bytes())
            found[path.name] = [*answered["errors"], *compared(expected, answered["summary"], is_own=is_own)]
            if is_own:
                found[path.name] += answered["findings"]
    assert {name: texts[:5] for name, texts in found.items() if texts} == {}
    assert len(found) > (5 if is_own else 30)


@pytest.mark.parametrize("path", parameters(OWN_CASES, RECORDED_CASES))
async def test_every_case_has_its_answer(path: Path) -> None:
    is_own = path in OWN_CASES
    found: dict[str, list[str]] = {}
    async with parser() as peer:
        for case in own_cases(path) if is_own else recorded_cases(path):
            differing = case_differences(case, await answer(peer, case), is_own=is_own)
            found.setdefault(case["id"], []).extend(differing)
    assert {name: texts[:5] for name, texts in found.items() if texts} == {}
    assert len(found) > 10


def own_cases(path: Path) -> list[dict[str, Any]]:
    """The cases of a file in ``tests/fixtures``; one with objects is a case in YAML and a case in JSON."""
    cases = []
    for row in yaml.load(path.read_text(), yaml.CSafeLoader):
        expect = {"decode_error": "refused" in row, "findings": [], "refused": "", "values": {}} | row
        case = {"id": row["name"], "encoding": "source", "env": {}, "expect": expect} | row
        if "package" in row:
            [package] = [each for each in packages_in(OWN_FOLDER) if each.stem == row["package"]]
            case["source"] = package_text(package)
        if "objects" not in row:
            cases.append(case)
            continue
        objects = [_DEFAULTS | each for each in row["objects"]]
        written = {
            "yaml": yaml.dump_all(objects, Dumper=yaml.CSafeDumper, allow_unicode=True),
            "json": json.dumps(objects),
        }
        cases += [case | {"encoding": encoding, "source": text} for encoding, text in written.items()]
    return cases


def recorded_cases(path: Path) -> list[Mapping[str, Any]]:
    """The cases of a recorded file, without those in which pkger differs on purpose."""
    return [case for case in cases_in(path) if case.get("condition") not in DIFFERENT]


def case_differences(case: Mapping[str, Any], answered: Mapping[str, Any], *, is_own: bool) -> list[str]:
    """The differences between an answer and the expected one."""
    expect = case["expect"]
    if answered["decode_error"] or expect["decode_error"]:
        keys = ("decode_error", "refused") if is_own else ("decode_error",)
        return [text for key in keys for text in differences(expect[key], answered[key], f"/{key}")]
    if is_own:
        found = list(differences(sorted(expect["findings"]), sorted(answered["findings"]), "/findings"))
        for pointer, value in expect["values"].items():
            found += differences(value, value_at(answered["summary"], pointer), pointer)
        return found
    found = list(differences(expect["errors"], answered["errors"], "/errors"))
    if summary := expect.get("summary"):
        part = {key: value for key, value in answered["summary"].items() if key in summary}
        found += compared(summary, part)
    return found


def compared(expected: Mapping[str, Any], summary: Mapping[str, Any] | None, *, is_own: bool = False) -> list[str]:
    """The differences of a summary; a recorded one may have another form of the same meaning."""
    if is_own or summary is None:
        return list(differences(expected, summary))
    known = {key: value for key, value in summary.items() if key not in LATER_LISTS}
    return list(differences(comparable(expected), comparable(known)))


def comparable(value: Any, key: str = "") -> Any:
    """
    A summary in a form in which equal ones are equal.

    Secrets have no order, label mappings of the same names neither, and the blanks of a script with options no meaning.
    """
    if isinstance(value, dict):
        return {name: comparable(item, name) for name, item in value.items()}
    if isinstance(value, list):
        items = [comparable(item) for item in value]
        match key:
            case "missingSecrets":
                return sorted(items)
            case "labelMappings":
                return [each for _, tied in groupby(items, _names) for each in sorted(tied, key=json.dumps)]
            case _:
                return items
    if isinstance(value, str) and key in ("query", "text") and _OPTION.search(value):
        blankless = "".join(token for token in _TOKEN.findall(value) if not token.isspace())
        return re.sub(r",([}\])])", r"\1", blankless)
    return value


def _names(mapping: Mapping[str, Any]) -> list[Any]:
    return [mapping.get(name) for name in ("resourceType", "resourceName", "labelName")]


def value_at(document: Any, pointer: str) -> Any:
    """The value at a JSON pointer."""
    for step in pointer.split("/")[1:]:
        document = document[int(step)] if isinstance(document, list) else document[step]
    return document


@pytest.mark.parametrize(
    ("pointer", "wrong"),
    [
        ("/buckets/0/name", "other"),
        ("/buckets/0/retentionPeriod", "172800"),
        ("/labelMappings", []),
        ("/variables/0/arguments/values", {}),
        ("/more", None),
        ("/summaryTask/0/labelAssociations/0/id", False),
    ],
)
def test_a_wrong_summary_is_detected(pointer: str, wrong: Any) -> None:
    expected = json.loads((OWN_FOLDER / "stations.summary.json").read_text())
    changed = json.loads(json.dumps(expected))
    holder, _, key = pointer.rpartition("/")
    value_at(changed, holder)[key] = wrong
    for is_own in (True, False):
        assert compared(expected, expected, is_own=is_own) == []
        assert compared(expected, changed, is_own=is_own) != []
