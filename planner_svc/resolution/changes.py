"""A solution as changes of what is installed, and what is odd about it."""

from collections.abc import Iterator
from dataclasses import replace

from planner_svc.resolution.graphs import ordered
from planner_svc.resolution.model import Change, ChangeAction, ResolutionWarning, WarningCode
from planner_svc.resolution.search import Assignment
from planner_svc.resolution.situation import fits
from planner_svc.resolution.solutions import edges
from planner_svc.resolution.sources import Source
from planner_svc.resolution.world import World
from services.packages.installed import InstalledPackage, PackageOrigin


def changes_of(world: World, solution: Assignment) -> tuple[Change, ...]:
    """The changes, each after those of what it requires; removals come last, in the reverse order."""
    graph = edges(world, solution)
    requirers: dict[str, list[str]] = {name: [] for name in graph}
    for name in sorted(graph):
        for required in graph[name]:
            requirers[required].append(name)
    changes = [
        replace(change, required_by=tuple(requirers[name]))
        for name in ordered(graph)
        for change in _changes_of(world, name, solution)
    ]
    installed = world.situation.installed
    before = ordered(
        {
            name: sorted(required.name for required in each.requires if required.name in installed)
            for name, each in installed.items()
        }
    )
    removals = [
        Change(ChangeAction.REMOVE, name, old=installed[name].version)
        for name in reversed(before)
        if name not in solution
    ]
    return (*changes, *removals)


def _changes_of(world: World, name: str, solution: Assignment) -> Iterator[Change]:
    installed = world.situation.installed.get(name)
    version = world.choice(name).edition(solution[name]).version
    is_requested = name in world.situation.installs
    if installed is None:
        source = world.situation.sources.of(name)
        repository = source.repository if isinstance(source, Source) else None
        origin = PackageOrigin.MANUAL if is_requested else PackageOrigin.DEPENDENCY
        yield Change(ChangeAction.INSTALL, name, new=version, origin=origin, repository=repository)
        return
    if version is not None and version != installed.version:
        action = ChangeAction.UPDATE if version > installed.version else ChangeAction.DOWNGRADE
        yield Change(action, name, old=installed.version, new=version)
    if is_requested and installed.origin is not PackageOrigin.MANUAL:
        yield Change(ChangeAction.MARK, name, origin=PackageOrigin.MANUAL)


def warnings_of(world: World, solution: Assignment) -> tuple[ResolutionWarning, ...]:
    """What is odd about *solution*, sorted."""
    situation = world.situation
    silent = [
        ResolutionWarning(WarningCode.REPOSITORY_UNAVAILABLE, repository=name) for name in situation.sources.silent()
    ]
    staying = [each for name, each in situation.installed.items() if not _moves(world, name, solution)]
    warnings = [*silent]
    for installed in staying:
        warnings += [*_broken_before(world, installed, solution), *_unwelcome(world, installed, solution)]
    return tuple(sorted(warnings, key=lambda each: (each.code.value, each.package, each.dependency, each.repository)))


def _moves(world: World, name: str, solution: Assignment) -> bool:
    """Whether an installed package moves, or goes."""
    return name not in solution or world.is_new(name, solution[name])


def _broken_before(world: World, installed: InstalledPackage, solution: Assignment) -> Iterator[ResolutionWarning]:
    allows = world.situation.options.prereleases
    for required in installed.requires:
        other = solution.get(required.name)
        version = None if other is None else world.choice(required.name).edition(other).version
        if version is None or not fits(required.range, version, required.name in allows):
            yield ResolutionWarning(WarningCode.BROKEN_BEFORE, installed.name, required.name)


def _unwelcome(world: World, installed: InstalledPackage, solution: Assignment) -> Iterator[ResolutionWarning]:
    edition = world.choice(installed.name).edition(solution[installed.name])
    platform = world.situation.options.platform
    source = world.situation.sources.of(installed.name)
    published = source.package.versions.get(installed.version) if isinstance(source, Source) else None
    # Nobody published what came from a folder.
    if published and installed.repository is not None and installed.digest not in ("", published.digest):
        yield ResolutionWarning(WarningCode.VERSION_CHANGED, installed.name)
    if edition.yanked is not None:
        yield ResolutionWarning(WarningCode.YANKED, installed.name)
    if platform is not None and not fits(edition.platform, platform.release, False):
        yield ResolutionWarning(WarningCode.PLATFORM, installed.name)
