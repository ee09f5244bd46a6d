"""Reads what repositories publish: indexes, versions, and the content of a version."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

from pkger.model.v1 import object_pb2
from pkger.parser.v1 import parser_pb2
from pkger.stack.v1 import repository_pb2
from pkger.stack.v1.repository_pb2_grpc import RepositoryServiceStub

from planner_svc.packages.indexes import Indexes, indexes_of
from planner_svc.packages.listings import Listing, serving
from planner_svc.repositories.reader import RepositoryReader, RepositorySource, VersionFiles
from planner_svc.resolution.model import PackageRequest, Request
from planner_svc.resolution.sources import may_serve
from services.core.errors import RepositoryInvalid, RepositoryUnavailable, SourceUndecodable
from services.packages.index_files import PACKAGE_FILE, PackageVersions, RepositoryFault
from services.packages.installed import InstalledPackage
from services.packages.versions import Version
from services.rpc.client import Peer
from services.rpc.paging import pages
from services.rpc.parsed_package import ParsedPackage, parse_package
from services.rpc.stack_records import read_header, read_packages
from services.settings import Bounds

SEARCH_SECONDS = 5
"""How long a search waits for indexes; what needs an index waits for its request (``REQUEST_SECONDS``)."""

_PAGE = 1000
"""Repositories per page: the maximum (repository.proto)."""


class PackageInputs:
    """Asks the stack service for the configured repositories, these for their files, and the parser for objects."""

    def __init__(self, parser: Peer, stack: Peer, source: RepositorySource) -> None:
        self._parser = parser
        self._stack = stack
        self._source = source

    async def configured(self) -> list[Listing]:
        """All configured repositories, without their indexes, by name."""
        request = repository_pb2.ListRepositoriesRequest(page_size=_PAGE)
        listed = pages(self._stack, RepositoryServiceStub(self._stack.channel).ListRepositories, request)
        return [_configured(each) async for page in listed for each in page.repositories]

    async def listings(self, refresh: bool, seconds: float = SEARCH_SECONDS) -> list[Listing]:
        """
        All configured repositories, the enabled ones with their indexes, by name.

        One that does not answer in time has a problem.

        Args:
            refresh: Whether to ask the repositories, however fresh the indexes are.
            seconds: The time that they have.
        """
        async with self.indexes(refresh) as indexes:
            await indexes.wait(seconds)
            return indexes.listings

    async def serving(self, package: str, repository: str, refresh: bool) -> Listing:
        """
        The repository that serves *package*; those are read of which that depends.

        Args:
            package: Name of the package.
            repository: Name of the repository that the request names; empty: none.
            refresh: Whether to ask the repositories, however fresh the indexes are.

        Raises:
            PkgerError: As ``planner_svc.packages.listings.serving``.
        """
        request = Request((PackageRequest(package, repository=repository or None),))

        def is_candidate(listing: Listing) -> bool:
            return listing.name == repository if repository else may_serve(listing.only, package)

        async with self.indexes(refresh, is_candidate) as indexes:
            await indexes.sources([package], request, {})
            return serving(indexes.listings, package, repository)

    @asynccontextmanager
    async def indexes(
        self, refresh: bool, is_candidate: Callable[[Listing], bool] = lambda _: True
    ) -> AsyncIterator[Indexes]:
        """
        All configured repositories while their indexes are read, which ends with the block.

        Args:
            refresh: Whether to ask the repositories, however fresh the indexes are.
            is_candidate: Whether a repository may be needed; others are not read.
        """
        configured = await self.configured()
        async with indexes_of(configured, lambda listing: self._with_index(listing, refresh), is_candidate) as indexes:
            yield indexes

    @property
    def bounds(self) -> Bounds:
        """The limits of the files of a package."""
        return self._source.bounds

    async def installed(self, stack: object_pb2.StackRef) -> list[InstalledPackage]:
        """
        The packages of a stack, by name.

        Raises:
            StackNotFound: There is none.
            StackMoved: It changed while they were read.
        """
        return await read_packages(self._stack, await read_header(self._stack, stack))

    async def versions(self, listing: Listing, package: str, refresh: bool) -> PackageVersions:
        """
        The versions of a package that *listing* lists.

        Raises:
            RepositoryInvalid: The list of versions breaks a rule.
            RepositoryUnavailable: The repository does not answer.
        """
        return await self._reader(listing).listed_versions(package, refresh)

    async def files(self, listing: Listing, package: str, version: Version, recorded_digest: str = "") -> VersionFiles:
        """
        The files of a version that *listing* lists, checked.

        If the repository was just published anew, its index files are read once more.

        Args:
            listing: The repository.
            package: Name of the package.
            version: The version.
            recorded_digest: The digest that the version has to have; empty: any.

        Raises:
            RepositoryInvalid: Anything breaks a rule.
            RepositoryUnavailable: The repository does not answer.
        """
        reader = self._reader(listing)
        try:
            return await reader.version(package, version, recorded_digest)
        except RepositoryInvalid as invalid:
            if invalid.metadata["fault"] not in _FAULTS_OF_CHANGES:
                raise
        return await reader.version(package, version, recorded_digest, refresh=True)

    async def parsed(self, package: str, files: VersionFiles) -> ParsedPackage:
        """
        The objects of a version, or its violations; its files are called ``NAME@VERSION/FILE``.

        Raises:
            PkgerError: A file cannot be decoded.
        """
        request = parser_pb2.ParsePackageRequest(
            sources=_sources(f"{package}@{files.published.version}", files),
            view=[parser_pb2.PACKAGE_VIEW_OBJECTS],
            allow_empty=True,
        )
        return await parse_package(self._parser, request)

    async def _with_index(self, listing: Listing, refresh: bool) -> Listing:
        try:
            return replace(listing, index=await self._reader(listing).index(refresh))
        except RepositoryInvalid as invalid:
            return replace(listing, problem=problem_of(invalid))
        except RepositoryUnavailable as unavailable:
            return replace(listing, problem=unavailable.metadata["problem"])

    def _reader(self, listing: Listing) -> RepositoryReader:
        return self._source.reader(listing.name, listing.address)


def _configured(repository: repository_pb2.Repository) -> Listing:
    only = tuple(repository.only)
    return Listing(repository.name, repository.address, repository.priority, only, repository.enabled)


_FAULTS_OF_CHANGES = (
    RepositoryFault.DIGEST_MISMATCH,
    RepositoryFault.FILE_MISSING,
    RepositoryFault.MANIFEST_MISMATCH,
    RepositoryFault.VERSION_CHANGED,
    RepositoryFault.VERSION_MISSING,
)
"""What a reader may meet whose list of versions is older than the files."""


def problem_of(invalid: RepositoryInvalid) -> str:
    """What is wrong with a file of a repository, for a sentence that names the repository."""
    return f"{invalid.metadata['file']}: {invalid.metadata['problem']}"


def _sources(folder: str, files: VersionFiles) -> list[parser_pb2.Source]:
    sources = []
    for path in (PACKAGE_FILE, *files.manifest.files):
        name = f"{folder}/{path}"
        try:
            sources.append(parser_pb2.Source(name=name, text=files.files[path].decode()))
        except UnicodeDecodeError as error:
            raise SourceUndecodable(name, f"is no UTF-8 (byte {error.start}); save it as UTF-8") from None
    return sources
