"""Facts as sentences."""

from collections.abc import Iterable, Iterator

from planner_svc.resolution.facts import Reason, is_below, versions_that_require
from planner_svc.resolution.model import Fact, FactKind
from planner_svc.resolution.paths import Ways
from planner_svc.resolution.published import Published, is_empty, listed_versions
from planner_svc.resolution.sources import NoSource
from planner_svc.resolution.world import World
from services.packages.ranges import Range
from services.packages.versions import Version

MAX_CHARACTERS = 2**20
"""The size of all facts without their ways: more than anyone reads, and a message of gRPC has 4 MiB at most."""

_PRESENT = (FactKind.INSTALLED, FactKind.PINNED, FactKind.SUSPENDED)
_ORDER = (FactKind.REQUESTED, *_PRESENT, FactKind.PUBLISHED, FactKind.REQUIRES)


class Narration:
    """
    Tells of a set of facts.

    Attributes:
        world: The world in which they count.
        reasons: The facts in the order in which they are met from the requested packages on.
        requirers: For each required package, the facts that require it.
        facts: The same facts as texts, as many as there is space for.
        is_whole: Whether all of them are there.
    """

    def __init__(self, world: World, reasons: Iterable[Reason]) -> None:
        """Tell of *reasons*."""
        self.world = world
        self.reasons = in_order(reasons)
        self._ranges: dict[str, dict[str, Range | Version]] = {}
        self.requirers: dict[str, list[Reason]] = {}
        self._versions_of: dict[str, dict[Reason, list[Version]]] = {}
        self._ways = Ways(self.reasons)
        for reason in self.reasons:
            self._read(reason)
        self.facts = tuple(self._within_bounds())
        self.is_whole = len(self.facts) == len(self.reasons)

    def _read(self, reason: Reason) -> None:
        situation = self.world.situation
        ranges = self._ranges.setdefault(reason.required or reason.package, {})
        if reason.kind is FactKind.REQUIRES:
            self.requirers.setdefault(reason.required, []).append(reason)
            if reason.range is not None:
                ranges[str(reason.range)] = reason.range
        request = situation.installs.get(reason.package) or situation.updates.get(reason.package)
        if reason.kind is FactKind.REQUESTED and request and request.versions is not None:
            ranges[str(request.versions)] = request.versions

    # Facts

    def _within_bounds(self) -> Iterator[Fact]:
        characters = 0
        for reason in self.reasons:
            fact = self._fact(reason)
            characters += len(fact.text) + sum(map(len, fact.packages))
            if characters > MAX_CHARACTERS:
                return
            yield fact

    def _fact(self, reason: Reason) -> Fact:
        kind, name = reason.kind, reason.package
        names: tuple[str, ...] = (name,)
        if kind is FactKind.REQUIRES:
            text = self.requirement(reason)
            names = (name, reason.required)
        elif kind is FactKind.REQUESTED:
            text = self._request(name)
        elif kind is FactKind.PUBLISHED:
            source = self.world.situation.sources.of(name)
            kind = FactKind.NOWHERE if isinstance(source, NoSource) else kind
            text = self.published(name).text()
        elif kind is FactKind.INSTALLED and name in self.world.situation.options.keep and name not in self.requirers:
            kind, text = FactKind.UNUSED, f"{name} is required by nothing, and has data"
        else:
            text = self._installed(reason)
        paths = self._ways.to(name)
        return Fact(kind, names, text, paths.shortest, paths.further)

    def _request(self, name: str) -> str:
        situation = self.world.situation
        if name in self.world.instead:
            return f"{name} {listed_versions(sorted(self.world.instead[name], reverse=True))} comes first"
        if name in situation.installs:
            versions = situation.installs[name].versions
            text = f"{name} {versions or self._own_or_latest(name)}".rstrip()
            return f"{text} was asked for{_emptiness(versions)}"
        if name in situation.updates:
            versions = situation.updates[name].versions
            return f"an update of {name}{f' to {versions}' if versions else ''} was asked for{_emptiness(versions)}"
        if name in situation.request.uninstalls:
            return f"the removal of {name} was asked for"
        return f"the removal of {name} was asked for, as it requires a package that is removed"

    def _own_or_latest(self, name: str) -> str:
        choice = self.world.choice(name)
        value = choice.versions.own or choice.versions.latest
        return "" if value is None else str(choice.edition(value).version)

    def requirement(self, reason: Reason) -> str:
        """A fact of the kind REQUIRES."""
        required = reason.required if reason.range is None else f"{reason.required} {reason.range}"
        return f"{self.requirer(reason, 'requires', 'require')} {required}{_emptiness(reason.range)}"

    def requirer(self, reason: Reason, singular: str, plural: str) -> str:
        """The versions that say a fact of the kind REQUIRES, and a verb."""
        if reason.package not in self._versions_of:
            self._versions_of[reason.package] = versions_that_require(self.world, reason.package)
        versions = self._versions_of[reason.package].get(reason, [])
        if len(versions) == 1:
            return f"{reason.package} {versions[0]} {singular}"
        return f"{listed_versions(versions)} of {reason.package} {plural}"

    def _installed(self, reason: Reason) -> str:
        installed = self.world.situation.installed[reason.package]
        if reason.kind is FactKind.PINNED:
            return f"{installed.name} is pinned at {installed.version}"
        if reason.kind is FactKind.SUSPENDED:
            return f"{installed.name} is suspended at {installed.version}"
        text = f"{installed.name} {installed.version} is installed"
        return f"{text}, and only a lower version would do" if self.is_below(reason.package) else text

    def is_below(self, name: str) -> bool:
        """Whether an installed package would have to go down."""
        return is_below(self.world, name, self.requirers.get(name, ()))

    def published(self, name: str) -> Published:
        """The published versions of a package, with the ranges of the facts."""
        ranges = self._ranges.get(name, {})
        return Published(self.world, name, [ranges[text] for text in sorted(ranges)])


def in_order(reasons: Iterable[Reason]) -> list[Reason]:
    """The facts about a package before those about what it requires, requested packages first."""
    about: dict[str, list[Reason]] = {}
    for reason in sorted(reasons, key=_by_kind):
        about.setdefault(reason.package, []).append(reason)
    required = {each.required for group in about.values() for each in group}

    def rank(name: str) -> tuple[bool, bool, bool, str]:
        kinds = {each.kind for each in about[name]}
        # Installed packages that are required come after what requires them.
        return FactKind.REQUESTED not in kinds, kinds.isdisjoint(_PRESENT), name in required, name

    order: list[Reason] = []
    done: set[str] = set()
    for start in sorted(about, key=rank):
        queue = [start]
        for name in queue:
            if name not in done:
                done.add(name)
                order += about.get(name, ())
                queue += [each.required for each in about.get(name, ()) if each.kind is FactKind.REQUIRES]
    return order


def _by_kind(reason: Reason) -> tuple[str, int, str, str]:
    return reason.package, _ORDER.index(reason.kind), reason.required, str(reason.range)


def _emptiness(versions: Range | Version | None) -> str:
    return ", and no version can be in that range" if is_empty(versions) else ""
