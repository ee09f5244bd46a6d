"""Which objects of a stack a change of its packages compares, and which it leaves as they are."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence, Set

from planner_svc.composition.full_names import named, names_any, package_of
from planner_svc.composition.model import Composition
from services.core.model import InventoryEntry, Key, Object
from services.kinds.registry import family_and_name
from services.packages.installed import InstalledPackage
from services.packages.package_text import Declaration


def left_out(
    composition: Composition,
    before: Mapping[Key, Sequence[Declaration]],
    entries: Collection[InventoryEntry],
    installed: Collection[InstalledPackage],
    compared: Set[str],
    moves: Mapping[Key, Key],
) -> frozenset[Key]:
    """
    The keys that a plan leaves as they are, like those of skipped objects.

    Compared are the objects of some packages, also those that they share with others or shared before, and all that
    these refer to, or are recorded to have as labels; and the entries that belong to no installed package. Suspended
    packages are never compared.

    Args:
        composition: All objects after the change.
        before: The declarations of the current revision.
        entries: The inventory of the stack.
        installed: The packages after the change.
        compared: Names of the packages that are compared.
        moves: The new keys of recorded objects whose resource goes to the declaration of another package. Compared are
            also those that get a resource, and those that name an object that gives one away.
    """
    objects = {item.key: item for item in composition.package.objects}
    shared = {
        each.key
        for declarations in before.values()
        if not compared.isdisjoint(package_of(each.key.name) for each in declarations)
        for each in declarations
    }
    moved = {family_and_name(key) for key in moves}
    starts = [
        item.key
        for item in objects.values()
        if item.key in shared or not compared.isdisjoint(_packages(composition, item.key)) or names_any(item, moved)
    ]
    reached = _reached(objects.values(), starts)
    suspended = {each.name for each in installed if each.is_suspended}
    left = {key for key in objects if key not in reached or _packages(composition, key) <= suspended}
    others = {each.name for each in installed} - compared
    # What a package of these has no more: a deletion that is still to be done, or a resource that is protected.
    gone = {each.object_key for each in entries if each.object_key not in objects}
    left |= {key for key in gone if package_of(key.name) in others}
    left.difference_update(moves, moves.values())
    labels = {label for each in entries if each.object_key not in left for label in each.associations}
    return frozenset(left - {label for label in labels if not _packages(composition, label) <= suspended})


def _reached(objects: Iterable[Object], keys: Iterable[Key]) -> set[Key]:
    """The objects with *keys*, and all that they refer to."""
    by_name: defaultdict[tuple[str, str], list[Object]] = defaultdict(list)
    for item in objects:
        by_name[family_and_name(item.key)].append(item)
    new = [family_and_name(key) for key in keys]
    reached: set[Key] = set()
    while new:
        for item in by_name[new.pop()]:
            if item.key not in reached:
                reached.add(item.key)
                new += [(family, name) for _, family, name in named(item)]
    return reached


def _packages(composition: Composition, key: Key) -> set[str]:
    """The packages that declare an object."""
    declarations = composition.declarations.get(key)
    return {package_of(each.key.name) for each in declarations} if declarations else {package_of(key.name)}
