"""How far packages may move, which conditions count, and what a world has learned that solutions must not have."""

from dataclasses import dataclass
from enum import IntEnum

from planner_svc.resolution.model import ConflictCode
from planner_svc.resolution.search import Values


class Level(IntEnum):
    """How installed packages that are not requested may move."""

    STAY = 0
    UP = 1
    ANY = 2


@dataclass(frozen=True, slots=True)
class Lifted:
    """
    Conditions that do not count in a world.

    Attributes:
        cycles: Packages may require each other.
        pins: No package is pinned.
        suspensions: No package is suspended.
        yanked: Yanked versions are like others.
        prereleases: Prereleases are like releases.
        missing: Packages that cannot be had for one of these reasons are there in any version, and require nothing; an
            installed one requires what it does, so that it is no reason for what else it keeps from being done.
        unmatched: A range that no version is in is no range.
        downgrade: A requested package may go down.
        uninstalls: Nothing is uninstalled.
        platform: Versions are for any version of pkger.
    """

    cycles: bool = False
    pins: bool = False
    suspensions: bool = False
    yanked: bool = False
    prereleases: bool = False
    missing: frozenset[ConflictCode] = frozenset()
    unmatched: bool = False
    downgrade: bool = False
    uninstalls: bool = False
    platform: bool = False


@dataclass(frozen=True, slots=True)
class Exclusion:
    """
    A combination of values that no solution has.

    Attributes:
        parts: Packages with the values that do not go together, at least two.
        edges: The needs that it follows from.
    """

    parts: tuple[tuple[str, Values], ...]
    edges: tuple[tuple[str, Values, str], ...]


@dataclass(frozen=True, slots=True)
class Condition:
    """
    One of several needs that has to be met by some values of a package.

    Attributes:
        package: The package.
        values: Its values.
        alternatives: Packages with values, one of which is needed.
        edges: The needs that it follows from.
    """

    package: str
    values: Values
    alternatives: tuple[tuple[str, Values], ...]
    edges: tuple[tuple[str, Values, str], ...] = ()
