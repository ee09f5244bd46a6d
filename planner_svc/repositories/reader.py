"""Reads what a repository publishes, and checks it (docs/dependencies.md, "What is checked")."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Self
from weakref import WeakValueDictionary

from planner_svc.repositories.index_cache import IndexCache
from planner_svc.repositories.transport import Transport, Unavailable, transport_of
from services.core.errors import RepositoryInvalid, RepositoryUnavailable
from services.fetching import Fetcher
from services.packages.digests import digest_of
from services.packages.index_files import (
    INDEX_FILE,
    MAX_VERSIONS_BYTES,
    PACKAGE_FILE,
    PackageVersions,
    PublishedVersion,
    RepositoryFault,
    RepositoryIndex,
    manifest_problem,
    version_folder,
    versions_file,
)
from services.packages.manifest import Manifest
from services.packages.versions import Version
from services.repositories.file_problem import FileProblem, files_too_large
from services.repositories.texts import index_of, manifest_of, versions_of
from services.settings import MAX_INDEX_BYTES, Bounds, Settings


class VersionFiles(NamedTuple):
    """
    A version that was fetched and checked.

    Attributes:
        published: As its package lists it.
        manifest: Its manifest.
        files: Its files by path in its folder: what was hashed.
    """

    published: PublishedVersion
    manifest: Manifest
    files: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class RepositorySource:
    """
    Where to read repositories, within the limits that the operator sets.

    Attributes:
        folders: The folders below which repositories may be; None: anywhere.
        fetcher: Fetches files at http and https addresses.
        bounds: The limits of the files of one version.
        max_index_bytes: Greatest size of the index of a repository.
        cache: The index files that were read.
    """

    folders: Sequence[Path] | None = ()
    fetcher: Fetcher = field(default_factory=Fetcher)
    bounds: Bounds = field(default_factory=Bounds)
    max_index_bytes: int = MAX_INDEX_BYTES
    cache: IndexCache = field(default_factory=IndexCache)
    # Calls share the transport of a repository, which bounds the requests at the same time.
    _transports: WeakValueDictionary[str, Transport] = field(default_factory=WeakValueDictionary, init=False)

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """The source that the settings describe."""
        fetcher = Fetcher(may_ask=lambda _: True) if settings.allow_private_addresses else Fetcher()
        return cls(settings.repository_folders, fetcher, settings.bounds, settings.max_index_bytes)

    def reader(self, name: str, address: str) -> "RepositoryReader":
        """
        The reader of a repository.

        Raises:
            RepositoryUnavailable: The address is refused.
        """
        transport = self._transports.get(address)
        if transport is None:
            try:
                transport = transport_of(address, self.folders, self.fetcher)
            except Unavailable as error:
                raise RepositoryUnavailable(name, str(error)) from None
            self._transports[address] = transport
        return RepositoryReader(name, address, transport, self)


@dataclass(frozen=True, slots=True)
class RepositoryReader:
    """
    Reads one repository. Every method raises the first fault that it meets.

    Attributes:
        name: Name of the repository, for errors.
        address: Its address.
        transport: Fetches its files.
        source: Limits and cache.
    """

    name: str
    address: str
    transport: Transport
    source: RepositorySource

    async def index(self, refresh: bool = False) -> RepositoryIndex:
        """
        All packages.

        Args:
            refresh: Whether to ask the repository, however fresh the index is.

        Raises:
            RepositoryInvalid: The index breaks a rule.
            RepositoryUnavailable: The repository does not answer.
        """
        limit = self.source.max_index_bytes
        async with self._faults_of(INDEX_FILE):
            return await self.source.cache.read(
                self.address, INDEX_FILE, self.transport, limit, lambda data: index_of(data, limit), refresh
            )

    async def versions(self, package: str, refresh: bool = False) -> PackageVersions:
        """
        The versions of a package.

        Raises:
            RepositoryInvalid: The index, or the list of versions, breaks a rule, or the package is not listed.
            RepositoryUnavailable: The repository does not answer.
        """
        index = await self.index(refresh)
        if package not in index.packages:
            problem = f"the repository has no package {package[:80]!r}; check the name"
            raise self._invalid(INDEX_FILE, RepositoryFault.PACKAGE_MISSING, problem)
        return await self.listed_versions(package, refresh)

    async def listed_versions(self, package: str, refresh: bool = False) -> PackageVersions:
        """
        The versions of a package that the index lists.

        Raises:
            RepositoryInvalid: The list of versions breaks a rule.
            RepositoryUnavailable: The repository does not answer.
        """
        path = versions_file(package)
        async with self._faults_of(path):
            return await self.source.cache.read(
                self.address, path, self.transport, MAX_VERSIONS_BYTES, lambda data: versions_of(data, package), refresh
            )

    async def version(
        self, package: str, version: Version, recorded_digest: str = "", refresh: bool = False
    ) -> VersionFiles:
        """
        The files of a version.

        Args:
            package: Name of the package.
            version: The version.
            recorded_digest: The digest that the version had before; empty: not known.
            refresh: Whether to ask for the index files, however fresh they are.

        Raises:
            RepositoryInvalid: Anything breaks a rule; then nothing of the content is used.
            RepositoryUnavailable: The repository does not answer.
        """
        published = (await self.versions(package, refresh)).versions.get(version)
        if published is None:
            problem = f"{package} has no version {version}; check the version"
            raise self._invalid(versions_file(package), RepositoryFault.VERSION_MISSING, problem)
        if recorded_digest not in ("", published.digest):
            problem = f"{version} is published with the digest {published.digest}, and had {recorded_digest} before"
            remedy = "the publisher has to restore it, and to publish other content as another version"
            raise self._invalid(versions_file(package), RepositoryFault.VERSION_CHANGED, f"{problem}; {remedy}")
        files = await self._files(package, published)
        path = f"{version_folder(package, version)}/{PACKAGE_FILE}"
        digest = digest_of(files)
        if digest != published.digest:
            problem = f"the files of {version} have the digest {digest}, and not {published.digest} as published"
            remedy = "nothing of them is used; the publisher has to restore them"
            raise self._invalid(path, RepositoryFault.DIGEST_MISMATCH, f"{problem}; {remedy}")
        async with self._faults_of(path):
            manifest = manifest_of(files[PACKAGE_FILE], self.source.bounds)
        if problem := manifest_problem(manifest, package, published):
            raise self._invalid(path, RepositoryFault.MANIFEST_MISMATCH, problem)
        return VersionFiles(published, manifest, files)

    async def _files(self, package: str, published: PublishedVersion) -> dict[str, bytes]:
        """The files of a version, one by one: the first that is missing is told, and no more is fetched."""
        left = self.source.bounds.bytes
        files: dict[str, bytes] = {}
        for each in published.files:
            path = f"{version_folder(package, published.version)}/{each}"
            async with self._faults_of(path):
                files[each] = await self._fetch(path, left)
            left -= len(files[each])
        return files

    async def _fetch(self, path: str, max_bytes: int) -> bytes:
        """The bytes of a file of a version."""
        try:
            content = await self.transport.fetch(path, max_bytes)
        except FileProblem as problem:
            if problem.fault is not RepositoryFault.TOO_LARGE:
                raise
            raise FileProblem(problem.fault, files_too_large(self.source.bounds.bytes)) from None
        return content.data or b""

    @asynccontextmanager
    async def _faults_of(self, path: str) -> AsyncIterator[None]:
        """Add the repository and the path of the file to its faults."""
        try:
            yield
        except FileProblem as problem:
            raise self._invalid(path, problem.fault, problem.problem) from None
        except Unavailable as error:
            raise RepositoryUnavailable(self.name, str(error)) from None

    def _invalid(self, file: str, fault: RepositoryFault, problem: str) -> RepositoryInvalid:
        return RepositoryInvalid(self.name, file, fault, problem)
