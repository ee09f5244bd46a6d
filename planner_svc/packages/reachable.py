"""Reads every package that a request leads to over any number of requirements."""

import asyncio
from collections.abc import Iterable

from planner_svc.packages.inputs import PackageInputs, problem_of
from planner_svc.packages.listings import Listing
from planner_svc.repositories.memory import memory_of
from planner_svc.resolution.model import Repository, Request
from planner_svc.resolution.sources import Source, Sources
from services.core.errors import RepositoryInvalid, RepositoryUnavailable
from services.packages.index_files import PackageVersions

MOST_BYTES = 64 * 1024 * 1024
"""Memory of the lists of versions that one resolution reads, about (``memory_of``)."""


class TooManyVersions(Exception):
    """The packages that a request leads to have more versions than one resolution reads."""


async def reachable(
    inputs: PackageInputs, request: Request, refresh: bool, max_bytes: int = MOST_BYTES
) -> list[Repository]:
    """
    All repositories, with every package that *request* leads to.

    A package is read from the repository that serves it and from no other one; a faulty list of versions is a fault of
    that package. What a repository that does not answer has is missing.

    Args:
        inputs: Reads repositories.
        request: The packages to install.
        refresh: Whether to ask the repositories, however fresh their index files are.
        max_bytes: Most memory of what is read.

    Raises:
        TooManyVersions: It would take more.
    """
    return await _Reading(inputs, await inputs.listings(refresh), request, refresh, max_bytes).repositories()


class _Reading:
    """The packages that were read so far. Those that the same packages require are read at the same time."""

    def __init__(
        self, inputs: PackageInputs, listings: Iterable[Listing], request: Request, refresh: bool, max_bytes: int
    ) -> None:
        self._inputs = inputs
        self._listings = {each.name: each for each in listings}
        self._unread = {name: each.repository() for name, each in self._listings.items()}
        self._request = request
        self._refresh = refresh
        self._packages: dict[str, dict[str, PackageVersions]] = {name: {} for name in self._listings}
        self._faults: dict[str, dict[str, str]] = {name: {} for name in self._listings}
        self._problems: dict[str, str] = {}
        self._bytes_left = max_bytes

    async def repositories(self) -> list[Repository]:
        """The repositories, with the packages that were met."""
        sources = Sources(self._unread.values(), {}, self._request)
        names = {each.name for each in self._request.installs}
        new = set(names)
        while new:
            named = [(name, sources.of(name)) for name in sorted(new)]
            served = [(name, source.repository) for name, source in named if isinstance(source, Source)]
            packages = await asyncio.gather(*(self._read(name, repository) for name, repository in served))
            if self._bytes_left < 0:
                raise TooManyVersions
            versions = [version for package in packages for version in package.versions.values()]
            new = {required.name for version in versions for required in version.requires} - names
            names |= new
        return [self._repository(each, names) for each in self._unread.values()]

    async def _read(self, package: str, repository: str) -> PackageVersions:
        """The versions of a package; none if they cannot be read, or too much was read already."""
        unread = PackageVersions(package, {})
        if self._bytes_left < 0 or repository in self._problems:
            return unread
        try:
            versions = await self._inputs.versions(self._listings[repository], package, self._refresh)
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
