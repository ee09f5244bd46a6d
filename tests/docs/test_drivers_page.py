"""docs/drivers.md is enough to add a driver: the tests follow its blocks on a copy of the code, as a reader would."""

import os
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from services.drivers.registry import DRIVERS
from services.platforms import read_platforms
from services.settings import load
from tests.apply.packages import an_object
from tests.cli.command import environment
from tests.compose.processes import run
from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "drivers.md").read_text()

NAMED_FILE = re.compile(r"^`([\w/]+\.py)`:\n\n```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
ROW = re.compile(r"a row of `(\w+)` in `([\w/]+\.py)`.*?^```python\n(    .*?)^```", re.MULTILINE | re.DOTALL)

TOUCHED = {"services/drivers/registry.py", "tests/drivers/platforms.py"}
"""Files that are there already and change with a new driver."""


def section(heading: str) -> str:
    """The text under *heading*."""
    return PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]


def blocks(heading: str, language: str) -> list[str]:
    """The fenced blocks of *language* under *heading*."""
    return re.findall(rf"^```{language}\n(.*?)^```", section(heading), re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the code, changed as the page says."""
    folder = tmp_path_factory.mktemp("copy")
    ignored = shutil.ignore_patterns("__pycache__")
    for name in (
        "services",
        "parser_svc",
        "planner_svc",
        "applier_svc",
        "stack_svc",
        "tests",
        "docs",
        "pyproject.toml",
    ):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, folder / name)
    for name, content in NAMED_FILE.findall(PAGE):
        assert not (folder / name).exists()
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    rows = ROW.findall(section("A driver in Python"))
    assert {file for _, file, _ in rows} == TOUCHED
    for table, file, row in rows:
        before, opening, after = (folder / file).read_text().partition(_opening(table, (folder / file).read_text()))
        (folder / file).write_text(f"{before}{opening}{row}{after}")
    return folder


def _opening(table: str, code: str) -> str:
    """The line of *code* with which *table* begins."""
    found = re.search(rf"^{table}\b.*= {{\n", code, re.MULTILINE)
    assert found, table
    return found[0]


def on_copy(folder: Path, home: Path) -> Mapping[str, str]:
    """An environment in which commands run the copied code."""
    paths = os.pathsep.join([str(folder), str(folder / "services" / "gen")])
    return environment(home) | {
        "PYTHONPATH": paths,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
    }


@pytest.mark.slow
async def test_the_driver_of_the_page_is_planned_applied_and_uninstalled(copy: Path, tmp_path: Path) -> None:
    (row,) = blocks("A driver in Python", "yaml")
    (tmp_path / "platforms.yml").write_text(row)
    package = [
        an_object("Label", "red", "red"),
        an_object("Bucket", "readings", "readings", ["red"]),
        an_object("Task", "hourly", "hourly", ["red"], every="1h", query="buckets()"),
    ]
    (tmp_path / "package.yml").write_text(yaml.safe_dump_all(package))
    (commands,) = [block for block in blocks("A driver in Python", "sh") if "pkger" in block]
    status, printed, errors = await run(["sh", "-euc", commands], on_copy(copy, tmp_path), tmp_path)
    assert (status, errors) == (0, "")
    assert "Done: 3 created, 2 label(s) attached." in printed
    assert "Done: nothing to do, nothing written." in printed
    assert "Done: 3 deleted, 2 label(s) detached." in printed
    assert (tmp_path / "notes.json").exists()
    assert not (tmp_path / "platform.db").exists()


@pytest.mark.slow
async def test_the_driver_of_the_page_passes_the_conformance_suite(copy: Path, tmp_path: Path) -> None:
    (command,) = [block for block in blocks("A driver in Python", "sh") if "pytest" in block]
    status, printed, _ = await run(
        ["sh", "-euc", f"{command.strip()} -p no:cacheprovider -q --no-header"], on_copy(copy, tmp_path), copy
    )
    assert status == 0, printed
    counted = re.search(r"(\d+) passed", printed)
    assert counted
    assert int(counted[1]) > 100


@pytest.mark.slow
async def test_the_driver_of_the_page_has_types(copy: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    if (ROOT / ".mypy_cache").exists():  # From `make lint`: the code that did not change need not be checked again.
        shutil.copytree(ROOT / ".mypy_cache", cache)
    command = ["mypy", "--config-file", "pyproject.toml", "--cache-dir", str(cache), "services/drivers/jsonfile"]
    status, printed, errors = await run([*command, *TOUCHED], on_copy(copy, tmp_path), copy)
    assert status == 0, printed + errors


@pytest.mark.parametrize("heading", ["The platforms file", "A driver in another language"])
def test_the_files_of_the_page_can_be_read(tmp_path: Path, heading: str) -> None:
    (rows,) = blocks(heading, "yaml")
    (tmp_path / "platforms.yml").write_text(rows)
    platforms = read_platforms(load({"PKGER_HOME": str(tmp_path)}), DRIVERS)
    assert platforms.keys() == yaml.safe_load(rows).keys()
    assert not platforms["factory"].driver


def test_the_files_that_the_page_names_exist() -> None:
    named = {name for name in re.findall(r"`((?:services|tests)/[\w/]+\.py)`", PAGE) if "jsonfile" not in name}
    assert len(named) >= 5
    assert all((ROOT / name).is_file() for name in named)
