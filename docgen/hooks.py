"""Hooks of MkDocs: add the gRPC reference, and replace links to files outside docs/ by the paths of the files."""

import posixpath
import re
from pathlib import Path, PurePosixPath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from docgen.grpc import grpc_pages

_ROOT = Path(__file__).parent.parent

_LINK = re.compile(r"\[([^\]]+)\]\((\.\./[^)\s]+)\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for each package of the contracts."""
    for package, text in grpc_pages().items():
        files.append(File.generated(config, f"reference/grpc/{package}.md", content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Replace links to existing files outside docs/ by their paths; other links stay, so MkDocs reports dead ones."""
    folder = PurePosixPath("docs") / PurePosixPath(page.file.src_uri).parent

    def replaced(match: re.Match[str]) -> str:
        text, target = match[1], match[2].partition("#")[0]
        path = posixpath.normpath(str(folder / target))
        if path.startswith("docs/") or not (_ROOT / path).exists():
            return match[0]
        return text if text.strip("`") == path else f"{text} (`{path}`)"

    return _LINK.sub(replaced, markdown)
