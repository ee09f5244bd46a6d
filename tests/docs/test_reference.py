"""docs/reference: generated parts are up to date, and each page or heading that is referred to exists."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from docgen.errors import entries
from docgen.grpc import grpc_pages
from docgen.hooks import on_page_markdown
from docgen.reference import generated
from services.core.errors import ERRORS
from tests.conftest import ROOT

FOLDERS = (
    "services",
    "parser_svc",
    "planner_svc",
    "applier_svc",
    "stack_svc",
    "tests",
    "bench",
    "examples",
    "protos",
    "docgen",
)
"""Folders whose comments refer to pages."""

PAGE = re.compile(r"(?<![\w/.-])(?:docs/)?(?:[a-z-]+/)*[\w-]+\.md\b")
"""The path of a page in a text, from the root of the repository or, in short, below docs/."""

QUOTED = r'"([A-Z][^"]*)"'
REFERENCE = re.compile(rf"(docs/[\w/-]+\.md)`?((?:(?:, | and | to ){QUOTED})+)")
"""A page with the headings that follow it: ``docs/reference/engine.md, "Claims" and "Expectations"``."""

OTHERS = frozenset({"package.md", "CONTRIBUTING.md", "CHANGELOG.md", "README.md", "SECURITY.md"})


def comments() -> Iterator[tuple[Path, str]]:
    """The texts that may refer to pages, each joined to one line, so that a reference may be broken."""
    files = [path for name in FOLDERS for path in (ROOT / name).rglob("*") if path.suffix in (".py", ".proto")]
    files += [ROOT / "Makefile", ROOT / "pyproject.toml", ROOT / "docker-compose.yml", ROOT / "mkdocs.yml"]
    for path in files:
        if "gen" not in path.parts and ".imports" not in path.parts:
            yield path.relative_to(ROOT), re.sub(r"\n\s*(?:#|//)? *", " ", path.read_text())


def headings(page: Path) -> set[str]:
    """The headings of a page."""
    return set(re.findall(r"^#+ (.+?)\s*$", page.read_text(), re.MULTILINE))


def test_each_page_that_is_referred_to_exists() -> None:
    missing = {
        f"{path}: {found}"
        for path, text in comments()
        if path.parts[:2] != ("tests", "docs")
        for found in PAGE.findall(text)
        if found.startswith("docs/") and not (ROOT / found).is_file()
    }
    assert missing == set()


def test_pages_are_named_by_their_path() -> None:
    """A bare name, such as ``engine.md``, would make the reader search for the page."""
    short = {
        f"{path}: {found}"
        for path, text in comments()
        if path.suffix in (".py", ".proto") and path.parts[0] != "docgen" and path.parts[:2] != ("tests", "docs")
        for found in PAGE.findall(re.sub(r'"docs" / "[^"]*"', "", text))
        if not found.startswith("docs/") and found not in OTHERS and not (ROOT / found).is_file()
    }
    assert short == set()


def test_each_heading_that_is_referred_to_exists() -> None:
    found = [
        (path, page, heading)
        for path, text in comments()
        for page, headed, _ in REFERENCE.findall(text)
        for heading in re.findall(QUOTED, headed)
    ]
    assert len(found) > 200
    missing = {f"{path}: {page}, {heading!r}" for path, page, heading in found if heading not in headings(ROOT / page)}
    assert missing == set()


@pytest.mark.parametrize(("path", "text"), generated().items(), ids=lambda value: getattr(value, "name", "text"))
def test_generated_pages_are_up_to_date(path: Path, text: str) -> None:
    assert path.read_text() == text, "run `make reference`"


def test_the_contract_and_the_classes_of_errors_have_the_same_codes() -> None:
    assert {entry.reason: entry.code for entry in entries()} == {
        reason: error.code for reason, error in ERRORS.items()
    }  # fmt: skip


def test_the_grpc_reference_has_every_rpc_and_links_within_itself() -> None:
    pages = grpc_pages()
    assert "### CreatePlan\n" in pages["pkger.planner.v1"]
    names = {f"{name}.md": {line.lower() for line in text.splitlines()} for name, text in pages.items()}
    for text in pages.values():
        for page, anchor in re.findall(r"\]\(([\w.]+)#(\w+)\)", text):
            assert {f"## {anchor}", f"### {anchor}"} & {line.replace(".", "") for line in names[page]}, (page, anchor)


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("[the file](../pyproject.toml)", "the file (`pyproject.toml`)"),
        ("[`Makefile`](../Makefile)", "`Makefile`"),
        ("[a page](../docs/cli.md)", "[a page](../docs/cli.md)"),
        ("[nothing](../nothing.py)", "[nothing](../nothing.py)"),
        ("[a page](cli.md#where-it-works)", "[a page](cli.md#where-it-works)"),
    ],
)
def test_links_to_files_outside_of_the_documents_become_paths(written: str, shown: str) -> None:
    """A link to a missing file stays a link, so that the strict build fails."""
    config = MkDocsConfig()
    config.load_dict({"site_name": "x", "docs_dir": str(ROOT / "docs")})
    file = File("tour.md", str(ROOT / "docs"), "site", use_directory_urls=False)
    assert on_page_markdown(written, Page("Tour", file, config), config, Files([file])) == shown
