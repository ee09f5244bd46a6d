"""The versions of one package in the order of their values, and sets of them."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from planner_svc.resolution.search import FIRST, Values
from planner_svc.resolution.situation import latest_of
from planner_svc.resolution.sources import NoSource, Source
from services.packages.installed import InstalledPackage
from services.packages.manifest import Requirement
from services.packages.ranges import Comparator, Range
from services.packages.versions import Precedence, Version


@dataclass(frozen=True, slots=True)
class Edition:
    """
    A version of a package in a world.

    Attributes:
        version: The version; None: any version that is needed.
        requires: What it requires.
        is_own: Whether it is the installed one.
        yanked: Why it is yanked; None: it is not.
        platform: The versions of pkger that it is for; None: any.
    """

    version: Version | None
    requires: tuple[Requirement, ...] = ()
    is_own: bool = False
    yanked: str | None = None
    platform: Range | None = None


@dataclass(slots=True)
class Catalogue:
    """
    The versions of a package.

    Attributes:
        editions: The versions, lowest first; that at index 0 has the value ``FIRST``. That of any version comes last.
        own: The value of the installed version; None: it is not installed.
        latest: The value of the recommended version; None: there is none.
        all: All values.
        any_version: The value of any version, if there is one.
        prereleases: The values of prereleases.
        yanked: The values of yanked versions.
    """

    editions: tuple[Edition, ...]
    own: int | None = None
    latest: int | None = None
    all: Values = field(init=False)
    any_version: Values = field(init=False)
    prereleases: Values = field(init=False)
    yanked: Values = field(init=False)
    _precedences: Sequence[Precedence] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.all = ((1 << len(self.editions)) - 1) << FIRST
        self.any_version = self.where(lambda each: each.version is None)
        self.prereleases = self.where(lambda each: each.version is not None and each.version.is_prerelease)
        self.yanked = self.where(lambda each: each.yanked is not None)
        self._precedences = [each.version.precedence for each in self.editions if each.version is not None]

    def where(self, test: Callable[[Edition], bool]) -> Values:
        """The values of the versions that pass a test."""
        return sum(1 << number for number, each in enumerate(self.editions, FIRST) if test(each))

    def edition(self, value: int) -> Edition:
        """The version with a value."""
        return self.editions[value - FIRST]

    def above(self, value: int | None) -> Values:
        """The values of higher versions; of all, if there is no value."""
        return self.all if value is None else self.all & ~((1 << (value + 1)) - 1)

    def up_to(self, value: int | None) -> Values:
        """The values of a version and lower ones; of all, if there is no value."""
        return self.all if value is None else self.all & ((1 << (value + 1)) - 1)

    def within(self, versions: Range | Version | None, prereleases_allowed: bool) -> Values:
        """
        The values in *versions*, as a request or a requirement names them.

        It is what ``Range.matches`` says of each version, found out for all of them at once.
        """
        if versions is None:
            return self.all
        if isinstance(versions, Version):
            return self.where(lambda each: each.version == versions) | self.any_version
        values = self.any_version
        for group in versions.groups:
            is_limited = not (prereleases_allowed or group.names_prerelease)
            values |= self._meeting(group.comparators) & ~(self.prereleases if is_limited else 0)
        return values

    def _meeting(self, comparators: Iterable[Comparator]) -> Values:
        """The values that meet all *comparators* by their place in the order."""
        values = self.all
        for comparator in comparators:
            start = bisect_left(self._precedences, comparator.interval.low)
            end = bisect_left(self._precedences, comparator.interval.high)
            named = ((1 << max(end, start)) - (1 << start)) << FIRST
            values &= ~named if comparator.excludes else named
        return values & ~self.any_version


def catalogue_of(installed: InstalledPackage | None, source: Source | NoSource) -> Catalogue:
    """The versions of a package; what the installed one requires is what was recorded of it."""
    editions = {}
    if isinstance(source, Source):
        for each in source.package.versions.values():
            editions[each.version] = Edition(each.version, each.requires, False, each.yanked, each.platform)
    if installed:
        published = editions.get(installed.version, Edition(None))
        editions[installed.version] = Edition(
            installed.version, installed.requires, True, published.yanked, published.platform
        )
    versions = sorted(editions)
    latest = latest_of(source) if isinstance(source, Source) else None
    return Catalogue(
        tuple(editions[version] for version in versions),
        FIRST + versions.index(installed.version) if installed else None,
        FIRST + versions.index(latest) if latest is not None and latest in editions else None,
    )


def with_any_version(catalogue: Catalogue) -> Catalogue:
    """The same with any version, which requires what the installed one does."""
    requires = () if catalogue.own is None else catalogue.edition(catalogue.own).requires
    return Catalogue((*catalogue.editions, Edition(None, requires)), catalogue.own, catalogue.latest)


def with_versions(catalogue: Catalogue, versions: Iterable[Version]) -> Catalogue:
    """The same with more versions that require nothing."""
    existing = {each.version for each in catalogue.editions}
    more = [(version, Edition(version)) for version in set(versions) - existing]
    named = [(each.version, each) for each in catalogue.editions if each.version is not None]
    ordered = [each for _, each in sorted([*named, *more], key=lambda pair: pair[0])]

    def moved(value: int | None) -> int | None:
        return None if value is None else FIRST + ordered.index(catalogue.edition(value))

    return Catalogue(tuple(ordered), moved(catalogue.own), moved(catalogue.latest))
