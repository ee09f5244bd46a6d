"""The repositories of a store, from which packages are read."""

from dataclasses import dataclass
from typing import NamedTuple, Protocol


@dataclass(frozen=True, slots=True)
class Repository:
    """
    A repository, as stored.

    Attributes:
        name: Its name.
        address: Where its files are.
        priority: The highest one of those that have a package serves it.
        only: Patterns of the names of the packages that it serves; empty: it may serve all.
        is_enabled: Whether packages are read from it.
        create_time: In microseconds since 1970.
        update_time: In microseconds since 1970.
    """

    name: str
    address: str
    priority: int
    only: tuple[str, ...]
    is_enabled: bool
    create_time: int
    update_time: int


class RepositoryChanges(NamedTuple):
    """New values of fields of a repository; None: the field stays as it is."""

    address: str | None = None
    priority: int | None = None
    only: tuple[str, ...] | None = None
    is_enabled: bool | None = None


NO_CHANGES = RepositoryChanges()

RepositoryPlace = tuple[str]
"""The name of a repository: lists are sorted by it."""

START: RepositoryPlace = ("",)
"""Before every repository."""


class RepositoriesReading(Protocol):
    """Read access to repositories."""

    def find(self, name: str) -> Repository | None:
        """Read one repository."""

    def page(self, after: RepositoryPlace, most: int) -> list[Repository]:
        """Read at most *most* repositories after *after*, sorted by name."""


class Repositories(RepositoriesReading, Protocol):
    """Read and write access to repositories."""

    def insert(self, repository: Repository) -> bool:
        """Add a repository; False: the name is taken."""

    def change(self, name: str, changes: RepositoryChanges, now: int) -> Repository | None:
        """
        Change fields of a repository, so that transactions at the same time lose no change of other fields.

        Returns:
            The repository after the change, whose ``update_time`` is *now*, but never earlier than before; None: there
            is no such repository.
        """

    def delete(self, name: str) -> bool:
        """Remove a repository; False: there is none."""
