"""Topological order of keys."""

from collections.abc import Collection, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
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
    sorter = TopologicalSorter({key: sorted(needs[key]) for key in sorted(needs)})
    try:
        sorter.prepare()
    except CycleError as error:
        raise DependencyCycle(" -> ".join(map(str, _from_smallest(error.args[1])))) from None
    groups: list[list[K]] = []
    while sorter.is_active():
        ready = sorted(sorter.get_ready())
        groups.append(ready)
        sorter.done(*ready)
    return groups


def _from_smallest(cycle: Sequence[K]) -> list[K]:
    """
    The keys of *cycle* in reverse order. In *cycle*, each key is needed by the next one; in the result, each key needs
    the next one, and the smallest key is first and last.
    """
    keys = list(reversed(cycle[1:]))
    start = keys.index(min(keys))
    return [*keys[start:], *keys[:start], keys[start]]
