"""The installed packages of stacks, as stored."""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from services.packages.installed import InstalledPackage

PackageChanges = Mapping[str, InstalledPackage | None]
"""What becomes of packages, by name; None: the package is removed."""

PackagePlace = tuple[str]
"""The name of a package: lists are sorted by it."""

START: PackagePlace = ("",)
"""Before every package."""


class PackageUser(NamedTuple):
    """
    A stack with a package.

    Attributes:
        package: The package.
        stack: Id of the stack.
        stack_name: Name of the stack; may be empty.
    """

    package: str
    stack: str
    stack_name: str


class PackagesReading(Protocol):
    """Read access to installed packages."""

    def page(self, stack: str, after: PackagePlace, most: int) -> list[InstalledPackage]:
        """Read at most *most* packages of a stack after *after*, sorted by name."""

    def users_of(self, repository: str, most: int) -> list[PackageUser]:
        """Read at most *most* of the stacks with packages from *repository*, sorted by package and id of the stack."""


class Packages(PackagesReading, Protocol):
    """Read and write access to installed packages."""

    def change(self, stack: str, changes: PackageChanges) -> None:
        """Write *changes*; other packages of the stack stay as they are."""
