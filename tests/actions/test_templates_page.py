"""docs/templates.md: its tables and examples are those of the code."""

import re
from typing import Any

import pytest

from services.actions.templates.errors import TemplateCode
from services.actions.templates.functions import FUNCTIONS, METHODS
from services.actions.templates.name_check import ROOTS
from services.actions.templates.rendering import render
from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "templates.md").read_text()
PARAMETERS: dict[str, Any] = {
    "time": "2026-11-28T10:00:00Z",
    "options": {"tag": "night"},
    "phases": {"export": {"output": {"objects": 42}}},
}


@pytest.mark.parametrize(
    ("template", "value"), re.findall(r"^\| `(.*\{\{.*)` \| `(.*)` \|$", PAGE, re.MULTILINE), ids=lambda text: text
)
def test_an_example_gives_the_value_of_its_row(template: str, value: str) -> None:
    rendered = render(template, PARAMETERS)
    assert (f'"{rendered}"' if isinstance(rendered, str) else str(rendered)) == value


def test_the_tables_have_all_names() -> None:
    called = re.findall(r"\| (.*?) \|", PAGE)
    assert set(re.findall(r"(?<![\w.])(\w+)\(", " ".join(called))) >= set(FUNCTIONS)
    assert set(re.findall(r"\.(\w+)\(", " ".join(called))) == set(METHODS)
    assert set(re.findall(r"`(\w+)", PAGE)) >= ROOTS - {"profile", "item"} | set(TemplateCode)
