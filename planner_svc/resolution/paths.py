"""The ways by which requested and installed packages lead to others, along facts."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from planner_svc.resolution.facts import Reason
from planner_svc.resolution.graphs import components
from planner_svc.resolution.model import FactKind

MAX_PATHS = 10
"""The number of ways that a fact has."""

MAX_NAMES = 20_000
"""The number of names in the ways of all facts together: along a chain, it would grow with the square of its length."""

_MAX_COUNT = 1_000
"""The number of ways to a package up to which they are counted, as there may be more than can be."""

_MAX_STEPS = 200_000
"""The number of steps along requirements; where there are many of these, fewer ways are counted."""

_MAX_CHECKS = 1_000_000
"""The number of packages that are looked at to see whether a way would lead through a package twice."""

Path = tuple[str, ...]

_STARTS = frozenset({FactKind.REQUESTED, FactKind.INSTALLED, FactKind.PINNED, FactKind.SUSPENDED})


@dataclass(frozen=True, slots=True)
class Paths:
    """
    The ways to one package.

    Attributes:
        shortest: At most ``MAX_PATHS`` of them, shortest first, ties by name; none if they would have too many names.
        further: The number of the others; of very many, a part.
    """

    shortest: tuple[Path, ...]
    further: int


@dataclass(frozen=True, slots=True, eq=False)
class _Way:
    """A way to *package*; ways share their beginnings, as all of them together may be long."""

    package: str
    before: "_Way | None" = None
    length: int = 1

    def path(self) -> Path:
        """The packages on the way."""
        return tuple(way.package for way in self.backwards())[::-1]

    def backwards(self) -> "Iterator[_Way]":
        """The way, and its beginnings, longest first."""
        way: _Way | None = self
        while way is not None:
            yield way
            way = way.before


class Ways:
    """Finds the ways along a set of facts, shortest first; none leads through a package twice."""

    def __init__(self, reasons: Collection[Reason]) -> None:
        """Go along *reasons*."""
        required: dict[str, set[str]] = {}
        for reason in reasons:
            required.setdefault(reason.package, set())
            if reason.kind is FactKind.REQUIRES:
                required[reason.package].add(reason.required)
                required.setdefault(reason.required, set())
        self._required = {name: sorted(names) for name, names in required.items()}
        self._group_of = {name: at for at, group in enumerate(components(self._required)) for name in group}
        self._checks = _MAX_CHECKS
        self._names = MAX_NAMES
        self._ways: dict[str, list[_Way]] = {}
        self._find(sorted({reason.package for reason in reasons if reason.kind in _STARTS}))

    def to(self, package: str) -> Paths:
        """The ways from the requested and installed packages to *package*; the names of all answers are bounded."""
        ways = self._ways.get(package, [])
        shortest = ways[:MAX_PATHS]
        names = sum(way.length for way in shortest)
        if names > self._names:
            return Paths((), len(ways))
        self._names -= names
        return Paths(tuple(way.path() for way in shortest), len(ways) - len(shortest))

    def _find(self, starts: Collection[str]) -> None:
        """Find the ways from *starts*: all ways of one length before longer ones."""
        edges = sum(map(len, self._required.values()))
        most = max(MAX_PATHS, min(_MAX_COUNT, _MAX_STEPS // max(1, edges)))
        ways = [_Way(name) for name in starts]
        while ways:
            for way in ways:
                self._ways.setdefault(way.package, []).append(way)
            counts: dict[str, int] = {}
            longer = []
            for way in ways:
                for required in self._required[way.package]:
                    count = counts.get(required, len(self._ways.get(required, ())))
                    if count < most and not self._leads_through(required, way):
                        counts[required] = count + 1
                        longer.append(_Way(required, way, way.length + 1))
            ways = sorted(longer, key=lambda way: way.package)

    def _leads_through(self, package: str, way: _Way) -> bool:
        """Whether *way* leads through *package*, or the number of checks is used up."""
        if package not in self._ways:
            return False
        group = self._group_of[package]
        for each in way.backwards():
            # A way that has left a group of packages which require each other does not come back.
            if self._group_of[each.package] != group:
                return False
            self._checks -= 1
            if each.package == package or self._checks < 0:
                return True
        return False
