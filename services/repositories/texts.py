"""Reads and writes the files of a repository, within bounds."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from services.core.errors import SourceTooLarge, SourceUndecodable
from services.packages.index_files import (
    INDEX_FILE,
    MAX_VERSIONS_BYTES,
    IndexProblem,
    PackageVersions,
    Pointer,
    RepositoryFault,
    RepositoryIndex,
    index_tree,
    read_index,
    read_versions,
    versions_file,
    versions_tree,
)
from services.packages.manifest import Manifest, is_manifest, read_manifest
from services.repositories.file_problem import FileProblem
from services.settings import MAX_INDEX_BYTES, Bounds
from services.syntax.json_reader import read_array
from services.syntax.places import NOWHERE, places
from services.syntax.usage import Usage
from services.syntax.web_pages import is_web_page
from services.syntax.writer import Document, YamlWriter
from services.syntax.yaml_reader import read_stream

_COMMENT = "Made by `pkger repo index`; publish a version or change a setting with that command."

_T = TypeVar("_T")


def index_of(data: bytes, max_bytes: int = MAX_INDEX_BYTES) -> RepositoryIndex:
    """
    Read the index of a repository.

    Args:
        data: The file.
        max_bytes: Its greatest size.

    Raises:
        FileProblem: It breaks a rule.
    """
    return _checked(INDEX_FILE, data, max_bytes, read_index)


def versions_of(data: bytes, name: str) -> PackageVersions:
    """
    Read the file that lists the versions of the package *name*.

    Raises:
        FileProblem: It breaks a rule.
    """
    return _checked(versions_file(name), data, MAX_VERSIONS_BYTES, lambda tree: read_versions(tree, name))


def index_text(index: RepositoryIndex) -> str:
    """The text of an index; equal for equal values."""
    return _written(index_tree(index))


def versions_text(package: PackageVersions) -> str:
    """The text of the file that lists versions; equal for equal values."""
    return _written(versions_tree(package))


def manifest_of(data: bytes, bounds: Bounds | None = None) -> Manifest:
    """
    The manifest in the file that must have it.

    Args:
        data: The file, whose digest is that of its version.
        bounds: The limits of a package; None: the default ones.

    Raises:
        FileProblem: There is none, or it breaks a rule.
    """
    fault = RepositoryFault.MANIFEST_MISMATCH
    documents = _documents("package.yaml", _text(data, fault), Usage(bounds), fault)
    manifests = [
        (position, document)
        for position, document in enumerate(documents)
        if isinstance(document, dict) and is_manifest(str(document.get("kind")), str(document.get("apiVersion")))
    ]
    if len(manifests) != 1:
        count = f"{len(manifests)} manifests" if manifests else "no manifest"
        raise FileProblem(fault, f"the file has {count}; it needs one object of kind Package")
    [(position, document)] = manifests
    metadata, spec = document.get("metadata") or {}, document.get("spec") or {}
    if not isinstance(metadata, dict) or not isinstance(spec, dict):
        raise FileProblem(fault, "metadata and spec of the manifest must be mappings")
    reading = read_manifest(str(document["apiVersion"]), metadata, spec, position)
    if reading.manifest is None:
        raise FileProblem(fault, f"{reading.faults[0].path} of the manifest: {reading.faults[0].reason}")
    return reading.manifest


def _written(tree: Document) -> str:
    writer = YamlWriter(_COMMENT)
    return writer.joined([writer.document(tree)])


def _checked(file: str, data: bytes, max_bytes: int, read: Callable[[Any], _T]) -> _T:
    """The value of an index file, whose problems get their places in it."""
    if len(data) > max_bytes:
        raise FileProblem(
            RepositoryFault.TOO_LARGE, f"the file has {len(data):,} bytes; at most {max_bytes:,} are read"
        )
    fault = RepositoryFault.INDEX_INVALID
    text = _text(data, fault)
    documents = _documents(file, text, Usage(Bounds(bytes=max_bytes)), fault)
    if len(documents) > 1:
        raise FileProblem(fault, f"the file has {len(documents)} documents; it needs one")
    try:
        return read(documents[0] if documents else None)
    except IndexProblem as problem:
        raise FileProblem(problem.fault, f"{_place(text, problem.pointer)}{problem.problem}") from None


def _text(data: bytes, fault: RepositoryFault) -> str:
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise FileProblem(
            fault, f"the file is no UTF-8 text (byte {data[error.start]:#04x}); save it as UTF-8"
        ) from None
    if is_web_page(text):
        raise FileProblem(fault, "this is a web page; take the address where the files themselves are served")
    return text


def _documents(file: str, text: str, usage: Usage, fault: RepositoryFault) -> list[Any]:
    """The documents of a file that have content."""
    if text.lstrip().startswith("{"):
        # YAML has no pairs of surrogates, with which JSON may write a character.
        with suppress(SourceUndecodable):
            return read_array(file, f"[{text}]", usage)[0]
    try:
        return [root for root in read_stream(file, text, usage).documents if root is not None]
    except SourceUndecodable as error:
        line, column = int(error.metadata["line"]), int(error.metadata["column"])
        raise FileProblem(fault, f"{_shown((line, column))}{error.metadata['problem']}") from None
    except SourceTooLarge as error:
        problem = f"the file exceeds the limit for {error.metadata['bound']} of {int(error.metadata['limit']):,}"
        raise FileProblem(fault, problem) from None


def _place(text: str, pointer: Pointer) -> str:
    return _shown(places(text, [(0, *pointer)]).get((0, *pointer), NOWHERE).place)


def _shown(place: tuple[int, int]) -> str:
    line, column = place
    return f"line {line}, column {column}: " if line else ""
