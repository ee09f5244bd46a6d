"""What a plan of sources leaves to the installation of a package: its manifest, and names in other packages."""

from collections.abc import Iterable

from services.core.model import PackageReference, Violation
from services.kinds.diagnostics import DIAGNOSTICS, Code


def unresolved(references: Iterable[PackageReference]) -> list[Violation]:
    """A violation for each name of an object of another package, at its place."""
    return [_violation(reference) for reference in references]


def _violation(reference: PackageReference) -> Violation:
    name, code = f"{reference.package}.{reference.name}", Code.PACKAGE_NOT_RESOLVED
    reason = (
        f"{name!r} is an object of the package {reference.package!r}, which an apply of files does not resolve;"
        " install this package with `pkger install`"
    )
    severity = DIAGNOSTICS[code].severity
    return Violation(reference.key.kind, reference.path, reason, reference.location, code, severity, reference.end)


def manifest_warning(name: str) -> str:
    """The warning of a plan of files that have the manifest of the package *name*."""
    return f"version and requirements of package {name} are not looked at; install it with `pkger install`"
