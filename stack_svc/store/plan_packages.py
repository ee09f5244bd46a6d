"""The changes of installed packages that plans make, as stored."""

from typing import Protocol

from stack_svc.store.packages import PackageChanges


class PlanPackagesReading(Protocol):
    """Read access to the changes of packages."""

    def of(self, plan: str) -> PackageChanges:
        """Read the changes that a plan makes."""


class PlanPackages(PlanPackagesReading, Protocol):
    """Read and write access to the changes of packages."""

    def add(self, plan: str, changes: PackageChanges) -> None:
        """Add the changes of a plan that has none; they are removed with it."""
