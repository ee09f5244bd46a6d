"""The packages that were to be updated, and are not at the version that comes first."""

from collections.abc import Iterator

from planner_svc.resolution.conflicts import facts_against, pin_fact
from planner_svc.resolution.facts import Reason
from planner_svc.resolution.model import ConflictCode, Fact, FactKind, HeldBack
from planner_svc.resolution.outcomes import Resolver, Solved
from planner_svc.resolution.situation import Situation, latest_of
from planner_svc.resolution.sources import NoSource, Source
from planner_svc.resolution.texts import Narration
from planner_svc.resolution.world import World
from services.packages.installed import InstalledPackage
from services.packages.versions import Version


def held_back(resolver: Resolver, situation: Situation, solved: Solved) -> tuple[HeldBack, ...]:
    """The packages, by name, each with the facts that hold it; the facts are left out when a bound is reached."""
    names = sorted(situation.installed if situation.request.updates_all else situation.updates)
    return tuple(each for name in names for each in _held_back(resolver, situation, solved, name))


def _held_back(resolver: Resolver, situation: Situation, solved: Solved, name: str) -> Iterator[HeldBack]:
    installed, world = situation.installed[name], solved.world
    source = situation.sources.of(name)
    if installed.is_pinned or installed.is_suspended:
        if _has_higher(installed, source):
            yield HeldBack(name, pin_fact(world, name))
    elif isinstance(source, NoSource) and source.code is ConflictCode.REPOSITORY_UNKNOWN and name in solved.solution:
        yield HeldBack(name, Narration(world, [Reason(FactKind.PUBLISHED, name)]).facts)
    elif name in solved.solution and solved.solution[name] != solved.first[name]:
        yield HeldBack(name, _facts(resolver, solved, name))


def _has_higher(installed: InstalledPackage, source: Source | NoSource) -> bool:
    latest = latest_of(source) if isinstance(source, Source) else None
    return latest is not None and latest > installed.version


def _facts(resolver: Resolver, solved: Solved, name: str) -> tuple[Fact, ...]:
    """Why a package is not at the version that comes first: by itself, or after those that are decided before it."""
    if resolver.budget.is_used_up():
        return ()
    world = solved.world
    first = {name: _version(world, name, solved.first[name])}
    facts = facts_against(resolver, World(world.situation, world.level, world.lifted, first))
    if facts:
        return facts
    for other in solved.first:
        if other == name:
            break
        if world.is_requested(other):
            first[other] = _version(world, other, solved.solution[other])
    return facts_against(resolver, World(world.situation, world.level, world.lifted, first))


def _version(world: World, name: str, value: int) -> frozenset[Version]:
    version = world.choice(name).edition(value).version
    return frozenset({version} if version else ())
