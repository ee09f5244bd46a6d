"""Which versions of a package a client sees."""

from planner_svc.resolution.situation import fits
from services.core.errors import PackageNotFound, RequestInvalid
from services.core.text_lists import listed
from services.packages.index_files import PackageVersions, PublishedVersion
from services.packages.ranges import Range
from services.packages.versions import ParseProblem, Version


def versions_below(package: PackageVersions, after: str) -> list[PublishedVersion]:
    """
    The versions of a package, the highest first.

    Args:
        package: The package.
        after: Only those below this one, which the place of a page names; empty: all.

    Raises:
        RequestInvalid: It is no version.
    """
    versions = sorted(package.versions.values(), key=lambda each: each.version, reverse=True)
    if not after:
        return versions
    try:
        last = Version.parse(after)
    except ParseProblem:
        raise RequestInvalid("page_token", "is not a next_page_token of this service") from None
    return [each for each in versions if each.version < last]


_ANY_RELEASE = Range.parse("*")

_SHOWN = 10
"""How many published versions an error names."""


def shown_version(
    package: PackageVersions, versions: Range | Version | None, platform: Version, repository: str
) -> PublishedVersion:
    """
    The version that an installation would take; if it would take none, the highest one that will do.

    Args:
        package: The package.
        versions: The versions that will do; None: any, releases first.
        platform: The version of pkger.
        repository: Name of the repository, for errors.

    Raises:
        PackageNotFound: No version will do.
    """
    if versions is None and package.latest is not None:
        return package.versions[package.latest]
    range_ = _ANY_RELEASE if versions is None else versions
    for prereleases_allowed in (False, True):
        suitable = [each for each in package.versions.values() if fits(range_, each.version, prereleases_allowed)]
        welcome = [each for each in suitable if each.yanked is None and fits(each.platform, platform.release, False)]
        if suitable:
            return max(welcome or suitable, key=lambda each: each.version)
    published = [str(each) for each in sorted(package.versions, reverse=True)]
    shown = listed(published, _SHOWN) if published else "no version"
    raise PackageNotFound(package.name, f"repository {repository} has no {package.name} in {versions}; it has {shown}")
