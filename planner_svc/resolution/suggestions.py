"""What works instead of a request that does not."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from planner_svc.resolution.changes import changes_of
from planner_svc.resolution.conditions import Level, Lifted
from planner_svc.resolution.model import (
    ConflictCode,
    Options,
    PackageRequest,
    Request,
    Suggestion,
    SuggestionKind,
)
from planner_svc.resolution.outcomes import Resolver, Solved, Unsolved, same_failure
from planner_svc.resolution.search import Failure, values_of
from planner_svc.resolution.situation import Situation, fits
from planner_svc.resolution.solutions import Finder
from planner_svc.resolution.world import World
from services.packages.ranges import Range
from services.packages.versions import Version


@dataclass(frozen=True, slots=True)
class Suggester:
    """
    Looks for suggestions.

    Attributes:
        resolver: Solves what is suggested.
        situation: What cannot be solved.
        unsolved: Its failure.
        code: Why.
        resolvable: Whether there is a solution at level 1.
    """

    resolver: Resolver
    situation: Situation
    unsolved: Unsolved
    code: ConflictCode
    resolvable: bool

    def suggestions(self) -> Iterator[Suggestion]:
        """
        The suggestions, in their order.

        Raises:
            SearchLimit: A bound was reached; those before are right.
        """
        options = self.situation.options
        if self.resolvable:
            yield from self._with(SuggestionKind.UPDATE, replace(options, update_dependencies=True))
        yield from self._other_version()
        if not self.resolvable and not options.allow_downgrade and self._may_go_down():
            yield from self._with(SuggestionKind.DOWNGRADE, replace(options, allow_downgrade=True))
        if self.code is ConflictCode.PINNED:
            yield from self._unpin()
        if self.code is ConflictCode.REQUIRED_BY:
            yield from self._with(SuggestionKind.CASCADE, replace(options, cascade=True))
        if options.keep:
            yield from self._remove()

    def _may_go_down(self) -> bool:
        """Whether a package that matters could go down. It saves a search that would fail for the same reasons."""
        requested = {*self.situation.installs, *self.situation.updates} & self.situation.installed.keys()
        return bool(requested) or same_failure(self.unsolved, Level.ANY) is None

    def _with(self, kind: SuggestionKind, options: Options) -> Iterator[Suggestion]:
        """The request with further consent."""
        outcome = self.resolver.resolve(replace(self.situation, options=options))
        if isinstance(outcome, Solved):
            request = self.situation.request
            yield Suggestion(
                kind, request, options, changes_of(outcome.world, outcome.solution), command_of(request, options)
            )

    def _other_version(self) -> Iterator[Suggestion]:
        """The first package of which another release works while all others stay."""
        request = self.situation.request
        for package in sorted((*request.installs, *request.updates), key=lambda each: each.name):
            version = self._highest(package)
            if version is None:
                continue
            other = replace(request, installs=_replaced(request.installs, package, version))
            other = replace(other, updates=_replaced(request.updates, package, version))
            situation = replace(self.situation, request=other)
            outcome = self.resolver.at(situation, Level.STAY)
            if isinstance(outcome, Solved):
                options = self.situation.options
                changes = changes_of(outcome.world, outcome.solution)
                command = command_of(other, options)
                yield Suggestion(SuggestionKind.OTHER_VERSION, other, options, changes, command)
                return

    def _highest(self, package: PackageRequest) -> Version | None:
        """The highest release of a package that works, and was not requested; None: there is none."""
        installed = self.situation.installed.get(package.name)
        if installed and (installed.is_pinned or installed.is_suspended):
            return None
        versions = _others(World(self.situation, Level.STAY), package)
        world = World(self.situation, Level.STAY, Lifted(), {package.name: versions})
        finder = Finder(world, self.resolver.search, self.resolver.budget)
        choice = world.choice(package.name)
        values, highest = choice.domain, None
        while values:
            answer = finder.find({package.name: values})
            if isinstance(answer, Failure):
                break
            highest = answer[package.name]
            values &= choice.versions.above(highest)
        return None if highest is None else choice.edition(highest).version

    def _unpin(self) -> Iterator[Suggestion]:
        """The solution at level 1 without pins."""
        options = replace(self.situation.options, update_dependencies=True)
        situation = replace(self.situation, options=options)
        outcome = self.resolver.at(situation, Level.UP, Lifted(pins=True))
        if isinstance(outcome, Solved):
            changes = changes_of(outcome.world, outcome.solution)
            changed = {change.name for change in changes if change.old is not None}
            names = tuple(name for name, each in situation.installed.items() if each.is_pinned and name in changed)
            command = ("pkger", "packages", "unpin", *names)
            yield Suggestion(SuggestionKind.UNPIN, situation.request, options, changes, command, names)

    def _remove(self) -> Iterator[Suggestion]:
        """The solution without packages that are kept only for their data."""
        options = replace(self.situation.options, keep=frozenset())
        outcome = self.resolver.resolve(replace(self.situation, options=options))
        if isinstance(outcome, Solved):
            changes = changes_of(outcome.world, outcome.solution)
            names = sorted(self.situation.options.keep - outcome.solution.keys())
            command = ("pkger", "uninstall", *names)
            yield Suggestion(SuggestionKind.REMOVE, self.situation.request, options, changes, command)


def _others(world: World, package: PackageRequest) -> frozenset[Version]:
    """The releases of a package that were not requested; of an installed one only higher ones."""
    choice = world.choice(package.name)
    allowed = world.allows_prereleases(package.name)
    others = choice.versions.all & world.eligible(choice) & ~choice.domain
    if choice.own is not None:
        others &= choice.versions.above(choice.own)
    versions = [choice.edition(value).version for value in values_of(others)]
    return frozenset(
        version
        for version in versions
        if version is not None
        and not version.is_prerelease
        and (package.versions is None or not fits(package.versions, version, allowed))
    )


def _replaced(
    packages: tuple[PackageRequest, ...], package: PackageRequest, version: Version
) -> tuple[PackageRequest, ...]:
    """*packages* with another version of one of them."""
    versions = Range.parse(str(version)) if version.revision is None else version
    return tuple(replace(each, versions=versions) if each is package else each for each in packages)


def command_of(request: Request, options: Options) -> tuple[str, ...]:
    """The command that requests the same; empty: it takes more than one, or names a folder."""
    names: tuple[str, ...] = ()
    verbs = []
    if request.installs:
        verbs.append("install")
        names = tuple(map(str, request.installs))
    if request.updates or request.updates_all:
        verbs.append("update")
        names = tuple(map(str, request.updates))
    if request.uninstalls:
        verbs.append("uninstall")
        names = request.uninstalls
    is_of_folder = any(each.repository and each.repository.startswith(".") for each in request.installs)
    if len(verbs) != 1 or (request.updates and request.updates_all) or is_of_folder:
        return ()
    return ("pkger", verbs[0], *names, *_flags(options))


def _flags(options: Options) -> Iterator[str]:
    flags = {
        "--update-dependencies": options.update_dependencies,
        "--allow-downgrade": options.allow_downgrade,
        "--cascade": options.cascade,
        "--keep-unused": options.keep_unused,
    }
    yield from (flag for flag, is_set in flags.items() if is_set)
    for name in sorted(options.prereleases):
        yield from ("--pre", name)
