"""Which objects of a stack only have another key (docs/reference/engine.md, "Matching")."""

from collections import defaultdict
from collections.abc import Iterable

from services.core.model import Key

NamedResource = tuple[Key, str]
"""The key of an object, and its display name."""


def key_changes(leaving: Iterable[NamedResource], coming: Iterable[NamedResource]) -> dict[Key, Key]:
    """
    Find the objects that leave a stack and come back under another key.

    An object that leaves and one that comes are the same if they have the same kind and display name, and no other
    object that leaves or comes has these.

    Args:
        leaving: The objects that the stack has and the package lacks.
        coming: The objects that the package has and the stack lacks.

    Returns:
        The new key of each such object, by its old key.
    """
    old, new = _singles(leaving), _singles(coming)
    return {old[each]: new[each] for each in sorted(old.keys() & new.keys())}


def _singles(named: Iterable[NamedResource]) -> dict[tuple[str, str], Key]:
    """The objects that no other one of *named* equals in kind and display name, by these."""
    keys: defaultdict[tuple[str, str], list[Key]] = defaultdict(list)
    for key, display_name in named:
        keys[key.kind, display_name].append(key)
    return {each: equal_keys[0] for each, equal_keys in keys.items() if len(equal_keys) == 1}
