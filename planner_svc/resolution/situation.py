"""What a resolution starts from: the input, read once, in an order that does not depend on that of the input."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from planner_svc.resolution.model import Options, PackageRequest, Repository, Request
from planner_svc.resolution.sources import Source, Sources
from services.core.errors import RequestInvalid
from services.packages.index_files import highest_release
from services.packages.installed import InstalledPackage
from services.packages.ranges import Range
from services.packages.versions import Version


@dataclass(frozen=True, slots=True)
class Situation:
    """
    The input of a resolution.

    Attributes:
        installed: The installed packages, by name.
        request: What is to change.
        options: What the client consents to.
        sources: Where packages come from.
        memo: What worlds work out of *installed* and *sources* alone, so that each does not do so again.
    """

    installed: Mapping[str, InstalledPackage]
    request: Request
    options: Options
    sources: Sources
    memo: dict[Any, Any] = field(default_factory=dict)

    @property
    def installs(self) -> Mapping[str, PackageRequest]:
        """The packages to install."""
        return {each.name: each for each in self.request.installs}

    @property
    def updates(self) -> Mapping[str, PackageRequest]:
        """The packages to update that are named."""
        return {each.name: each for each in self.request.updates}

    def uninstalls(self) -> frozenset[str]:
        """The packages to uninstall; with ``cascade``, those that require them, unless they are to be changed, too."""
        names = frozenset(self.request.uninstalls)
        if not self.options.cascade:
            return names
        kept = {each.name for each in (*self.request.installs, *self.request.updates)}
        while True:
            more = {
                name
                for name, each in self.installed.items()
                if name not in kept and not names.isdisjoint(required.name for required in each.requires)
            }
            if more <= names:
                return names
            names |= more


def read_situation(
    repositories: Iterable[Repository], installed: Iterable[InstalledPackage], request: Request, options: Options
) -> Situation:
    """
    Check and sort the input.

    Raises:
        RequestInvalid: A package is named twice.
    """
    names = [*(each.name for each in (*request.installs, *request.updates)), *request.uninstalls]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise RequestInvalid("packages", f"package {repeated[0]} is named more than once; name it once")
    by_name = {each.name: each for each in sorted(installed, key=lambda each: each.name)}
    ordered = Request(
        installs=tuple(sorted(request.installs, key=lambda each: each.name)),
        updates=tuple(sorted(request.updates, key=lambda each: each.name)),
        updates_all=request.updates_all,
        uninstalls=tuple(sorted(request.uninstalls)),
    )
    return Situation(by_name, ordered, options, Sources(repositories, by_name, ordered))


def latest_of(source: Source) -> Version | None:
    """The version that the publisher recommends, else the highest release that is not yanked; None: there is none."""
    if source.package.latest is not None:
        return source.package.latest
    return highest_release(source.package.versions)


def fits(versions: Range | Version | None, version: Version, prereleases_allowed: bool) -> bool:
    """Whether *version* is one of *versions*, as a request or a requirement names them."""
    if versions is None:
        return True
    if isinstance(versions, Version):
        return versions == version
    return versions.matches(version, prereleases_allowed)
