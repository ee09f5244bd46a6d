"""
The files of a repository that list its packages and their versions (docs/dependencies.md, "Files of a repository").

Texts become trees, and trees texts, in ``services.repositories``; here are the rules.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from typing import Any, NoReturn, Self, TypeVar

from services.kinds.format.fields import described
from services.kinds.format.package_names import is_package_name
from services.kinds.format.timestamp import Timestamp
from services.packages.manifest import (
    API_VERSION,
    MAX_DESCRIPTION_LENGTH,
    MAX_FILES,
    MAX_REQUIREMENTS,
    Manifest,
    Requirement,
    unsafe_path_problem,
)
from services.packages.ranges import Range
from services.packages.versions import ParseProblem, Version

INDEX_KIND = "RepositoryIndex"
VERSIONS_KIND = "PackageVersions"

INDEX_FILE = "index.yaml"
"""Path of the file that lists the packages of a repository."""

PACKAGE_FILE = "package.yaml"
"""Name of the file with the manifest of a version."""

MAX_PACKAGES = 20_000
MAX_VERSIONS = 2_000
MAX_VERSIONS_BYTES = 4 * 1024 * 1024

_DIGEST = re.compile("sha256:[0-9a-f]{64}")

Pointer = tuple[str | int, ...]
"""Leads to a value in the tree of a file."""

_T = TypeVar("_T")

# Versions of a package mostly repeat the ranges of the version before, and packages have versions of the same numbers.
_read_range = lru_cache(maxsize=4096)(Range.parse)
_read_version = lru_cache(maxsize=4096)(Version.parse)


class RepositoryFault(StrEnum):
    """What can be wrong with a repository (docs/dependencies.md, "What is checked")."""

    FILE_MISSING = "FILE_MISSING"
    INDEX_INVALID = "INDEX_INVALID"
    PATH_REFUSED = "PATH_REFUSED"
    DIGEST_MISMATCH = "DIGEST_MISMATCH"
    MANIFEST_MISMATCH = "MANIFEST_MISMATCH"
    PACKAGE_MISSING = "PACKAGE_MISSING"
    VERSION_MISSING = "VERSION_MISSING"
    VERSION_CHANGED = "VERSION_CHANGED"
    TOO_LARGE = "TOO_LARGE"


class IndexProblem(ValueError):
    """
    An index file breaks a rule.

    Attributes:
        fault: The kind of rule.
        pointer: Where.
        problem: What is wrong and what to do, without a full stop.
    """

    def __init__(self, fault: RepositoryFault, pointer: Pointer, problem: str) -> None:
        super().__init__(problem)
        self.fault = fault
        self.pointer = pointer
        self.problem = problem


@dataclass(frozen=True, slots=True)
class ListedPackage:
    """
    A package as the index lists it.

    Attributes:
        name: Its name.
        latest: For listings only: what counts is ``PackageVersions.latest``. None: no release may be installed.
        description: What it is for.
    """

    name: str
    latest: Version | None = None
    description: str = ""


@dataclass(frozen=True, slots=True)
class RepositoryIndex:
    """All packages of a repository, by name."""

    packages: Mapping[str, ListedPackage]


@dataclass(frozen=True, slots=True)
class PublishedVersion:
    """
    A version as its package lists it.

    Attributes:
        version: The version.
        digest: ``services.packages.digests.digest_of`` of its files.
        files: Their paths in the folder of the version, ``PACKAGE_FILE`` among them.
        requires: The packages that it needs, as its manifest says.
        platform: The versions of the planner that will do; None: any.
        created: When it was listed first; None: not known.
        yanked: Why nobody should install it any more; None: it is not yanked.
    """

    version: Version
    digest: str
    files: tuple[str, ...] = (PACKAGE_FILE,)
    requires: tuple[Requirement, ...] = ()
    platform: Range | None = None
    created: datetime | None = None
    yanked: str | None = None


@dataclass(frozen=True, slots=True)
class PackageVersions:
    """
    The versions of one package.

    Attributes:
        name: Its name.
        versions: The versions, in the order of the file.
        latest: The release of an installation that names none; None: no release may be installed.
        is_latest_set: Whether the publisher chose it; else it is ``highest_release`` of the versions.
        removed_versions: Versions that had been listed, and whose folder is gone: should one come back, it is the same.
    """

    name: str
    versions: Mapping[Version, PublishedVersion]
    latest: Version | None = None
    is_latest_set: bool = False
    removed_versions: Mapping[Version, PublishedVersion] = field(default_factory=dict)


def versions_file(name: str) -> str:
    """The path of the file that lists the versions of a package."""
    return f"{name}/versions.yaml"


def version_folder(name: str, version: Version) -> str:
    """The path of the folder of a version."""
    return f"{name}/{version}"


def highest_release(versions: Mapping[Version, PublishedVersion]) -> Version | None:
    """The highest release that is not yanked."""
    return max(
        (each.version for each in versions.values() if each.yanked is None and not each.version.is_prerelease),
        default=None,
    )


def read_index(tree: Any) -> RepositoryIndex:
    """
    Read the tree of an index.

    Raises:
        IndexProblem: The first fault in it.
    """
    root = _root(tree, INDEX_KIND)
    packages: dict[str, ListedPackage] = {}
    for item in root.needed("packages").items("packages", MAX_PACKAGES):
        name = item.name("name")
        if name.value in packages:
            name.refuse(f"the package {name.value!r} is listed twice; make the index anew with `pkger repo index`")
        latest = item.version("latest")
        packages[name.value] = ListedPackage(name.value, _release(latest), item.text("description"))
    return RepositoryIndex(packages)


def read_versions(tree: Any, name: str) -> PackageVersions:
    """
    Read the tree of the file that lists the versions of the package *name*.

    Raises:
        IndexProblem: The first fault in it.
    """
    root = _root(tree, VERSIONS_KIND)
    own_name = root.name("name")
    if own_name.value != name:
        own_name.refuse(f"the file lists versions of {own_name.value!r}, and stands in the folder of {name!r}")
    latest, is_latest_set = root.version("latest"), root.field("latestSet").value is True
    versions = _published_versions(root.needed("versions"), "versions", {})
    removed_versions = _published_versions(root, "removedVersions", versions)
    if latest is not None and latest not in versions:
        root.field("latest").refuse(f"latest is {latest}, which is not among the versions")
    if _release(latest) is None:
        latest, is_latest_set = highest_release(versions), False
    return PackageVersions(name, versions, latest, is_latest_set, removed_versions)


def _release(latest: Version | None) -> Version | None:
    """A latest version as a file names it; None where it is a prerelease, which no installation takes by itself."""
    return None if latest is None or latest.is_prerelease else latest


def _published_versions(
    root: "_Node", key: str, others: Mapping[Version, PublishedVersion]
) -> dict[Version, PublishedVersion]:
    """The versions in a list of a file; none of them is in *others*, its other list."""
    versions: dict[Version, PublishedVersion] = {}
    for item in root.items(key, MAX_VERSIONS):
        published = _published(item)
        if published.version in versions or published.version in others:
            problem = f"the version {published.version} is listed twice; make the file anew with `pkger repo index`"
            item.field("version").refuse(problem)
        versions[published.version] = published
    return versions


def index_tree(index: RepositoryIndex) -> dict[str, Any]:
    """The tree of an index, packages sorted by name."""
    packages = [
        {"name": each.name}
        | ({"latest": each.latest.text} if each.latest else {})
        | ({"description": each.description} if each.description else {})
        for _, each in sorted(index.packages.items())
    ]
    return {"apiVersion": API_VERSION, "kind": INDEX_KIND, "packages": packages}


def versions_tree(package: PackageVersions) -> dict[str, Any]:
    """The tree of the versions of a package, the highest one first."""
    head: dict[str, Any] = {"apiVersion": API_VERSION, "kind": VERSIONS_KIND, "name": package.name}
    if package.latest:
        head["latest"] = package.latest.text
    if package.is_latest_set:
        head["latestSet"] = True
    tree = head | {"versions": _version_trees(package.versions)}
    return tree | ({"removedVersions": _version_trees(package.removed_versions)} if package.removed_versions else {})


def _version_trees(versions: Mapping[Version, PublishedVersion]) -> list[dict[str, Any]]:
    return [_version_tree(versions[each]) for each in sorted(versions)[::-1]]


def _version_tree(published: PublishedVersion) -> dict[str, Any]:
    tree: dict[str, Any] = {
        "version": published.version.text,
        "digest": published.digest,
        "files": list(published.files),
    }
    if published.requires:
        tree["requires"] = [
            {"name": each.name} | ({} if each.range is None else {"version": str(each.range)})
            for each in published.requires
        ]
    if published.platform is not None:
        tree["platform"] = str(published.platform)
    if published.created is not None:
        tree["created"] = published.created.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    if published.yanked is not None:
        tree["yanked"] = {"reason": published.yanked}
    return tree


def identity_problem(manifest: Manifest, name: str, version: Version) -> str:
    """What keeps a manifest from being that of a version, and what to do; empty: nothing."""
    if (manifest.name, manifest.version) != (name, version):
        identity = f"the manifest is of {manifest.name} {manifest.version}, and this is the folder of {name} {version}"
        return f"{identity}; one of the two has to be corrected"
    if PACKAGE_FILE in manifest.files:
        return f"the files of the manifest list {PACKAGE_FILE}, its own file; remove it from them"
    return ""


def manifest_problem(manifest: Manifest, name: str, published: PublishedVersion) -> str:
    """What of a manifest is not as the repository lists the version, and what to do; empty: nothing."""
    if problem := identity_problem(manifest, name, published.version):
        return problem
    listed = {each.name: each.range for each in published.requires}
    different = [
        key
        for key, is_equal in (
            ("requires", {each.name: each.range for each in manifest.requires} == listed),
            ("platform", manifest.platform == published.platform),
            ("files", {PACKAGE_FILE, *manifest.files} == set(published.files)),
        )
        if not is_equal
    ]
    if different:
        return f"{' and '.join(different)} of the manifest differ from {versions_file(name)}; {_MADE_ANEW}"
    return ""


_MADE_ANEW = "the publisher makes that file with `pkger repo index`"


@dataclass(frozen=True, slots=True)
class _Node:
    """A value of the tree, with its place."""

    value: Any
    pointer: Pointer

    def refuse(self, problem: str, fault: RepositoryFault = RepositoryFault.INDEX_INVALID) -> NoReturn:
        raise IndexProblem(fault, self.pointer, problem)

    def field(self, key: str) -> "_Node":
        return _Node(self.value.get(key), (*self.pointer, key))

    def needed(self, key: str) -> Self:
        """The same mapping, in which *key* must not be left out: a file that was cut looks like an empty one."""
        if key not in self.value:
            self.refuse(f"{key} are missing; {_MADE_ANEW}")
        return self

    def items(self, key: str, most: int) -> "list[_Node]":
        """The mappings in a list; none if it is left out."""
        values = self.field(key)
        if values.value is None:
            return []
        if not isinstance(values.value, list):
            values.refuse(f"{key} must be a list; found {described(values.value)}")
        if len(values.value) > most:
            values.refuse(f"{key} are {len(values.value):,}; at most {most:,} are accepted")
        nodes = [_Node(value, (*values.pointer, place)) for place, value in enumerate(values.value)]
        for node in nodes:
            if not isinstance(node.value, dict):
                node.refuse(f"each of {key} must be a mapping; found {described(node.value)}")
        return nodes

    def name(self, key: str) -> "_Node":
        """A field with the name of a package."""
        node = self.field(key)
        if not isinstance(node.value, str) or not is_package_name(node.value):
            node.refuse(f"{key} must be the name of a package, such as base-labels; {_shown(node.value)}")
        return node

    def text(self, key: str, most: int = MAX_DESCRIPTION_LENGTH) -> str:
        """A field with a text; empty if it is left out."""
        node = self.field(key)
        if node.value is None:
            return ""
        if not isinstance(node.value, str):
            node.refuse(f"{key} must be a text; found {described(node.value)}")
        if len(node.value) > most:
            node.refuse(f"{key} has {len(node.value):,} characters; at most {most:,} are accepted")
        return node.value

    def version(self, key: str) -> Version | None:
        """A field with a version; None if it is left out."""
        return self._parsed(key, _read_version, "is no version")

    def range(self, key: str) -> Range | None:
        """A field with a range; None if it is left out."""
        return self._parsed(key, _read_range, "is no range of versions")

    def _parsed(self, key: str, parse: Callable[[str], _T], none: str) -> _T | None:
        node = self.field(key)
        if node.value is None:
            return None
        if not isinstance(node.value, str):
            node.refuse(f"{key} must be a text in quotes; found {described(node.value)}")
        try:
            return parse(node.value)
        except ParseProblem as problem:
            place = f"at position {problem.position}"
            node.refuse(f"{key} {node.value[:80]!r} {none}: {problem.text}, {place}; {problem.remedy}")


def _shown(value: Any) -> str:
    return "it is missing" if value is None else f"found {described(value)}"


def _root(tree: Any, kind: str) -> _Node:
    """The root of a file of *kind*."""
    root = _Node(tree, ())
    if not isinstance(tree, dict):
        root.refuse(f"the file must be a mapping with kind {kind}; {_shown(tree)}")
    for key, value in (("apiVersion", API_VERSION), ("kind", kind)):
        field = root.field(key)
        if field.value != value:
            field.refuse(f"{key} must be {value}; {_shown(field.value)}")
    return root


def _published(item: _Node) -> PublishedVersion:
    version = item.version("version")
    if version is None:
        item.field("version").refuse("each of versions needs a version, such as 1.0.0")
    return PublishedVersion(
        version=version,
        digest=_digest(item.field("digest")),
        files=_files(item.field("files")),
        requires=_requirements(item),
        platform=item.range("platform"),
        created=_created(item.field("created")),
        yanked=_yanked(item.field("yanked")),
    )


def _digest(node: _Node) -> str:
    if not isinstance(node.value, str) or not _DIGEST.fullmatch(node.value):
        node.refuse(f"digest must be sha256: and 64 hexadecimal digits; {_shown(node.value)}")
    return node.value


def _files(node: _Node) -> tuple[str, ...]:
    if not isinstance(node.value, list):
        node.refuse(f"files must be a list of paths; {_shown(node.value)}")
    if len(node.value) > 1 + MAX_FILES:
        node.refuse(f"files are {len(node.value):,}; at most {1 + MAX_FILES} are accepted")
    paths: dict[str, None] = {}
    for place, path in enumerate(node.value):
        item = _Node(path, (*node.pointer, place))
        if not isinstance(path, str):
            item.refuse(f"each of files must be a path; found {described(path)}")
        if problem := unsafe_path_problem(path):
            item.refuse(f"the file {path[:80]!r} {problem}", RepositoryFault.PATH_REFUSED)
        if path in paths:
            item.refuse(f"the file {path!r} is listed twice")
        paths[path] = None
    if PACKAGE_FILE not in paths:
        node.refuse(f"files must have {PACKAGE_FILE}, the file of the manifest")
    return tuple(paths)


def _requirements(item: _Node) -> tuple[Requirement, ...]:
    requirements: dict[str, Requirement] = {}
    for each in item.items("requires", MAX_REQUIREMENTS):
        name = each.name("name")
        if name.value in requirements:
            name.refuse(f"the package {name.value!r} is required twice")
        requirements[name.value] = Requirement(name.value, each.range("version"))
    return tuple(requirements.values())


def _created(node: _Node) -> datetime | None:
    if node.value is None:
        return None
    # YAML reads a time without quotes as one.
    text = node.value.rfc3339() if isinstance(node.value, Timestamp) else node.value
    created = _time(text) if isinstance(text, str) else None
    if created is None:
        node.refuse(f"created must be a time such as 2026-11-22T08:00:00Z; found {described(text)}")
    return created


def _time(text: str) -> datetime | None:
    """The time of *text* in UTC; None if it is none, or has no zone."""
    try:
        time = datetime.fromisoformat(text)
        return time.astimezone(UTC) if time.tzinfo else None
    # Some times of other zones are before the first year of UTC, or after its last one.
    except (ValueError, OverflowError):
        return None


def _yanked(node: _Node) -> str | None:
    if node.value is None:
        return None
    if not isinstance(node.value, dict):
        node.refuse(f"yanked must be a mapping with a reason; found {described(node.value)}")
    return node.text("reason")
