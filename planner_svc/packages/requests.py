"""The names and ranges of requests about packages."""

from collections.abc import Iterable

from pkger.planner.v1 import package_pb2

from planner_svc.resolution.model import PackageRequest, Request
from services.core.errors import RangeInvalid, RequestInvalid
from services.core.limits import MOST_PACKAGES
from services.kinds.format.package_names import is_package_name
from services.packages.ranges import Range
from services.packages.versions import ParseProblem, Version


def checked_name(name: str, field: str) -> str:
    """
    Accept the name of a package or of a repository.

    Raises:
        RequestInvalid: It has not the form of a name.
    """
    if not is_package_name(name):
        problem = "a name is 1 to 63 lower-case letters, digits and '-', which is neither first nor last"
        raise RequestInvalid(field, problem)
    return name


def requested_versions(text: str, field: str) -> Range | Version | None:
    """
    The versions that a request names: a range, or one version with its revision; None: it names none.

    Raises:
        RangeInvalid: The text is neither.
    """
    if not text:
        return None
    try:
        return Range.parse(text)
    except ParseProblem as problem:
        try:
            return Version.parse(text)
        except ParseProblem:
            raise RangeInvalid(field, text[:300], problem.position, str(problem)) from None


def install_request(installs: Iterable[package_pb2.PackageInstall]) -> Request:
    """
    The request to install packages.

    Raises:
        RequestInvalid: It names no package, or too many, or a name has not the form of one.
        RangeInvalid: A range cannot be read.
    """
    packages = tuple(_package_request(each, f"installs[{number}]") for number, each in enumerate(installs))
    if not packages:
        raise RequestInvalid("installs", "names no package; name at least one")
    if len(packages) > MOST_PACKAGES:
        raise RequestInvalid("installs", f"names {len(packages):,} packages; at most {MOST_PACKAGES} are accepted")
    return Request(packages)


def prereleases_of(names: Iterable[str]) -> frozenset[str]:
    """
    The packages whose prereleases count as releases.

    Raises:
        RequestInvalid: There are too many, or a name has not the form of one.
    """
    packages = frozenset(checked_name(name, f"prereleases[{number}]") for number, name in enumerate(names))
    if len(packages) > MOST_PACKAGES:
        raise RequestInvalid("prereleases", f"names {len(packages):,} packages; at most {MOST_PACKAGES} are accepted")
    return packages


def _package_request(install: package_pb2.PackageInstall, field: str) -> PackageRequest:
    return PackageRequest(
        checked_name(install.name, f"{field}.name"),
        requested_versions(install.version_range, f"{field}.version_range"),
        checked_name(install.repository, f"{field}.repository") if install.repository else None,
    )
