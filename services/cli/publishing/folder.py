"""The packages in the folder of a repository, each version parsed as a whole."""

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from pkger.model.v1 import object_pb2
from pkger.parser.v1 import parser_pb2

from services.cli.errors import CommandFailed
from services.cli.packages.parser import Parser
from services.core.errors import PkgerError
from services.kinds.format.package_names import is_package_name
from services.kinds.registry import KINDS, family_named
from services.packages.digests import digest_of
from services.packages.index_files import (
    INDEX_FILE,
    MAX_VERSIONS_BYTES,
    PACKAGE_FILE,
    PackageVersions,
    RepositoryFault,
    identity_problem,
    version_folder,
    versions_file,
)
from services.packages.manifest import Manifest
from services.packages.publishing import Contents, Finding, ObjectName, Reference, VersionContent
from services.packages.versions import ParseProblem, Version
from services.repositories.file_problem import FileProblem, files_too_large
from services.repositories.folders import read_file
from services.repositories.texts import index_of, manifest_of, versions_of
from services.settings import Settings

_VIEWS = [parser_pb2.PACKAGE_VIEW_OBJECTS, parser_pb2.PACKAGE_VIEW_WARNINGS]


class FolderContents(NamedTuple):
    """The packages of a folder, with what is wrong in each."""

    contents: Contents
    findings: list[Finding]


class VersionsBefore(NamedTuple):
    """
    What the index files list.

    Attributes:
        packages: The versions that they list, by package.
        findings: What is wrong in each file.
        listed: The packages of the index.
    """

    packages: Mapping[str, PackageVersions]
    findings: list[Finding]
    listed: Collection[str] = ()


class _PathFault(Exception):
    """
    A file cannot be used.

    Attributes:
        finding: Why.
        text: The text of the file, if its manifest breaks a rule; else empty.
    """

    def __init__(self, finding: Finding, text: str = "") -> None:
        super().__init__(finding.text)
        self.finding = finding
        self.text = text


async def read_folder(root: Path, parser: Parser, settings: Settings) -> FolderContents:
    """
    Read and parse all versions in a folder.

    Raises:
        CommandFailed: The folder cannot be read.
        PkgerError: The parser does not answer.
    """
    contents: dict[str, dict[Version, VersionContent]] = {}
    findings: list[Finding] = []
    for name, folder in _version_folders(root):
        try:
            version = _version_of(name, folder)
            manifest, files = _files(root, name, version, settings)
        except _PathFault as fault:
            findings += await _mistakes(parser, fault) or [fault.finding]
            continue
        content = await _parsed(parser, manifest, files, findings)
        if content:
            contents.setdefault(name, {})[version] = content
    return FolderContents(contents, findings)


def versions_before(root: Path, max_index_bytes: int) -> VersionsBefore:
    """
    What the index files of the folder list now.

    Files that list nothing of the kind, such as an ``index.yaml`` for another purpose, must not be replaced.

    Args:
        root: The folder.
        max_index_bytes: Greatest size of its index.
    """
    packages: dict[str, PackageVersions] = {}
    findings: list[Finding] = []
    for name in [each for each in _names(root) if is_package_name(each)]:
        path = versions_file(name)
        try:
            packages[name] = versions_of(read_file(root, path, MAX_VERSIONS_BYTES), name)
        except FileProblem as problem:
            findings += _unless_missing(path, problem)
    listed: Collection[str] = ()
    try:
        listed = index_of(read_file(root, INDEX_FILE, max_index_bytes), max_index_bytes).packages.keys()
    except FileProblem as problem:
        findings += _unless_missing(INDEX_FILE, problem)
    return VersionsBefore(packages, findings, listed)


def _unless_missing(path: str, problem: FileProblem) -> Iterator[Finding]:
    if problem.fault is not RepositoryFault.FILE_MISSING:
        yield Finding(path, f"{problem.problem}; correct the file, or move it away to have it made anew")


def _names(folder: Path) -> list[str]:
    """The folders in a folder, sorted, without hidden ones."""
    try:
        return sorted(each.name for each in folder.iterdir() if each.is_dir() and not each.name.startswith("."))
    except OSError as error:
        raise CommandFailed(f"{folder}: {error.strerror or error}; name the folder of a repository") from error


def _version_folders(root: Path) -> Iterator[tuple[str, str]]:
    """The names of packages and the folders of their versions; other folders may hold anything."""
    for name in _names(root):
        for folder in _names(root / name):
            if (root / name / folder / PACKAGE_FILE).exists() or (is_package_name(name) and _is_version(folder)):
                yield name, folder


def _is_version(text: str) -> bool:
    try:
        Version.parse(text)
    except ParseProblem:
        return False
    return True


def _version_of(name: str, folder: str) -> Version:
    """The version that a folder is for."""
    place = f"{name}/{folder}"
    if not is_package_name(name):
        text = f"{name!r} is no name of a package; name the folder as the manifest names the package"
        raise _PathFault(Finding(place, text))
    try:
        version = Version.parse(folder)
    except ParseProblem as problem:
        text = f"{folder!r} is no version: {problem.text}; name the folder as the version of its manifest"
        raise _PathFault(Finding(place, text)) from None
    if version.text != folder:
        raise _PathFault(Finding(place, f"the folder of a version is named without v; name it {version}"))
    return version


def _files(root: Path, name: str, version: Version, settings: Settings) -> tuple[Manifest, dict[str, bytes]]:
    """The manifest and the files of a version."""
    folder = version_folder(name, version)
    left = settings.bounds.bytes

    def read(path: str) -> bytes:
        nonlocal left
        try:
            data = read_file(root, f"{folder}/{path}", left)
        except FileProblem as problem:
            is_large = problem.fault is RepositoryFault.TOO_LARGE
            text = files_too_large(settings.bounds.bytes) if is_large else problem.problem
            raise _PathFault(Finding(f"{folder}/{path}", text)) from None
        except OSError as error:
            raise _PathFault(Finding(f"{folder}/{path}", f"{error.strerror or error}")) from None
        left -= len(data)
        return data

    files = {PACKAGE_FILE: read(PACKAGE_FILE)}
    place = f"{folder}/{PACKAGE_FILE}"
    try:
        manifest = manifest_of(files[PACKAGE_FILE], settings.bounds)
    except FileProblem as problem:
        raise _PathFault(Finding(place, problem.problem), files[PACKAGE_FILE].decode(errors="replace")) from None
    if mismatch := identity_problem(manifest, name, version):
        raise _PathFault(Finding(place, mismatch))
    files |= {path: read(path) for path in manifest.files}
    return manifest, files


async def _mistakes(parser: Parser, fault: _PathFault) -> list[Finding]:
    """All mistakes in a file whose manifest has one, at their places; none where the parser finds none."""
    if not fault.text:
        return []
    source = parser_pb2.Source(name=fault.finding.place, text=fault.text)
    try:
        package = await parser.parse(parser_pb2.ParsePackageRequest(sources=[source], allow_empty=True))
    except PkgerError as error:
        if "source" not in error.metadata:
            raise
        return []
    return [Finding(_place(each), each.reason) for each in package.violations]


async def _parsed(
    parser: Parser, manifest: Manifest, files: Mapping[str, bytes], findings: list[Finding]
) -> VersionContent | None:
    """The content of a version; None if the parser refuses it."""
    folder = version_folder(manifest.name, manifest.version)
    sources = []
    for path, data in files.items():
        try:
            sources.append(parser_pb2.Source(name=f"{folder}/{path}", text=data.decode()))
        except UnicodeDecodeError as error:
            text = f"the file is no UTF-8 text (byte {data[error.start]:#04x}); save it as UTF-8"
            findings.append(Finding(f"{folder}/{path}", text))
            return None
    request = parser_pb2.ParsePackageRequest(sources=sources, view=_VIEWS, allow_empty=True)
    try:
        package = await parser.parse(request)
    except PkgerError as error:
        if "source" not in error.metadata:
            raise
        findings.append(Finding(_place_of_error(error), error.metadata.get("problem") or str(error)))
        return None
    findings += [Finding(_place(each), each.reason, is_error=False) for each in package.warnings]
    findings += [Finding(_place(each), each.reason) for each in package.violations]
    if package.violations:
        return None
    return VersionContent(
        manifest,
        digest_of(files),
        frozenset(ObjectName(KINDS[each.key.kind].family, each.key.name) for each in package.objects),
        tuple(map(_reference, package.package_references)),
    )


def _reference(reference: parser_pb2.PackageReference) -> Reference:
    family = family_named(reference.key.kind, reference.path)
    return Reference(_located(reference.location), reference.package, ObjectName(family, reference.name))


def _place(violation: object_pb2.Violation) -> str:
    return _located(violation.location)


def _located(location: object_pb2.Location) -> str:
    return f"{location.source}:{location.line}:{location.column}" if location.line else location.source


def _place_of_error(error: PkgerError) -> str:
    source, line, column = (error.metadata.get(key, "0") for key in ("source", "line", "column"))
    return f"{source}:{line}:{column}" if line != "0" else source
