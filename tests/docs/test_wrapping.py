"""Paragraphs and list items of the documents are wrapped in one way."""

from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.docs.wrapping import PAGES, WIDTH, too_long, wrapped


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_line_of_text_is_too_long(page: Path) -> None:
    """`.venv/bin/python -m tests.docs.wrapping` wraps the pages."""
    assert too_long(page.read_text()) == []


def test_only_paragraphs_and_list_items_are_wrapped() -> None:
    long = "word " * 40
    page = f"# {long}\n\n| {long} |\n\n```text\n{long}\n```\n\n- {long}\n  {long}\n\n1. {long}\n\n{long}"
    new = wrapped(page)
    assert new.startswith(f"# {long}\n\n| {long} |\n\n```text\n{long}\n```\n\n- word")
    assert too_long(new) == []
    assert new.split() == page.split()
    assert wrapped(new) == new


def test_code_and_links_stay_on_one_line_and_no_line_starts_a_list() -> None:
    code, link = "`" + "a " * 50 + "`", "[" + "b " * 50 + "](c.md)"
    lines = wrapped(f"{code} and {link} and {'d ' * 60}- e").split("\n")
    assert [line for line in lines if code in line or link in line] == lines[:2]
    assert not any(line.startswith("-") for line in lines)
    assert max(map(len, lines)) <= WIDTH
