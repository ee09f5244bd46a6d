"""
The question to the search: the versions that each package can have, and what they need.

A *world* is one reading of the input: how far installed packages may move, and which of its conditions are lifted, to
find out which one keeps a request from being carried out.
"""

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from planner_svc.resolution.catalogue import Catalogue, Edition, catalogue_of, with_any_version
from planner_svc.resolution.conditions import Condition, Exclusion, Level, Lifted
from planner_svc.resolution.model import PackageRequest
from planner_svc.resolution.search import ABSENT, FIRST, Values, values_of
from planner_svc.resolution.situation import Situation, fits
from planner_svc.resolution.sources import NoSource, Source
from services.packages.installed import InstalledPackage, PackageOrigin
from services.packages.manifest import Requirement
from services.packages.ranges import Range
from services.packages.versions import Version

_ABSENT = 1 << ABSENT


@dataclass(slots=True)
class Choice:
    """
    What a package can be in a world.

    Attributes:
        package: Its name.
        versions: Its versions.
        domain: The values that it can have.
        unadmitted: Those of *domain* that need a range which names a prerelease.
        is_root: Whether it has to be there.
        order: The values of *domain* in their order of preference; None: it depends on what requires it.
    """

    package: str
    versions: Catalogue
    domain: Values = 0
    unadmitted: Values = 0
    is_root: bool = False
    order: tuple[int, ...] | None = None

    @property
    def own(self) -> int | None:
        """The value of the installed version; None: it is not installed."""
        return self.versions.own

    @property
    def own_values(self) -> Values:
        """The same as a set."""
        return 0 if self.versions.own is None else 1 << self.versions.own

    def edition(self, value: int) -> Edition:
        """The version with a value."""
        return self.versions.edition(value)


_NO_LIFT = Lifted()


@dataclass(eq=False)
class World:
    """
    A question to the search (``Question``), which learns what solutions must not have.

    Attributes:
        situation: The input.
        level: How far installed packages may move.
        lifted: The conditions that do not count.
        instead: The versions that are requested of packages, in place of those of the request.
        hints: Values to try first: those of a solution, when the search is asked for a better one.
        trims: Whether a package that nothing needs is no part of a solution, and admits no prerelease.
    """

    situation: Situation
    level: Level
    lifted: Lifted = _NO_LIFT
    instead: Mapping[str, frozenset[Version]] = field(default_factory=dict)
    trims: bool = field(default=True, init=False)
    choices: dict[str, Choice] = field(default_factory=dict)
    conditions: list[Condition] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._uninstalls = frozenset() if self.lifted.uninstalls else self.situation.uninstalls
        self._installs, self._updates = self.situation.installs, self.situation.updates
        lifted = self.lifted
        key = "masks", self.situation.options.prereleases, lifted.prereleases, lifted.missing, lifted.unmatched
        self.masks: dict[Any, Values] = self.situation.memo.setdefault(key, {})
        self._needs: dict[tuple[str, int], dict[str, Values]] = {}
        self._conditions_of: dict[str, list[int]] = {}
        self._roots: dict[str, Values] | None = None
        self.hints: Mapping[str, int] = {}

    # The question

    @property
    def roots(self) -> Mapping[str, Values]:
        """The packages that have to be there, with their domains."""
        if self._roots is None:
            names = {*self._installs, *self._updates, *self.instead, *self.situation.installed}
            self._roots = {name: self.choice(name).domain for name in sorted(names) if self.choice(name).is_root}
        return self._roots

    def domain(self, package: str) -> Values:
        """The values that *package* can have."""
        if package.startswith("@"):
            return ((1 << len(self.conditions[int(package[1:])].alternatives)) - 1) << FIRST
        return self.choice(package).domain

    def needs(self, package: str, value: int) -> Mapping[str, Values]:
        """What *value* of *package* needs."""
        if package.startswith("@"):
            name, values = self.conditions[int(package[1:])].alternatives[value - FIRST]
            return {name: values}
        key = package, value
        if key not in self._needs:
            self._needs[key] = self._needs_of(package, value)
        return self._needs[key]

    def preferred(self, package: str, values: Values) -> int:
        """The value to try first: that of the order of preference, as far as it does not depend on other packages."""
        if package.startswith("@"):
            return (values & -values).bit_length() - 1
        if values >> self.hints.get(package, ABSENT) & 1 and package in self.hints:
            return self.hints[package]
        choice = self.choice(package)
        if choice.order is not None:
            return next(value for value in choice.order if values >> value & 1)
        admitted = values & ~choice.unadmitted or values
        if choice.own is not None and admitted >> choice.own & 1 and not self.moves_all(package):
            return choice.own
        if choice.versions.latest is not None and values & choice.domain == choice.domain:
            # No range is needed, as far as it is visible: the latest version comes first, then those below it.
            admitted = admitted & choice.versions.up_to(choice.versions.latest) or admitted
        if choice.own is not None:
            admitted = admitted & choice.versions.above(choice.own) or admitted
        return admitted.bit_length() - 1

    # What is possible

    def choice(self, package: str) -> Choice:
        """What *package* can be."""
        if package not in self.choices:
            self.choices[package] = self._choice(package)
        return self.choices[package]

    def is_new(self, package: str, value: int) -> bool:
        """Whether *value* is not the installed version."""
        return self.choice(package).own != value

    def pulled(self, package: str, value: int) -> list[str]:
        """
        The packages that are there because *value* of *package* is, by name.

        What an installed version requires and was not there before is not needed now either.
        """
        names = [each.name for each in self.requirements(package, value)]
        return names if self.is_new(package, value) else [name for name in names if name in self.situation.installed]

    def moves_all(self, package: str) -> bool:
        """Whether *package* is to be updated only because all packages are."""
        installed = self.installed(package)
        return bool(
            self.situation.request.updates_all
            and installed
            and not (installed.is_pinned or installed.is_suspended)
            and not self._is_named(package)
        )

    def _is_named(self, package: str) -> bool:
        """Whether the request names *package*, or removes it."""
        return package in self._installs or package in self._updates or package in self._uninstalls

    def is_requested(self, package: str) -> bool:
        """Whether *package* comes first in the order of decisions: it is named, or to be updated with all others."""
        if package in self._installs or package in self._updates or package in self.instead:
            return True
        installed = self.installed(package)
        return bool(installed and installed.origin is PackageOrigin.MANUAL and self.moves_all(package))

    def installed(self, package: str) -> InstalledPackage | None:
        """The installed package, without the flags that are lifted."""
        installed = self.situation.installed.get(package)
        if installed is None or not (installed.is_pinned or installed.is_suspended):
            return installed
        is_free = self.lifted.suspensions if installed.is_suspended else self.lifted.pins
        return unpinned(installed) if is_free else installed

    def movables(self) -> dict[str, Values]:
        """The installed packages that are not requested and may move, with the values with which they do not."""
        if self.level is Level.STAY:
            return {}
        movables = {}
        for name in self.situation.installed:
            choice = self.choice(name)
            is_free = not self._is_named(name) and not self.moves_all(name)
            if is_free and choice.own is not None and choice.domain & ~(1 << choice.own):
                movables[name] = 1 << choice.own
        return movables

    def mask(self, package: str, versions: Range | None) -> Values:
        """The values of *package* in a range, whether it can have them or not."""
        if versions is None:
            return self.choice(package).versions.all
        key = self.mask_key(package, versions)
        if key not in self.masks:
            self.masks[key] = self._mask(self.choice(package), versions)
        return self.masks[key]

    def mask_key(self, package: str, versions: Range) -> tuple[object, ...]:
        """What the values in a range depend on."""
        # Ranges are those of the input, so they outlive their ids, and to compare them takes long.
        return package, id(versions)

    def requirers(self, package: str, required: Container[str]) -> Values:
        """The values of *package* that require one of the *required* packages."""
        choice = self.choice(package)
        return _sum(
            value
            for value in values_of(choice.domain)
            if any(each.name in required for each in self.requirements(package, value))
        )

    def requirements(self, package: str, value: int) -> Sequence[Requirement]:
        """What *value* of *package* requires, by name, as far as it counts."""
        return self.all_requirements(package, value)

    def all_requirements(self, package: str, value: int) -> Sequence[Requirement]:
        """What *value* of *package* requires, by name."""
        requires = self.choice(package).edition(value).requires
        return requires if len(requires) < 2 else sorted(requires, key=_name)

    def universe(self) -> frozenset[str]:
        """The packages that some version of a root leads to."""
        names = {*self.roots, *self.situation.installed}
        new = list(names)
        while new:
            name = new.pop()
            for value in values_of(self.domain(name)):
                for required in self.requirements(name, value):
                    if required.name not in names:
                        names.add(required.name)
                        new.append(required.name)
        return frozenset(names)

    # What solutions must not have

    def exclude(self, exclusion: Exclusion) -> None:
        """Let no solution have a combination of values."""
        (package, values), *others = exclusion.parts
        self.demand(Condition(package, values, tuple((name, ~each) for name, each in others), exclusion.edges))

    def demand(self, condition: Condition) -> None:
        """Let some values of a package need one of several things."""
        self._conditions_of.setdefault(condition.package, []).append(len(self.conditions))
        self.conditions.append(condition)
        for key in [key for key in self._needs if key[0] == condition.package]:
            del self._needs[key]

    # Details

    def _choice(self, package: str) -> Choice:
        choice = Choice(package, self.catalogue(package, self.situation.sources.of(package)))
        self.fill(package, choice, self.installed(package))
        return choice

    def catalogue(self, package: str, source: Source | NoSource) -> Catalogue:
        """The versions of a package."""
        memo = self.situation.memo
        if package not in memo:
            memo[package] = catalogue_of(self.situation.installed.get(package), source)
        catalogue: Catalogue = memo[package]
        is_anything = isinstance(source, NoSource) and source.code in self.lifted.missing
        return with_any_version(catalogue) if is_anything else catalogue

    def fill(self, package: str, choice: Choice, installed: InstalledPackage | None) -> None:
        """Decide what *package* can be, and in which order."""
        request = self._installs.get(package) or self._updates.get(package)
        if package in self.instead:
            self._fill_instead(choice, self.instead[package])
        elif package in self._uninstalls:
            # Nothing that is pinned goes: it has to be there, and has no value.
            choice.is_root = bool(installed and (installed.is_pinned or installed.is_suspended))
        elif installed and (installed.is_pinned or installed.is_suspended):
            self._fill_pinned(choice, request)
        elif request:
            self.fill_requested(choice, request, installed)
        elif installed and installed.origin is PackageOrigin.MANUAL and self.moves_all(package):
            self._fill_update(choice, installed.requested, None)
        elif installed:
            self._fill_installed(choice, installed)
        else:
            self.fill_free(choice)

    def fill_requested(self, choice: Choice, request: PackageRequest, installed: InstalledPackage | None) -> None:
        """A package that is named is installed or updated."""
        choice.is_root = True
        if choice.package in self.situation.updates:
            if installed:
                self._fill_update(choice, request.versions or installed.requested, request)
        elif installed:
            self._fill_install(choice, request)
        else:
            self.fill_new_install(choice, request)

    def _fill_instead(self, choice: Choice, versions: Collection[Version]) -> None:
        choice.is_root = True
        choice.domain = choice.versions.where(lambda each: each.version in versions)
        choice.order = tuple(reversed(values_of(choice.domain)))

    def _fill_pinned(self, choice: Choice, request: PackageRequest | None) -> None:
        choice.is_root = True
        own = choice.own_values
        choice.domain = own & self.fitting(choice, request.versions) if request else own
        choice.order = tuple(values_of(choice.domain))

    def fill_new_install(self, choice: Choice, request: PackageRequest) -> None:
        """A package that is not installed is installed."""
        choice.is_root = True
        if request.versions is None:
            values = self._recommended(choice) | choice.versions.any_version
        else:
            values = self.fitting(choice, request.versions)
        choice.domain = values & self.eligible(choice)
        choice.order = tuple(reversed(values_of(choice.domain)))

    def _recommended(self, choice: Choice) -> Values:
        """The latest version; without one, the highest prerelease, or yanked release, where these count."""
        if choice.versions.latest is not None:
            return 1 << choice.versions.latest
        values = self.eligible(choice) & ~choice.versions.any_version
        values = values & ~choice.versions.prereleases or values & ~self._prereleases(choice)
        return 1 << (values.bit_length() - 1) if values else 0

    def _fill_install(self, choice: Choice, request: PackageRequest) -> None:
        """An installed package is installed: it stays if it can; only another range moves it."""
        choice.is_root = True
        own = choice.own_values
        fitting = own if request.versions is None else self.fitting(choice, request.versions)
        if fitting & own:
            choice.domain, choice.order = own, (choice.own or 0,)
            return
        self._fill_moved(choice, fitting & self.eligible(choice), 0)

    def _fill_update(self, choice: Choice, versions: Range | Version | None, request: PackageRequest | None) -> None:
        choice.is_root = True
        own = choice.own_values
        if request and request.versions is not None:
            fitting = self.fitting(choice, versions)
            self._fill_moved(choice, fitting & self.eligible(choice) & ~own, fitting & own)
            return
        if versions is not None:
            higher = self.fitting(choice, versions) & choice.versions.above(choice.own)
        else:
            higher = choice.versions.above(choice.own) & self.up_to_latest(choice) & ~self._prereleases(choice)
        choice.domain = higher & self.eligible(choice) & ~own | own
        choice.order = tuple(reversed(values_of(choice.domain)))

    def up_to_latest(self, choice: Choice) -> Values:
        """The values that an update without a range can have."""
        return choice.versions.up_to(choice.versions.latest) | choice.versions.any_version

    def _fill_moved(self, choice: Choice, others: Values, own: Values) -> None:
        """Higher versions, highest first, then the own one, then lower ones if the client consents to them."""
        higher = others & choice.versions.above(choice.own)
        lower = others & ~higher if self.situation.options.allow_downgrade or self.lifted.downgrade else 0
        choice.domain = higher | own | lower
        choice.order = (
            *reversed(values_of(higher)),
            *values_of(own),
            *reversed(values_of(lower)),
        )

    def _fill_installed(self, choice: Choice, installed: InstalledPackage) -> None:
        options = self.situation.options
        choice.is_root = (
            installed.origin is PackageOrigin.MANUAL or options.keep_unused or choice.package in options.keep
        )
        own = values = choice.own_values
        if self.level is Level.STAY and not self.moves_all(choice.package):
            choice.domain = own
            return
        values = choice.versions.all if self.level is Level.ANY else choice.versions.above(choice.own)
        choice.domain = values & self.eligible(choice) | own
        choice.unadmitted = choice.domain & self._prereleases(choice) & ~own

    def fill_free(self, choice: Choice) -> None:
        """A package that is not installed comes along in any version."""
        choice.domain = self.eligible(choice)
        choice.unadmitted = choice.domain & self._prereleases(choice)

    def allows_prereleases(self, package: str) -> bool:
        """Whether prereleases of *package* count as releases."""
        return self.lifted.prereleases or package in self.situation.options.prereleases

    def eligible(self, choice: Choice) -> Values:
        """The values that can be chosen newly, leaving prereleases aside."""
        versions = choice.versions
        values = versions.all if self.lifted.yanked else versions.all & ~versions.yanked
        platform = self.situation.options.platform
        if platform is None or self.lifted.platform:
            return values
        release = platform.release
        return values & versions.where(lambda each: fits(each.platform, release, False))

    def _prereleases(self, choice: Choice) -> Values:
        """The values that only a range which names a prerelease makes possible."""
        return 0 if self.allows_prereleases(choice.package) else choice.versions.prereleases

    def fitting(self, choice: Choice, versions: Range | Version | None) -> Values:
        """The values in *versions*, as a request or a requirement names them."""
        return choice.versions.within(versions, self.allows_prereleases(choice.package))

    def _mask(self, choice: Choice, versions: Range) -> Values:
        values = self.fitting(choice, versions)
        if self.lifted.unmatched and not values & ~choice.versions.any_version:
            return choice.versions.all
        return values

    def _needs_of(self, package: str, value: int) -> dict[str, Values]:
        needs: dict[str, Values] = {}
        is_own = not self.is_new(package, value)
        for required in self.requirements(package, value):
            values = self.mask(required.name, required.range)
            if is_own:
                values |= self._excuse(required.name, values)
            needs[required.name] = values
        for number in self._conditions_of.get(package, ()):
            condition = self.conditions[number]
            if not condition.values >> value & 1:
                continue
            if len(condition.alternatives) == 1:
                name, values = condition.alternatives[0]
                needs[name] = needs.get(name, -1) & values
            else:
                needs[f"@{number}"] = self.domain(f"@{number}")
        return needs

    def _excuse(self, required: str, values: Values) -> Values:
        """What an installed package can need besides: what was so before, and not in its range."""
        own = self.choice(required).own
        if required not in self.situation.installed:
            return _ABSENT
        return 0 if own is None or values >> own & 1 else 1 << own


def _name(requirement: Requirement) -> str:
    return requirement.name


def unpinned(installed: InstalledPackage) -> InstalledPackage:
    """An installed package that may move."""
    return replace(installed, is_pinned=False, is_suspended=False)


def _sum(values: Iterable[int]) -> Values:
    bits = 0
    for value in values:
        bits |= 1 << value
    return bits
