"""Reads what repositories publish: indexes, versions, and the content of a version."""

import asyncio

from pkger.model.v1 import object_pb2
from pkger.parser.v1 import parser_pb2
from pkger.stack.v1 import repository_pb2
from pkger.stack.v1.repository_pb2_grpc import RepositoryServiceStub

from planner_svc.packages.listings import Listing
from planner_svc.repositories.reader import RepositoryReader, RepositorySource, VersionFiles
from services.core.errors import RepositoryInvalid, RepositoryUnavailable, SourceUndecodable
from services.packages.index_files import PACKAGE_FILE, PackageVersions, RepositoryFault
from services.packages.installed import InstalledPackage
from services.packages.versions import Version
from services.rpc.client import Peer
from services.rpc.paging import pages
from services.rpc.parsed_package import ParsedPackage, parse_package
from services.rpc.stack_records import read_header, read_packages
from services.settings import Bounds

INDEXES_AT_ONCE = 8
"""How many repositories one call asks for their indexes at the same time."""

_PAGE = 1000
"""Repositories per page: the maximum (repository.proto)."""


class PackageInputs:
    """Asks the stack service for the configured repositories, these for their files, and the parser for objects."""

    def __init__(self, parser: Peer, stack: Peer, source: RepositorySource) -> None:
        self._parser = parser
        self._stack = stack
        self._source = source

    async def listings(self, refresh: bool, only: str = "") -> list[Listing]:
        """
        All configured repositories, the enabled ones with their indexes, by name.

        Args:
            refresh: Whether to ask the repositories, however fresh the indexes are.
            only: The repository whose index is needed; empty: all of them.
        """
        request = repository_pb2.ListRepositoriesRequest(page_size=_PAGE)
        listed = pages(self._stack, RepositoryServiceStub(self._stack.channel).ListRepositories, request)
        repositories = [each async for page in listed for each in page.repositories]
        at_once = asyncio.Semaphore(INDEXES_AT_ONCE)

        async def listing(repository: repository_pb2.Repository) -> Listing:
            async with at_once:
                return await self._listing(repository, refresh, is_read=only in ("", repository.name))

        return list(await asyncio.gather(*map(listing, repositories)))

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

    async def _listing(self, repository: repository_pb2.Repository, refresh: bool, *, is_read: bool) -> Listing:
        index, problem = None, None
        if repository.enabled and is_read:
            try:
                index = await self._source.reader(repository.name, repository.address).index(refresh)
            except RepositoryInvalid as invalid:
                problem = problem_of(invalid)
            except RepositoryUnavailable as unavailable:
                problem = unavailable.metadata["problem"]
        return Listing(
            repository.name,
            repository.address,
            repository.priority,
            tuple(repository.only),
            repository.enabled,
            index,
            problem,
        )

    def _reader(self, listing: Listing) -> RepositoryReader:
        return self._source.reader(listing.name, listing.address)


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
