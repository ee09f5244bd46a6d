"""Which entry of the inventory goes to another key, as several packages declare its object."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from services.core.model import InventoryEntry, Key, Object, PlatformTraits
from services.kinds.registry import family_and_name
from services.packages.package_text import Declaration, KeptPackage

_Name = tuple[str, str]
"""Family and full name: an object may change its kind within its family."""


def key_moves(
    previous: KeptPackage,
    objects: Iterable[Object],
    declarations: Mapping[Key, tuple[Declaration, ...]],
    platform: PlatformTraits,
    entries: Iterable[InventoryEntry],
) -> dict[Key, Key]:
    """
    The new keys of recorded objects whose resource goes to another declaration of the same object.

    A resource that several packages declare stays with the object that still has its name: under the key that is
    recorded, else under the first other one. If none has the name, it goes where the recorded key is declared, else to
    the first other declaration. Hence a package that drops such an object, or changes its name, takes nothing from the
    others.

    Args:
        previous: The package of the current revision.
        objects: All objects after the change.
        declarations: The declarations of objects that several packages declare after the change.
        platform: Which names are unique, and when they are equal.
        entries: The inventory of the stack.

    Returns:
        The new key of each such object, by its recorded key.
    """
    if not (previous.declarations or declarations):
        return {}
    recorded = sorted(entry.key for entry in entries if not entry.is_pending_delete)
    before, recorded_names = previous.applied, {family_and_name(key) for key in recorded}
    by_key = {item.key: item for item in objects}
    declared_as: defaultdict[_Name, list[Key]] = defaultdict(list)
    for key in by_key:
        for name in dict.fromkeys([family_and_name(key), *_names(key, declarations)]):
            declared_as[name].append(key)
    moves: dict[Key, Key] = {}
    for key in recorded:
        is_shared = key in previous.declarations or key not in by_key
        if key not in before or not is_shared:
            continue
        names = dict.fromkeys([family_and_name(key), *_names(key, previous.declarations)])
        candidates = [by_key[each] for name in names for each in declared_as[name]]
        unique_name = _unique_name(before[key], platform)
        target = next(
            (each for each in candidates if _unique_name(each, platform) == unique_name), next(iter(candidates), None)
        )
        # The name of *key* is one of the recorded ones.
        if target and family_and_name(target.key) not in recorded_names:
            moves[key] = target.key
            recorded_names.add(family_and_name(target.key))
    return moves


def _names(key: Key, declarations: Mapping[Key, tuple[Declaration, ...]]) -> Iterator[_Name]:
    return (family_and_name(each.key) for each in declarations.get(key, ()))


def _unique_name(item: Object, platform: PlatformTraits) -> tuple[str, str | None] | None:
    """Scope and unique name; None: the platform lacks the kind."""
    traits = platform.kinds.get(item.key.kind)
    return (traits.scope, traits.unique_name(item.spec.display_name)) if traits else None
