"""The stand-in is independent of the driver that it tests."""

import ast
import sys
from pathlib import Path

import pytest

FOREIGN = {"aiohttp", "multidict", "yarl", "pytest"}
OF_TESTS = {"tests", "tests.needs"}
"""Imported by test modules only, for the reasons to skip a test."""

FILES = sorted(Path(__file__).parent.glob("*.py"))


@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_imports_nothing_of_the_services(file: Path) -> None:
    """A shared error would not be found."""
    nodes = list(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
    imported = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    imported += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    own = [name for name in imported if name == "tests.influx" or name.startswith("tests.influx.")]
    own += OF_TESTS if file.stem.startswith("test_") else ()
    assert {name.split(".")[0] for name in imported if name not in own} <= FOREIGN | sys.stdlib_module_names
