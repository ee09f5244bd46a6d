"""What a resolution starts from: the input, read once, in an order that does not depend on that of the input."""

from collections import Counter
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
        installs: The packages to install.
        updates: The packages to update that are named.
        uninstalls: The packages to uninstall; with ``cascade``, those that require them, unless they are to be changed,
            too.
    """

    installed: Mapping[str, InstalledPackage]
    request: Request
    options: Options
    sources: Sources
    memo: dict[Any, Any] = field(default_factory=dict)
    installs: Mapping[str, PackageRequest] = field(init=False)
    updates: Mapping[str, PackageRequest] = field(init=False)
    uninstalls: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "installs", {each.name: each for each in self.request.installs})
        object.__setattr__(self, "updates", {each.name: each for each in self.request.updates})
        object.__setattr__(self, "uninstalls", self._uninstalls())

    def _uninstalls(self) -> frozenset[str]:
        names = set(self.request.uninstalls)
        if not self.options.cascade:
            return frozenset(names)
        requirers: dict[str, list[str]] = {}
        for name, each in self.installed.items():
            for required in each.requires:
                requirers.setdefault(required.name, []).append(name)
        pending = list(names)
        while pending:
            for name in requirers.get(pending.pop(), ()):
                if name not in names and name not in self.installs and name not in self.updates:
                    names.add(name)
                    pending.append(name)
        return frozenset(names)


def read_situation(
    repositories: Iterable[Repository], installed: Iterable[InstalledPackage], request: Request, options: Options
) -> Situation:
    """
    Check and sort the input.

    Raises:
        RequestInvalid: A package is named twice.
    """
    names = [*(each.name for each in (*request.installs, *request.updates)), *request.uninstalls]
    repeated = sorted(name for name, number in Counter(names).items() if number > 1)
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
