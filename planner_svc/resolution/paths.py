"""The ways by which requested and installed packages lead to others, along facts."""

from collections import deque
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from planner_svc.resolution.facts import Reason
from planner_svc.resolution.model import FactKind

MAX_PATHS = 10
"""The number of ways that a fact has."""

_MAX_COUNT = 1_000
"""The number of ways up to which they are counted, as there may be more than can be."""

_MAX_STEPS = 10_000
"""The number of beginnings of ways that are looked at."""

Path = tuple[str, ...]

_STARTS = frozenset({FactKind.REQUESTED, FactKind.INSTALLED, FactKind.PINNED, FactKind.SUSPENDED})


@dataclass(frozen=True, slots=True)
class Paths:
    """
    The ways to one package.

    Attributes:
        shortest: At most ``MAX_PATHS`` of them, shortest first, ties by name.
        further: The number of the others; of very many, a part.
    """

    shortest: tuple[Path, ...]
    further: int


class Ways:
    """Finds the ways along a set of facts."""

    def __init__(self, reasons: Collection[Reason]) -> None:
        """Go along *reasons*."""
        requirers: dict[str, set[str]] = {}
        for reason in reasons:
            if reason.kind is FactKind.REQUIRES:
                requirers.setdefault(reason.required, set()).add(reason.package)
        self._requirers = {name: sorted(names) for name, names in requirers.items()}
        self._starts = {reason.package for reason in reasons if reason.kind in _STARTS}
        self._paths: dict[str, Paths] = {}

    def to(self, package: str) -> Paths:
        """The ways from the requested and installed packages to *package*."""
        if package not in self._paths:
            ways = [path for path, _ in zip(self._ways(package), range(_MAX_COUNT), strict=False)]
            self._paths[package] = Paths(tuple(ways[:MAX_PATHS]), max(0, len(ways) - MAX_PATHS))
        return self._paths[package]

    def _ways(self, package: str) -> Iterator[Path]:
        """The ways to *package*, shortest first; none goes through a package twice."""
        queue: deque[Path] = deque([(package,)])
        for _ in range(_MAX_STEPS):
            if not queue:
                return
            path = queue.popleft()
            if path[0] in self._starts:
                yield path
            queue.extend((each, *path) for each in self._requirers.get(path[0], ()) if each not in path)
