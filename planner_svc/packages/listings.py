"""The configured repositories with what their indexes list, and which of them serves a package."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from planner_svc.resolution.model import ConflictCode, PackageRequest, Repository, Request
from planner_svc.resolution.sources import Source, Sources, may_serve
from services.core.errors import PackageNotFound, RepositoryNotFound, RepositoryUnavailable, RequestInvalid
from services.packages.index_files import ListedPackage, PackageVersions, RepositoryIndex


@dataclass(frozen=True, slots=True)
class Listing:
    """
    A configured repository.

    Attributes:
        name: Its name.
        address: Its address.
        priority: The repository with the highest one that lists a package serves it.
        only: Patterns of the packages that it may serve; none: all packages.
        is_enabled: Whether it is read at all.
        index: Its index; None: it was not read.
        problem: Why the index of an enabled repository cannot be read; None: it can.
    """

    name: str
    address: str
    priority: int = 0
    only: tuple[str, ...] = ()
    is_enabled: bool = True
    index: RepositoryIndex | None = None
    problem: str | None = None

    def packages(self) -> list[ListedPackage]:
        """The packages that it serves if no other repository comes first."""
        listed = self.index.packages.values() if self.index else ()
        return [each for each in listed if may_serve(self.only, each.name)]

    def repository(self) -> Repository:
        """The repository as a resolution has it, with a package without versions for each that the index lists."""
        names = self.index.packages if self.index else ()
        return Repository(
            self.name,
            self.priority,
            self.only,
            self.is_enabled,
            self.problem,
            dict.fromkeys(names, _UNREAD),
        )


_UNREAD = PackageVersions("", {})


def serving(listings: Sequence[Listing], package: str, repository: str) -> Listing:
    """
    The repository that serves *package*.

    Args:
        listings: All configured repositories.
        package: Name of the package.
        repository: Name of the one that the request names; empty: none.

    Raises:
        RepositoryNotFound: No repository has that name.
        RequestInvalid: It is disabled, or two of the highest priority have the package.
        RepositoryUnavailable: A repository that comes first cannot be read.
        PackageNotFound: None has the package.
    """
    by_name = {each.name: each for each in listings}
    if repository and repository not in by_name:
        raise RepositoryNotFound(repository)
    if repository and not by_name[repository].is_enabled:
        raise RequestInvalid("repository", f"repository {repository} is disabled; enable it, or name another one")
    request = PackageRequest(package, repository=repository or None)
    source = Sources([each.repository() for each in listings], {}, Request((request,))).of(package)
    if isinstance(source, Source):
        return by_name[source.repository]
    if source.code is ConflictCode.REPOSITORY_UNAVAILABLE:
        raise RepositoryUnavailable(source.repository, by_name[source.repository].problem or "it does not answer")
    if source.code is ConflictCode.AMBIGUOUS_REPOSITORY:
        raise RequestInvalid("repository", source.text)
    raise PackageNotFound(package, source.text)


def matching(listings: Iterable[Listing], text: str) -> list[tuple[Listing, ListedPackage]]:
    """
    The packages whose name or description has *text*, in any case, each with its repository.

    They are sorted by name; of one name, that of the repository with the highest priority is first.
    """
    folded = text.casefold()
    rows = [
        (listing, package)
        for listing in listings
        for package in listing.packages()
        if folded in package.name or folded in package.description.casefold()
    ]
    return sorted(rows, key=lambda row: row_key(*row))


def row_key(listing: Listing, package: ListedPackage) -> tuple[str, int, str]:
    """What the rows of ``matching`` are sorted by."""
    return package.name, -listing.priority, listing.name
