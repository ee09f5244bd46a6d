"""The recorded answers of the reference parser, for the kinds that this version serves (skipped without ../shared)."""

import json
import sys
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from parser_svc.package import parse
from parser_svc.sources import Encoding, Source
from services.core.errors import SourceTooLarge, SourceUndecodable
from services.kinds.summary import summary_document
from services.kinds.table import NOT_SERVED

CORPUS = Path(__file__).parents[2].parent / "shared" / "golden" / "parse"

LATER_RULES = ("CH", "T1", "T2", "dashboard-params", "task-params", "task-options", "no-option")
"""Charts and scripts with options."""

pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason="the recorded answers are not beside this checkout")


@pytest.fixture(scope="module")
def rules() -> ModuleType:
    """The rules of comparison that belong to the answers."""
    found = spec_from_file_location("recorded_answers_compare", CORPUS / "compare.py")
    assert found is not None
    assert found.loader is not None
    module = module_from_spec(found)
    written, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    found.loader.exec_module(module)
    sys.dont_write_bytecode = written
    return module


def _cases() -> Iterator[Any]:
    for name in ("errors", "env"):
        for line in _lines(CORPUS / f"{name}.jsonl"):
            case = json.loads(line)
            rule = case.get("condition") or case.get("topic")
            undecodable = case["expect"]["decode_error"]
            if undecodable or not (rule.startswith(LATER_RULES) or _mentions_later_kinds(case["source"])):
                yield pytest.param(case, id=f"{name}-{case['id']}-{rule}")


def _packages() -> Iterator[Any]:
    for path in sorted(CORPUS.glob("packages/*.yml")):
        text = path.read_bytes().decode()
        if not _mentions_later_kinds(text):
            summary = json.loads(path.with_name(f"{path.stem}.summary.json").read_text())
            expect = {"decode_error": False, "errors": [], "summary": summary}
            yield pytest.param(
                {"encoding": "yaml", "source": text, "env": {}, "whole": True, "expect": expect}, id=path.stem
            )


def _lines(path: Path) -> list[str]:
    return path.read_bytes().decode().splitlines() if path.exists() else []


def _mentions_later_kinds(text: str) -> bool:
    return any(kind in text for kind in NOT_SERVED)


@pytest.mark.parametrize("case", [*_cases(), *_packages()])
def test_an_answer_equals_the_recorded_one(case: dict[str, Any], rules: ModuleType) -> None:
    answer = _answer(case)
    # Charts are kept as they are written, so only their number can be compared.
    for summary in (case["expect"].get("summary"), answer["summary"]):
        for dashboard in (summary or {}).get("dashboards", ()):
            dashboard["charts"] = len(dashboard["charts"] or ())
    assert rules.compare(case, answer) is None


def _answer(case: dict[str, Any]) -> dict[str, Any]:
    encoding = {"yaml": Encoding.YAML, "json": Encoding.JSON}.get(case["encoding"])
    try:
        parsed = parse([Source("string", case["source"], encoding)], case["env"])
    except (SourceUndecodable, SourceTooLarge):
        return {"decode_error": True, "errors": [], "summary": None}
    errors = [{"kind": violation.kind, "path": violation.path} for violation in parsed.violations]
    summary = parsed.package and summary_document(
        parsed.package.objects,
        {},
        missing_env_refs=parsed.missing_env_refs,
        missing_secrets=parsed.missing_secrets,
    )
    return {"decode_error": False, "errors": errors, "summary": summary}
