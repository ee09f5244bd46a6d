"""Reads every package that a request leads to over any number of requirements."""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from planner_svc.packages.indexes import Indexes
from planner_svc.packages.inputs import PackageInputs, problem_of
from planner_svc.packages.listings import Listing
from planner_svc.repositories.memory import memory_of
from planner_svc.resolution.model import Repository, Request
from planner_svc.resolution.sources import Source
from services.core.errors import RepositoryInvalid, RepositoryUnavailable
from services.packages.index_files import PackageVersions
from services.packages.installed import InstalledPackage

MOST_BYTES = 64 * 1024 * 1024
"""Memory of the lists of versions that one resolution reads, about (``memory_of``)."""

WARNING_SECONDS = 2
"""How long a resolution waits for indexes that it does not need, to warn of repositories that do not answer."""


class TooManyVersions(Exception):
    """The packages that a request leads to have more versions than one resolution reads."""


async def reachable(
    inputs: PackageInputs,
    request: Request,
    installed: Mapping[str, InstalledPackage],
    refresh: bool,
    *,
    staying: Collection[str] = (),
    folders: Sequence[Repository] = (),
    max_bytes: int = MOST_BYTES,
    warning_seconds: float = WARNING_SECONDS,
) -> list[Repository]:
    """
    All repositories, with every package that *request* and the installed packages lead to.

    A package is read from the repository that serves it and from no other one; a faulty list of versions is a fault of
    that package. What a repository that does not answer has is missing. A repository that serves nothing here is waited
    for only for a moment, so that an answer can warn of it.

    Args:
        inputs: Reads repositories.
        request: What is to change.
        installed: The installed packages, by name.
        refresh: Whether to ask the repositories, however fresh their index files are.
        staying: The installed packages that keep their version, so they are not read.
        folders: Further repositories, with all of their packages.
        max_bytes: Most memory of what is read.
        warning_seconds: The time that repositories have of which nothing is needed.

    Raises:
        TooManyVersions: It would take more.
    """
    async with inputs.indexes(refresh) as indexes:
        reading = _Reading(inputs, indexes, request, installed, refresh, max_bytes)
        names = await reading.read(staying, folders)
        await indexes.wait(warning_seconds)
        return [*reading.repositories(names), *folders]


class _Reading:
    """The packages that were read so far. Those that the same packages require are read at the same time."""

    def __init__(
        self,
        inputs: PackageInputs,
        indexes: Indexes,
        request: Request,
        installed: Mapping[str, InstalledPackage],
        refresh: bool,
        max_bytes: int,
    ) -> None:
        self._inputs = inputs
        self._indexes = indexes
        self._request = request
        self._installed = installed
        self._refresh = refresh
        self._packages: defaultdict[str, dict[str, PackageVersions]] = defaultdict(dict)
        self._faults: defaultdict[str, dict[str, str]] = defaultdict(dict)
        self._problems: dict[str, str] = {}
        self._bytes_left = max_bytes

    async def read(self, staying: Collection[str], folders: Sequence[Repository]) -> set[str]:
        """Read the packages that are met, but for those that are *staying*; all their names."""
        names = {each.name for each in (*self._request.installs, *self._request.updates)} | self._installed.keys()
        names |= _required(package for folder in folders for package in folder.packages.values())
        new, read = names - set(staying), set[str]()
        while new:
            read |= new
            sources = await self._indexes.sources(new, self._request, self._installed, folders)
            listings = {each.name: each for each in self._indexes.listings}
            named = [(name, sources.of(name)) for name in sorted(new)]
            served = [
                (name, listings[source.repository])
                for name, source in named
                if isinstance(source, Source) and source.repository in listings
            ]
            packages = await asyncio.gather(*(self._read(name, listing) for name, listing in served))
            if self._bytes_left < 0:
                raise TooManyVersions
            # What stays is met where a package that is read requires it. It leads no further.
            new = _required(each for each in packages if each.name not in staying) - read
            names |= new
        return names

    def repositories(self, names: Collection[str]) -> list[Repository]:
        """The repositories, with the packages of *names* that were read."""
        return [self._repository(each.repository(), names) for each in self._indexes.listings]

    async def _read(self, package: str, listing: Listing) -> PackageVersions:
        """The versions of a package; none if they cannot be read, or too much was read already."""
        unread, repository = PackageVersions(package, {}), listing.name
        if self._bytes_left < 0 or repository in self._problems:
            return unread
        try:
            versions = await self._inputs.versions(listing, package, self._refresh)
        except RepositoryInvalid as invalid:
            self._faults[repository][package] = problem_of(invalid)
            return unread
        except RepositoryUnavailable as unavailable:
            self._problems.setdefault(repository, unavailable.metadata["problem"])
            return unread
        self._bytes_left -= memory_of(versions)
        self._packages[repository][package] = versions
        return versions

    def _repository(self, unread: Repository, names: Iterable[str]) -> Repository:
        """A repository with what was read of it, and without versions the packages that another one serves."""
        faults, packages = self._faults[unread.name], self._packages[unread.name]
        listed = {name: unread.packages[name] for name in names if name in unread.packages and name not in faults}
        return Repository(
            unread.name,
            unread.priority,
            unread.only,
            unread.is_enabled,
            self._problems.get(unread.name, unread.problem),
            listed | packages,
            faults,
        )


def _required(packages: Iterable[PackageVersions]) -> set[str]:
    """The packages that versions of *packages* require."""
    return {each.name for package in packages for version in package.versions.values() for each in version.requires}
