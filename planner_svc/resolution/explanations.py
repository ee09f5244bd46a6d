"""Why installed packages are there, which version an update of each alone would reach, and what holds it back."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise

from planner_svc.resolution.bounds import Bounds, Seconds
from planner_svc.resolution.conditions import Level
from planner_svc.resolution.conflicts import facts_against, pin_fact
from planner_svc.resolution.facts import Reason
from planner_svc.resolution.model import Fact, FactKind, Options, PackageRequest, Repository, Request
from planner_svc.resolution.nab_search import search as nab_search
from planner_svc.resolution.neighbours import Neighbours
from planner_svc.resolution.outcomes import Resolver, Solved
from planner_svc.resolution.paths import Path, Ways
from planner_svc.resolution.search import Search, SearchLimit
from planner_svc.resolution.situation import Situation, fits, latest_of
from planner_svc.resolution.sources import NoSource, Sources
from planner_svc.resolution.texts import Narration
from planner_svc.resolution.world import World
from services.packages.installed import InstalledPackage, PackageOrigin
from services.packages.manifest import Requirement
from services.packages.ranges import Range
from services.packages.versions import Version

PACKAGE_SECONDS: Seconds = 1
"""How long the search of one package takes at most, so that a hard one leaves time for the others."""

_DEFAULT_BOUNDS = Bounds()


@dataclass(frozen=True, slots=True)
class DependencyPath:
    """
    A way along requirements.

    Attributes:
        start: The manual package that it starts from.
        requirements: What each package on the way requires; the last one is the package that it leads to.
    """

    start: str
    requirements: tuple[Requirement, ...] = ()


@dataclass(frozen=True, slots=True)
class Explanation:
    """
    An installed package with what it is there for, and what it can become.

    Attributes:
        installed: The package.
        paths: The ways by which manual packages lead to it, the shortest first; only some, if there are many.
        further_paths: The number of the others; of very many, a part.
        ranges: The ranges in which installed packages require it, each once, sorted by their texts.
        reachable: The version that an update of it alone would reach; None: a bound was reached before it was known.
        latest: The version that its publisher recommends; None: there is none.
        held_back_by: What holds it back from the latest version, or keeps it from being had; none also where a bound
            was reached before it was known.
    """

    installed: InstalledPackage
    paths: tuple[DependencyPath, ...]
    further_paths: int
    ranges: tuple[Range, ...]
    reachable: Version | None
    latest: Version | None
    held_back_by: tuple[Fact, ...]


def explain_packages(
    repositories: Iterable[Repository],
    installed: Iterable[InstalledPackage],
    names: Collection[str],
    options: Options,
    bounds: Bounds = _DEFAULT_BOUNDS,
    search: Search = nab_search,
) -> tuple[Explanation, ...]:
    """
    Explain installed packages, by name.

    Args:
        repositories: All configured ones, each with the packages that the explained ones lead to.
        installed: The packages of the stack.
        names: The packages to explain, which are installed.
        options: The platform, and packages whose prereleases count.
        bounds: How much all searches together may take.
        search: Finds solutions.
    """
    by_name = {each.name: each for each in sorted(installed, key=lambda each: each.name)}
    updates = _Updates(by_name, Sources(repositories, by_name, Request()), options, search)
    ordered = sorted(names)
    reachable = dict(updates.reachable(ordered, bounds))
    facts = dict(updates.facts(reachable, bounds))
    ways, ranges = _ways(by_name), _ranges(by_name)
    explanations = []
    for name in ordered:
        paths = ways.to(name)
        explanations.append(
            Explanation(
                by_name[name],
                tuple(_path(by_name, each) for each in paths.shortest),
                paths.further,
                ranges.get(name, ()),
                reachable[name],
                updates.latest(name),
                facts[name],
            )
        )
    return tuple(explanations)


@dataclass(frozen=True, slots=True)
class _Updates:
    """Updates each installed package in turn, while all others stay."""

    installed: Mapping[str, InstalledPackage]
    sources: Sources
    options: Options
    search: Search
    _neighbours: Neighbours = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_neighbours", Neighbours(self.installed, self.sources))

    def reachable(self, names: Iterable[str], bounds: Bounds) -> Iterator[tuple[str, Version | None]]:
        """The version that an update of each alone would reach; None: a bound was reached."""
        end = bounds.clock() + bounds.seconds
        for name in names:
            yield name, self._reachable(name, _until(bounds, end))

    def facts(self, reachable: Mapping[str, Version | None], bounds: Bounds) -> Iterator[tuple[str, tuple[Fact, ...]]]:
        """What holds each package back, given the version that it would reach."""
        end = bounds.clock() + bounds.explanation_seconds
        for name, version in reachable.items():
            yield name, self._facts(name, version, _until(bounds, end))

    def latest(self, name: str) -> Version | None:
        """The version of a package that its publisher recommends."""
        source = self.sources.of(name)
        return None if isinstance(source, NoSource) else latest_of(source)

    def _situation(self, name: str, request: Request) -> Situation:
        return Situation(self._neighbours.of(name), request, self.options, self.sources)

    def _reachable(self, name: str, bounds: Bounds) -> Version | None:
        own = self.installed[name].version
        source = self.sources.of(name)
        if isinstance(source, NoSource) or all(version <= own for version in source.package.versions):
            return own
        situation = self._situation(name, _update(name))
        try:
            outcome = Resolver(self.search, bounds.budget()).resolve(situation)
        except SearchLimit:
            return None
        if not isinstance(outcome, Solved):
            return own
        return outcome.world.choice(name).edition(outcome.solution[name]).version

    def _facts(self, name: str, reachable: Version | None, bounds: Bounds) -> tuple[Fact, ...]:
        installed, latest = self.installed[name], self.latest(name)
        is_nowhere = isinstance(self.sources.of(name), NoSource)
        if not is_nowhere and (latest is None or latest <= (reachable or installed.version)):
            return ()
        situation = self._situation(name, _update(name))
        world = World(situation, Level.STAY)
        unusable = Narration(world, [Reason(FactKind.PUBLISHED, name)]).facts
        if is_nowhere or latest is None:
            return unusable
        if installed.is_pinned or installed.is_suspended:
            return pin_fact(world, name)
        facts = self._facts_of_range(installed, latest)
        resolver = Resolver(self.search, bounds.explanation_budget())
        to_latest = World(situation, Level.STAY, instead={name: frozenset({latest})})
        facts += tuple(each for each in facts_against(resolver, to_latest) if not _is_request_of(each, name))
        # If all others go with the latest version, it is one that is not chosen newly.
        return facts if facts or resolver.budget.is_used_up() else unusable

    def _facts_of_range(self, installed: InstalledPackage, latest: Version) -> tuple[Fact, ...]:
        """The fact that a range was requested in which the latest version is not."""
        if installed.requested is None or fits(installed.requested, latest, False):
            return ()
        request = Request(installs=(PackageRequest(installed.name, installed.requested),))
        world = World(self._situation(installed.name, request), Level.STAY)
        return Narration(world, [Reason(FactKind.REQUESTED, installed.name)]).facts


def _update(name: str) -> Request:
    return Request(updates=(PackageRequest(name),))


def _is_request_of(fact: Fact, name: str) -> bool:
    """Whether *fact* is that the latest version of a package is looked for, which goes without saying."""
    return fact.kind is FactKind.REQUESTED and fact.packages == (name,)


def _until(bounds: Bounds, end: Seconds) -> Bounds:
    """The bounds of one search, which is over at *end* as well."""
    left = min(PACKAGE_SECONDS, max(0, end - bounds.clock()))
    return replace(bounds, seconds=left, explanation_seconds=left)


def _ways(installed: Mapping[str, InstalledPackage]) -> Ways:
    """The ways from the manual packages."""
    starts = [Reason(FactKind.INSTALLED, each.name) for each in installed.values() if _is_manual(each)]
    edges = [
        Reason(FactKind.REQUIRES, each.name, required.name, required.range)
        for each in installed.values()
        for required in each.requires
    ]
    return Ways([*starts, *edges])


def _is_manual(package: InstalledPackage) -> bool:
    return package.origin is PackageOrigin.MANUAL


def _path(installed: Mapping[str, InstalledPackage], path: Path) -> DependencyPath:
    return DependencyPath(
        path[0],
        tuple(
            required
            for name, after in pairwise(path)
            for required in installed[name].requires
            if required.name == after
        ),
    )


def _ranges(installed: Mapping[str, InstalledPackage]) -> dict[str, tuple[Range, ...]]:
    """The ranges in which each package is required, by their texts."""
    ranges: dict[str, dict[str, Range]] = {}
    for each in installed.values():
        for required in each.requires:
            if required.range is not None:
                ranges.setdefault(required.name, {})[str(required.range)] = required.range
    return {name: tuple(by_text[text] for text in sorted(by_text)) for name, by_text in ranges.items()}
