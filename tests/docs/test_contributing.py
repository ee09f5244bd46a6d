"""CONTRIBUTING.md and CHANGELOG.md name existing files, tests, targets of make, and versions."""

import re
import subprocess
import tomllib

import pytest

from services.core.errors import Reason
from tests.conftest import ROOT

PAGE = (ROOT / "CONTRIBUTING.md").read_text()
FIRST = re.compile(r"^\| (?:a|an) [^|]+ \| [^|]+ \| ([^|]+) \|$", re.MULTILINE)


def test_each_file_of_the_page_exists() -> None:
    named = re.findall(r"`((?:services|planner_svc|stack_svc|applier_svc|protos|tests)/[\w/.]*)`", PAGE)
    assert len(named) > 20
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_each_addition_names_the_check_that_fails_first() -> None:
    rows = FIRST.findall(PAGE)
    assert len(rows) == 8
    assert all("tests/" in row or "make lint" in row for row in rows)


@pytest.mark.parametrize("target", sorted(set(re.findall(r"`make ([a-z-]+)", PAGE))))
def test_each_target_of_the_page_is_in_the_makefile(target: str) -> None:
    subprocess.run(["make", "--dry-run", target], cwd=ROOT, check=True, capture_output=True)


def test_the_changelog_keeps_its_form() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert re.fullmatch(r"0\.\d+\.\d+", version)
    releases = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert releases[0] == "[Unreleased]"
    assert all(re.fullmatch(r"\[0\.\d+\.\d+\] - \d{4}-\d\d-\d\d", release) for release in releases[1:])
    sections = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert set(re.findall(r"^### (.+)$", text, re.MULTILINE)) <= sections


def test_the_table_of_error_texts_has_every_reason() -> None:
    blocks = (ROOT / "tests" / "errors" / "texts.txt").read_text().split("\n\n")
    assert [block.split("\n")[0] for block in blocks] == sorted(Reason)
