"""
Wraps the paragraphs and list items of Markdown pages at one width. Tables, code, headings and HTML stay as they are.

``python -m tests.docs.wrapping`` rewrites the pages that ``test_wrapping.py`` checks.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.conftest import ROOT

WIDTH = 120

_GENERATED = {ROOT / "docs" / "reference" / "errors.md", ROOT / "docs" / "diagnostics.md"}
"""Pages made from tables of the code, one line for each fact."""

PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")),
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if page not in _GENERATED),
]
"""All wrapped pages."""

_FENCE = re.compile(r" *(```|~~~)")
_ITEM = re.compile(r"( *)((?:[-*+]|\d+\.) +)(?=\S)")
_STRUCTURE = re.compile(r" *(\||#{1,6} |<|!!! |>|!\[[^]]*\]\([^)]*\)$|\[[^]]+\]: |---$)")
_UNBREAKABLE = re.compile(r"(?:`[^`]+`|\[[^]]*\]\([^)]*\)|\S)+")
_STARTS_BLOCK = re.compile(r"(?:[-*+]|-+|\d+\.)$|[>|#=]")


class Line(NamedTuple):
    """One line of a page; *is_text*: it belongs to a paragraph or a list item."""

    text: str
    is_text: bool


def lines_of(page: str) -> Iterator[Line]:
    """The lines of *page*, with or without text that may be wrapped."""
    fence = ""
    for text in page.split("\n"):
        opened = _FENCE.match(text)
        is_code = bool(fence or opened)
        if opened and not fence:
            fence = opened[1]
        elif opened and opened[1] == fence:
            fence = ""
        yield Line(text, not (is_code or not text.strip() or _STRUCTURE.match(text)))


def too_long(page: str) -> list[str]:
    """Lines of text that are wider than ``WIDTH``, but for those that cannot be broken."""
    wide = [line.text for line in lines_of(page) if line.is_text and len(line.text) > WIDTH]
    return [text for text in wide if len(_words(_ITEM.sub("", text))) > 1]


def wrapped(page: str) -> str:
    """*page* with all its paragraphs and list items wrapped."""
    out, block = list[str](), list[str]()
    for line in lines_of(page):
        if block and (not line.is_text or _ITEM.match(line.text)):
            out += _wrapped_block(block)
            block = []
        if line.is_text:
            block.append(line.text)
        else:
            out.append(line.text)
    return "\n".join(out + (_wrapped_block(block) if block else []))


def _wrapped_block(block: list[str]) -> list[str]:
    item = _ITEM.match(block[0])
    indent = item[1] if item else re.match(" *", block[0])[0]  # type: ignore[index]
    first = item[0] if item else indent
    rest = " " * len(first) if item else indent
    lines, line = list[str](), first
    for word in _words(" ".join([block[0][len(first) :], *(text.strip() for text in block[1:])])):
        if line.strip() != first.strip() and len(line) + 1 + len(word) > WIDTH:
            lines.append(line)
            line = rest
        line += word if line in (first, rest) else f" {word}"
    return [*lines, line]


def _words(text: str) -> list[str]:
    """The parts of *text* between which a line may end: code and links stay whole, and no line starts like a list."""
    words = list[str]()
    for word in _UNBREAKABLE.findall(text):
        if words and _STARTS_BLOCK.match(word):
            words[-1] += f" {word}"
        else:
            words.append(word)
    return words


def rewrite(pages: list[Path]) -> None:
    """Wrap *pages* in place."""
    for page in pages:
        text = page.read_text()
        if (new := wrapped(text)) != text:
            page.write_text(new)


if __name__ == "__main__":
    rewrite(PAGES)
