"""Finds a set of facts that rule each other out, none of which can be left out."""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from planner_svc.resolution.catalogue import Catalogue, with_versions
from planner_svc.resolution.conditions import Level
from planner_svc.resolution.model import FactKind, PackageRequest
from planner_svc.resolution.search import Budget as SearchBudget
from planner_svc.resolution.search import Failure, Search, SearchLimit, Values, values_of
from planner_svc.resolution.situation import Situation, fits
from planner_svc.resolution.solutions import Finder
from planner_svc.resolution.sources import NoSource, Source
from planner_svc.resolution.world import Choice, World, unpinned
from services.packages.installed import InstalledPackage
from services.packages.manifest import Requirement
from services.packages.ranges import Range
from services.packages.versions import MAX_DIGITS, MAX_VERSION_LENGTH, Version


@dataclass(frozen=True, slots=True, eq=False)
class Reason:
    """
    A fact, as the search sees it.

    Attributes:
        kind: What it is about; PUBLISHED stands for NOWHERE, too.
        package: The package that it is about.
        required: Of REQUIRES, the package that is required.
        range: Of REQUIRES, the versions of it that will do. All versions of *package* that say so are one fact.
    """

    kind: FactKind
    package: str
    required: str = ""
    range: Range | None = None
    _key: tuple[str, str, str, str] = field(init=False, repr=False)
    _hash: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        # There are thousands of them in sets: the hash of a range takes long.
        key = (self.kind.value, self.package, self.required, "" if self.range is None else str(self.range))
        object.__setattr__(self, "_key", key)
        object.__setattr__(self, "_hash", hash(key))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reason) and self._key == other._key

    def __hash__(self) -> int:
        return self._hash


class ReasonWorld(World):
    """
    A world in which only some facts count.

    Without them, nobody asks for a package, installed packages are anywhere or nowhere, nothing is required, and all
    versions are published that ranges can tell apart.
    """

    def __init__(
        self, world: World, reasons: Collection[Reason], ranges: "ImaginedVersions", trims: bool = False
    ) -> None:
        """
        Let only *reasons* count in *world*.

        Unless it *trims*, a package is a part of solutions though what leads to it does not count: so less to count
        rules out less.
        """
        self._reasons = frozenset(reasons)
        self._ranges = ranges
        instead = {name: each for name, each in world.instead.items() if self._has(FactKind.REQUESTED, name)}
        super().__init__(world.situation, world.level, world.lifted, instead)
        self._base = world
        self.trims = trims
        self._installs = {name: each for name, each in self._installs.items() if self._has(FactKind.REQUESTED, name)}
        self._updates = {name: each for name, each in self._updates.items() if self._has(FactKind.REQUESTED, name)}
        self._uninstalls = frozenset(name for name in self._uninstalls if self._has(FactKind.REQUESTED, name))
        self.masks = ranges.masks
        self._requirements: dict[tuple[str, int], tuple[Requirement, ...]] = {}

    def _has(self, kind: FactKind, package: str) -> bool:
        return Reason(kind, package) in self._reasons

    def mask_key(self, package: str, versions: Range) -> tuple[object, ...]:
        """What the values in a range depend on."""
        return *super().mask_key(package, versions), self._has(FactKind.PUBLISHED, package)

    def requirements(self, package: str, value: int) -> tuple[Requirement, ...]:
        """What *value* of *package* requires, as far as it counts."""
        key = package, value
        if key not in self._requirements:
            self._requirements[key] = tuple(
                each
                for each in super().requirements(package, value)
                if self._ranges.reason(package, each) in self._reasons
            )
        return self._requirements[key]

    def universe(self) -> frozenset[str]:
        """The packages that anything leads to, whether it counts or not."""
        return self._ranges.universe(self._base)

    def catalogue(self, package: str, source: Source | NoSource) -> Catalogue:
        """The versions of a package, with imagined ones unless it is a fact which versions are published."""
        real = super().catalogue(package, source)
        return real if self._has(FactKind.PUBLISHED, package) else self._ranges.catalogue(package, real)

    def eligible(self, choice: Choice) -> Values:
        """The values that can be chosen newly: all of them, unless it is a fact which versions are published."""
        if self._has(FactKind.PUBLISHED, choice.package):
            return super().eligible(choice)
        return choice.versions.all

    def fill(self, package: str, choice: Choice, installed: InstalledPackage | None) -> None:
        """Decide what *package* can be."""
        is_pinned = self._has(FactKind.PINNED, package) or self._has(FactKind.SUSPENDED, package)
        if installed and (installed.is_pinned or installed.is_suspended) and not is_pinned:
            installed = unpinned(installed) if self._has(FactKind.INSTALLED, package) else None
        elif installed and not is_pinned and not self._has(FactKind.INSTALLED, package):
            installed = None
        request = self._updates.get(package) or self._installs.get(package)
        if package in self.instead:
            super().fill(package, choice, installed)
        elif request and not installed and choice.own is not None:
            # Any version will do that is requested, so that less is ruled out without the fact that one is installed.
            choice.is_root = True
            choice.domain = self.fitting(choice, request.versions) & (self.eligible(choice) | choice.own_values)
            choice.order = tuple(reversed(values_of(choice.domain)))
        elif installed or request or package in self._uninstalls:
            super().fill(package, choice, installed)
            self._add_requested(choice, installed)
        else:
            self.fill_free(choice)
            if choice.own is not None:
                choice.domain |= 1 << choice.own
                choice.unadmitted &= ~(1 << choice.own)

    def _add_requested(self, choice: Choice, installed: InstalledPackage | None) -> None:
        """Let an installed package move as a request that does not count would: less to count rules out less."""
        requests = {**self.situation.installs, **self.situation.updates}
        is_free = installed and not (installed.is_pinned or installed.is_suspended)
        if is_free and choice.package in requests and not self._has(FactKind.REQUESTED, choice.package):
            requested = Choice(choice.package, choice.versions)
            self.fill_requested(requested, requests[choice.package], installed)
            choice.domain |= requested.domain
            choice.order = None

    def up_to_latest(self, choice: Choice) -> Values:
        """The values that an update without a range can have."""
        is_published = self._has(FactKind.PUBLISHED, choice.package)
        return super().up_to_latest(choice) if is_published else choice.versions.all

    def fill_new_install(self, choice: Choice, request: PackageRequest) -> None:
        """A package is installed; any version may be the latest, unless it is a fact which ones are published."""
        super().fill_new_install(choice, request)
        is_published = self._has(FactKind.PUBLISHED, choice.package)
        if request.versions is None and choice.versions.latest is None and not is_published:
            choice.domain = choice.versions.all
            choice.order = tuple(reversed(values_of(choice.domain)))


_HIGHEST = 10**MAX_DIGITS - 1


class ImaginedVersions:
    """Versions that stand for all that could be published: of any ranges with a version in common, one is in them."""

    def __init__(self, reasons: Iterable[Reason], situation: Situation) -> None:
        """Imagine versions for the ranges of *reasons* and of the request."""
        self.masks: dict[Any, Values] = {}
        self._universe: frozenset[str] | None = None
        self._catalogues: dict[str, Catalogue] = {}
        self._reasons: dict[tuple[str, int], Reason] = {}
        self._ranges: dict[str, set[Range]] = {}
        for reason in reasons:
            if reason.range:
                self._ranges.setdefault(reason.required, set()).add(reason.range)
        for request in (*situation.request.installs, *situation.request.updates):
            if isinstance(request.versions, Range):
                self._ranges.setdefault(request.name, set()).add(request.versions)
        self._installed = situation.installed
        self._exact = {
            each.name: each.versions
            for each in (*situation.request.installs, *situation.request.updates)
            if isinstance(each.versions, Version)
        }

    def universe(self, world: World) -> frozenset[str]:
        """The packages of a world in which all facts count."""
        if self._universe is None:
            self._universe = world.universe()
        return self._universe

    def catalogue(self, package: str, real: Catalogue) -> Catalogue:
        """The versions of *package* with the imagined ones."""
        if package not in self._catalogues:
            twins = [twin for each in real.editions if each.version for twin in _twin(each.version)]
            self._catalogues[package] = with_versions(real, [*self._of(package), *twins])
        return self._catalogues[package]

    def reason(self, package: str, requirement: Requirement) -> Reason:
        """The fact that versions of *package* have a requirement."""
        # The requirements are those of the input, so they outlive their ids.
        key = package, id(requirement)
        if key not in self._reasons:
            self._reasons[key] = Reason(FactKind.REQUIRES, package, requirement.name, requirement.range)
        return self._reasons[key]

    def _of(self, package: str) -> list[Version]:
        versions = {Version.parse("0.0.0")}
        installed = self._installed.get(package)
        if installed:
            # The installed version may have to go up, beyond what any range says.
            versions.update(_at((*installed.version.precedence, 0)))
        if package in self._exact:
            versions.add(self._exact[package])
        for each in self._ranges.get(package, ()):
            for group in each.groups:
                for comparator in group.comparators:
                    versions.update(_at(comparator.interval.low))
                    versions.update(_at(comparator.interval.high))
        return sorted(versions)


def _twin(version: Version) -> Iterator[Version]:
    """Another version that is in the same ranges."""
    text = f"{version.text.partition('+')[0]}+{_HIGHEST}"
    if len(text) <= MAX_VERSION_LENGTH:
        yield Version.parse(text)


def _at(cut: tuple[object, ...]) -> Iterator[Version]:
    """The first versions after a point between versions: a release, and the prerelease that is named."""
    numbers = [each for each in cut[:3] if isinstance(each, int)]
    if len(numbers) < 3:
        return
    is_release, is_after = len(cut) > 3 and bool(cut[3]), len(cut) > 5
    if is_release and is_after:
        numbers[2] += 1
    if max(numbers) <= _HIGHEST:
        yield Version.parse(".".join(map(str, numbers)))
    if len(cut) > 4 and not is_release:
        # The next prerelease after any is that with a further identifier.
        yield Version.parse(f"{'.'.join(map(str, numbers))}-zzz")


def all_reasons(world: World, names: Iterable[str]) -> list[Reason]:
    """The facts about packages, sorted."""
    reasons = []
    for name in sorted(set(names)):
        reasons += reasons_about(world, name)
        requirements = {
            (each.name, each.range)
            for value in values_of(world.domain(name))
            for each in world.requirements(name, value)
        }
        reasons += [
            Reason(FactKind.REQUIRES, name, required, versions)
            for required, versions in sorted(requirements, key=lambda each: (each[0], str(each[1])))
        ]
    return reasons


def reasons_about(world: World, package: str) -> list[Reason]:
    """The facts about one package, without what it requires."""
    situation, installed = world.situation, world.installed(package)
    reasons = []
    requested = (situation.installs, situation.updates, situation.uninstalls, world.instead)
    if any(package in names for names in requested):
        reasons.append(Reason(FactKind.REQUESTED, package))
    if installed:
        reasons.append(Reason(FactKind.INSTALLED, package))
    if installed and installed.is_suspended:
        reasons.append(Reason(FactKind.SUSPENDED, package))
    elif installed and installed.is_pinned:
        reasons.append(Reason(FactKind.PINNED, package))
    return [*reasons, Reason(FactKind.PUBLISHED, package)]


class Reduced(NamedTuple):
    """
    A set of facts.

    Attributes:
        reasons: The facts.
        is_minimal: Whether none of them can be left out.
        trims: Whether it is in worlds that trim (``World.trims``) that they rule each other out.
    """

    reasons: tuple[Reason, ...]
    is_minimal: bool
    trims: bool = False


def reduce(world: World, failure: Failure, search: Search, budget: SearchBudget, about: str = "") -> Reduced:
    """
    Find facts that rule each other out, those about the package *about* if it has no version.

    The facts that *failure* blames are a start, and so are those that any later failure blames. Then facts are left
    out, many at a time as long as this goes well.
    """
    blamed = _blamed(world, failure)
    reducer = Reducer(world, search, budget, ImaginedVersions(blamed, world.situation))
    try:
        reducer.reduce(_contradictory(world, about, reducer.failure_of) or blamed)
        if not reducer.failure_of(reducer.kept):
            # The search blames no one for what is not there: nothing admits a prerelease, perhaps.
            everything = all_reasons(world, world.universe())
            for trims in (False, True):
                ranges = ImaginedVersions(everything, world.situation)
                reducer = Reducer(world, search, budget, ranges, trims, trusts_blame=False)
                if reducer.failure_of(everything):
                    reducer.reduce_further(everything)
                    break
    except SearchLimit:
        return Reduced(tuple([*reducer.kept, *reducer.rest] or blamed), False, reducer.trims)
    return Reduced(tuple(reducer.kept), True, reducer.trims)


@dataclass(eq=False)
class Reducer:
    """
    Leaves out facts.

    Attributes:
        world: The world in which all facts count.
        search: Finds solutions.
        budget: The bounds of that.
        ranges: The versions that could be published.
        trims: Whether worlds trim.
        trusts_blame: Whether facts are left out that a failure does not blame.
        kept: Facts that cannot be left out.
        rest: Those of which this is unknown.
    """

    world: World
    search: Search
    budget: SearchBudget
    ranges: ImaginedVersions
    trims: bool = False
    trusts_blame: bool = True
    kept: list[Reason] = field(default_factory=list)
    rest: list[Reason] = field(default_factory=list)

    def reduce(self, reasons: Iterable[Reason]) -> None:
        """Leave out as many of *reasons* as possible, which rule each other out."""
        self.kept, self.rest = [], sorted(reasons, key=_by_importance)
        size = max(1, len(self.rest) // 2)
        while self.rest:
            size = min(size, len(self.rest))
            others = self.rest[size:]
            core = self.failure_of([*self.kept, *others])
            if core is not None:
                self.rest = [each for each in others if each in core or not self.trusts_blame]
                size *= 2
            elif size == 1:
                self.kept.append(self.rest.pop(0))
            else:
                size //= 2

    def reduce_further(self, reasons: Collection[Reason]) -> None:
        """Leave out facts until no single one can be: in worlds that trim, less to count may rule out more."""
        self.kept = list(reasons)
        size = len(self.kept) + 1
        while len(self.kept) < size:
            size = len(self.kept)
            self.reduce(self.kept)

    def failure_of(self, reasons: Collection[Reason]) -> frozenset[Reason] | None:
        """Those of *reasons* that rule each other out; None: they do not."""
        world = ReasonWorld(self.world, reasons, self.ranges, self.trims)
        answer = Finder(world, self.search, self.budget).find({})
        return _blamed(world, answer) if isinstance(answer, Failure) else None


def _contradictory(world: World, about: str, failure_of: Callable[[Collection[Reason]], object]) -> list[Reason] | None:
    """The facts about a requested package that has no version at all, *about* first; None: there is none."""
    for name in sorted(world.roots, key=lambda name: name != about):
        if not world.domain(name):
            reasons = reasons_about(world, name)
            if failure_of(reasons):
                return reasons
    return None


def _blamed(world: World, failure: Failure) -> frozenset[Reason]:
    """The facts behind *failure*."""
    needs = {*failure.needs, *(edge for condition in world.conditions for edge in condition.edges)}
    names = {name for name in failure.packages if not name.startswith("@")}
    reasons: set[Reason] = set()
    for name, values, required in needs:
        if name.startswith("@"):
            continue
        names.update({name} if required.startswith("@") else {name, required})
        for value in values_of(values & world.domain(name)):
            for each in world.requirements(name, value):
                if each.name == required:
                    reasons.add(Reason(FactKind.REQUIRES, name, required, each.range))
    for name in names:
        reasons.update(reasons_about(world, name))
    if isinstance(world, ReasonWorld):
        reasons &= world._reasons
    return frozenset(reasons)


_LEFT_OUT_FIRST = (
    FactKind.PUBLISHED,
    FactKind.PINNED,
    FactKind.SUSPENDED,
    FactKind.INSTALLED,
    FactKind.REQUIRES,
    FactKind.REQUESTED,
)


def _by_importance(reason: Reason) -> tuple[int, str, str, str]:
    return _LEFT_OUT_FIRST.index(reason.kind), reason.package, reason.required, str(reason.range)


def versions_that_require(world: World, package: str) -> dict[Reason, list[Version]]:
    """The facts of the kind REQUIRES about *package*, each with the versions that say so, highest first."""
    choice = world.choice(package)
    versions: dict[Reason, list[Version]] = {}
    for value in reversed(values_of(choice.domain)):
        edition = choice.edition(value)
        if edition.version is None:
            continue
        for each in edition.requires:
            reason = Reason(FactKind.REQUIRES, package, each.name, each.range)
            versions.setdefault(reason, []).append(edition.version)
    return versions


def is_below(world: World, package: str, requirers: Iterable[Reason]) -> bool:
    """Whether an installed package would have to go down for one of *requirers*, which require it."""
    choice = world.choice(package)
    if world.level is Level.STAY or choice.own is None:
        return False
    own = choice.edition(choice.own).version
    allowed = world.allows_prereleases(package)
    return own is not None and not all(fits(each.range, own, allowed) for each in requirers)
