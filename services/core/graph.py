"""Topological order of keys."""

from collections.abc import Collection, Mapping
from typing import TypeVar

from services.core.errors import DependencyCycle
from services.core.model import Key

K = TypeVar("K", bound=Key)


def waves(needs: Mapping[K, Collection[K]]) -> list[list[K]]:
    """
    Group keys so that each group depends on earlier groups only.

    Args:
        needs: For each key, the keys that must come first. A key that is only a dependency has none itself.

    Returns:
        The groups in order, each sorted, so that the result depends on *needs* only.

    Raises:
        DependencyCycle: Some keys depend on each other; the error lists them in order.
    """
    remaining = {key: set(first) for key, first in needs.items()}
    for first in needs.values():
        for key in first:
            remaining.setdefault(key, set())
    dependants: dict[K, list[K]] = {}
    for key, first in remaining.items():
        for other in first:
            dependants.setdefault(other, []).append(key)
    groups: list[list[K]] = []
    ready = sorted(key for key, first in remaining.items() if not first)
    while ready:
        groups.append(ready)
        following: list[K] = []
        for key in ready:
            del remaining[key]
            for dependant in dependants.get(key, ()):
                remaining[dependant].discard(key)
                if not remaining[dependant]:
                    following.append(dependant)
        ready = sorted(following)
    if remaining:
        raise DependencyCycle(" -> ".join(str(key) for key in _cycle(remaining)))
    return groups


def _cycle(remaining: Mapping[K, Collection[K]]) -> list[K]:
    """One cycle among keys that all depend on another of them, starting and ending with its smallest key."""
    key = min(remaining)
    # A dict keeps the order and is fast to search; with a list, a cycle of a whole package would take minutes.
    seen: dict[K, None] = {}
    while key not in seen:
        seen[key] = None
        key = min(remaining[key])
    met = list(seen)
    cycle = met[met.index(key) :]
    start = cycle.index(min(cycle))
    return [*cycle[start:], *cycle[:start], cycle[start]]
