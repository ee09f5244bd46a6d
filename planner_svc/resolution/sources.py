"""Which repository serves a package."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from planner_svc.resolution.model import ConflictCode, PackageRequest, Repository, Request
from services.core.text_lists import enumerated, listed
from services.packages.index_files import PackageVersions
from services.packages.installed import InstalledPackage

UNAVAILABLE = (
    ConflictCode.REPOSITORY_UNAVAILABLE,
    ConflictCode.AMBIGUOUS_REPOSITORY,
    ConflictCode.REPOSITORY_UNKNOWN,
    ConflictCode.PACKAGE_NOT_FOUND,
)
"""Why a package cannot be had; of several reasons, the first counts."""

_MAX_NAMES = 10
"""The number of repositories or patterns that a text names, before it counts them."""


@dataclass(frozen=True, slots=True)
class Source:
    """The repository of a package."""

    repository: str
    package: PackageVersions


@dataclass(frozen=True, slots=True)
class NoSource:
    """
    Why a package cannot be had.

    Attributes:
        code: One of ``UNAVAILABLE``.
        text: The reason, for people.
        repository: The repository that cannot be read; else empty.
    """

    code: ConflictCode
    text: str
    repository: str = ""


class Sources:
    """Finds the source of each package, from the same repositories each time."""

    def __init__(
        self, repositories: Iterable[Repository], installed: Mapping[str, InstalledPackage], request: Request
    ) -> None:
        self._repositories = {each.name: each for each in repositories}
        self._by_priority = sorted(self._repositories.values(), key=lambda each: (-each.priority, each.name))
        self._installed = installed
        self._requested: dict[str, PackageRequest] = {
            each.name: each for each in (*request.installs, *request.updates) if each.repository
        }
        self._sources: dict[str, Source | NoSource] = {}

    def of(self, package: str) -> Source | NoSource:
        """The source of *package*."""
        if package not in self._sources:
            self._sources[package] = self._find(package)
        return self._sources[package]

    def needed(self, package: str, unread: Collection[str]) -> list[str]:
        """Those of the *unread* repositories without which it is not clear where *package* comes from; none: it is."""
        request, installed = self._requested.get(package), self._installed.get(package)
        if request or installed:
            named = request.repository if request else installed.repository if installed else None
            return [named] if named and named in unread else []
        serving = (each for each in self._by_priority if each.is_enabled and may_serve(each.only, package))
        for _, equal in groupby(serving, key=lambda each: each.priority):
            repositories = list(equal)
            if pending := [each.name for each in repositories if each.name in unread]:
                return pending
            if any(each.problem is not None or _lists(each, package) for each in repositories):
                return []
        return []

    def silent(self) -> list[str]:
        """The enabled repositories that do not answer, by name."""
        return sorted(each.name for each in self._by_priority if each.is_enabled and each.problem is not None)

    def _find(self, package: str) -> Source | NoSource:
        request, installed = self._requested.get(package), self._installed.get(package)
        if request and request.repository:
            return self._named(package, request.repository)
        if installed:
            if installed.repository is None:
                return NoSource(ConflictCode.PACKAGE_NOT_FOUND, f"{package} was installed from a folder")
            return self._named(package, installed.repository)
        return self._first(package)

    def _named(self, package: str, name: str) -> Source | NoSource:
        repository = self._repositories.get(name)
        if repository is None:
            return NoSource(ConflictCode.REPOSITORY_UNKNOWN, f"repository {name} is not configured")
        if not repository.is_enabled:
            return NoSource(ConflictCode.REPOSITORY_UNKNOWN, f"repository {name} is disabled")
        if repository.problem is not None:
            return _silent(repository)
        if not may_serve(repository.only, package):
            text = f"the patterns of repository {name} leave {package} out: {listed(repository.only, _MAX_NAMES)}"
            return NoSource(ConflictCode.PACKAGE_NOT_FOUND, text)
        return _source(repository, package) if _lists(repository, package) else _nowhere(package, [repository])

    def _first(self, package: str) -> Source | NoSource:
        """The source of a package that no repository is named for: no one takes the place of one that is away."""
        enabled = [each for each in self._by_priority if each.is_enabled]
        serving = [each for each in enabled if may_serve(each.only, package)]
        listing = [each for each in serving if each.problem is None and _lists(each, package)]
        for repository in serving:
            if repository.problem is not None and (not listing or repository.priority >= listing[0].priority):
                return _silent(repository)
        if not listing:
            return _nowhere(package, serving, [each for each in enabled if each not in serving])
        first, *others = [each for each in listing if each.priority == listing[0].priority]
        if others:
            names = [each.name for each in (first, *others)]
            written = enumerated(names) if len(names) <= _MAX_NAMES else listed(names, _MAX_NAMES)
            text = f"{package} is in {written}, which have the same priority"
            text = f"{text}; name one of them, or give them different priorities"
            return NoSource(ConflictCode.AMBIGUOUS_REPOSITORY, text)
        return _source(first, package)


def _lists(repository: Repository, package: str) -> bool:
    return (package in repository.packages or package in repository.faults) and may_serve(repository.only, package)


def _source(repository: Repository, package: str) -> Source | NoSource:
    """The source of a package that *repository* lists: no other one takes its place, if it has a fault there."""
    if fault := repository.faults.get(package):
        text = f"repository {repository.name} has {package} with a fault: {fault}"
        return NoSource(ConflictCode.PACKAGE_NOT_FOUND, text)
    return Source(repository.name, repository.packages[package])


def may_serve(only: Sequence[str], package: str) -> bool:
    """Whether a repository with the patterns *only* may serve *package*."""
    return not only or any(_fits(pattern, package) for pattern in only)


def _fits(pattern: str, package: str) -> bool:
    return package.startswith(pattern[:-1]) if pattern.endswith("*") else package == pattern


def _silent(repository: Repository) -> NoSource:
    text = f"repository {repository.name}"
    text = f"{text} cannot be read: {repository.problem}" if repository.problem else f"{text} does not answer"
    return NoSource(ConflictCode.REPOSITORY_UNAVAILABLE, text, repository.name)


def _nowhere(package: str, repositories: Sequence[Repository], left_out: Sequence[Repository] = ()) -> NoSource:
    notes = [f"asked: {listed([each.name for each in repositories], _MAX_NAMES)}"] if repositories else []
    if left_out:
        notes.append(f"left out by the patterns of: {listed([each.name for each in left_out], _MAX_NAMES)}")
    text = f"no repository has {package} ({'; '.join(notes) or 'none is configured and enabled'})"
    return NoSource(ConflictCode.PACKAGE_NOT_FOUND, text)
