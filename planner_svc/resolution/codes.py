"""The code of a conflict: the one kind of change that would have helped."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from planner_svc.resolution.catalogue import Edition
from planner_svc.resolution.conditions import Level, Lifted
from planner_svc.resolution.model import ConflictCode
from planner_svc.resolution.outcomes import Resolver, Solved, Unsolved
from planner_svc.resolution.search import values_of
from planner_svc.resolution.situation import Situation, fits
from planner_svc.resolution.sources import UNAVAILABLE, NoSource, Source
from planner_svc.resolution.world import World


@dataclass(frozen=True, slots=True)
class Classified:
    """
    A code, with the solution that there would be.

    Attributes:
        code: The code.
        solution: The solution without the condition that the code names; None: the code needs none.
        package: The package that the code is about, if that is known without a solution.
    """

    code: ConflictCode
    solution: Solved | None = None
    package: str = ""


def missing_package(situation: Situation) -> str | None:
    """A package to update or uninstall that is not installed; None: there is none."""
    names = {*situation.updates, *situation.request.uninstalls} - situation.installed.keys()
    return min(names, default=None)


def classify(resolver: Resolver, unsolved: Unsolved) -> Classified:
    """The code of what is unsolved at level 1."""
    situation = unsolved.world.situation
    for name in sorted({*situation.installs, *situation.updates}):
        if _fits_nothing(unsolved.world, name):
            return Classified(ConflictCode.NO_MATCHING_VERSION, package=name)
    removed = [each for name, each in situation.installed.items() if name in situation.uninstalls]
    unmovable = {
        ConflictCode.PINNED: [each.name for each in removed if each.is_pinned and not each.is_suspended],
        ConflictCode.SUSPENDED: [each.name for each in removed if each.is_suspended],
    }
    for condition in _conditions(unsolved):
        if condition.code and unmovable.get(condition.code):
            return Classified(condition.code, package=unmovable[condition.code][0])
        if condition.is_relevant():
            outcome = resolver.any_in(World(situation, Level.UP, condition.lifted))
            if isinstance(outcome, Solved):
                return Classified(condition.code or _reason_of(outcome), outcome)
    return Classified(ConflictCode.VERSION_CONFLICT)


def _fits_nothing(world: World, name: str) -> bool:
    """Whether no version at all, installed, yanked or prerelease, is one that is requested."""
    situation = world.situation
    if not isinstance(situation.sources.of(name), Source):
        return False
    versions = (situation.installs.get(name) or situation.updates[name]).versions
    published = [each.version for each in world.choice(name).versions.editions]
    return not any(version and fits(versions, version, True) for version in published)


@dataclass(frozen=True, slots=True)
class _Condition:
    """
    A condition that may be what keeps a request from being carried out.

    Attributes:
        code: Its code; None: the solution tells.
        lifted: The condition.
        is_relevant: Whether there may be a solution without it. It saves searches that would fail for the same reasons.
    """

    code: ConflictCode | None
    lifted: Lifted
    is_relevant: Callable[[], bool]


def _conditions(unsolved: Unsolved) -> Iterator[_Condition]:
    world, situation = unsolved.world, unsolved.world.situation
    # What a world has learned follows from its other conditions, too: then all of them may be relevant.
    has_learned = bool(world.conditions)
    names = sorted(name for name in unsolved.failure.packages if not name.startswith("@"))
    packages = set(names)

    def editions(test: Callable[[Edition], bool]) -> Callable[[], bool]:
        return lambda: any(
            test(each) for name in _all(world, names, has_learned) for each in world.choice(name).versions.editions
        )

    def installed(flag: str) -> Callable[[], bool]:
        return lambda: any(
            getattr(each, flag) and (has_learned or name in packages) for name, each in situation.installed.items()
        )

    def missing(*codes: ConflictCode) -> Callable[[], bool]:
        sources = situation.sources
        return lambda: any(
            isinstance(source := sources.of(name), NoSource) and source.code in codes
            for name in _all(world, names, has_learned)
        )

    yield _Condition(ConflictCode.CYCLE, Lifted(cycles=True), lambda: has_learned)
    yield _Condition(ConflictCode.PINNED, Lifted(pins=True), installed("is_pinned"))
    yield _Condition(ConflictCode.SUSPENDED, Lifted(suspensions=True), installed("is_suspended"))
    yield _Condition(ConflictCode.YANKED_ONLY, Lifted(yanked=True), editions(lambda each: each.yanked is not None))
    yield _Condition(
        ConflictCode.PRERELEASE_ONLY,
        Lifted(prereleases=True),
        editions(lambda each: each.version is not None and each.version.is_prerelease),
    )
    for code in UNAVAILABLE:
        yield _Condition(code, Lifted(missing=frozenset({code})), missing(code))
    yield _Condition(None, Lifted(missing=frozenset(UNAVAILABLE)), missing(*UNAVAILABLE))
    yield _Condition(
        ConflictCode.NO_MATCHING_VERSION,
        Lifted(unmatched=True),
        lambda: any(_has_unmatched(world, name) for name in _all(world, names, has_learned)),
    )
    yield _Condition(
        ConflictCode.DOWNGRADE,
        Lifted(downgrade=True),
        lambda: not situation.options.allow_downgrade and bool(situation.installs or situation.updates),
    )
    yield _Condition(ConflictCode.REQUIRED_BY, Lifted(uninstalls=True), lambda: bool(situation.uninstalls))
    yield _Condition(
        ConflictCode.PLATFORM,
        Lifted(platform=True),
        editions(lambda each: situation.options.platform is not None and each.platform is not None),
    )


def _all(world: World, names: list[str], has_learned: bool) -> list[str]:
    return sorted(world.universe()) if has_learned else names


def _has_unmatched(world: World, name: str) -> bool:
    """Whether some version requires a range that no version is in."""
    return any(
        required.range is not None and not world.mask(required.name, required.range)
        for value in values_of(world.domain(name))
        for required in world.requirements(name, value)
    )


def _reason_of(outcome: Solved) -> ConflictCode:
    """The first of the reasons for which packages of a solution cannot be had."""
    codes = {
        source.code
        for name, value in outcome.solution.items()
        if outcome.world.choice(name).edition(value).version is None
        and isinstance(source := outcome.world.situation.sources.of(name), NoSource)
    }
    return next(code for code in UNAVAILABLE if code in codes)
