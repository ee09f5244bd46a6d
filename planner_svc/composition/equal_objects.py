"""Objects of several packages that are one resource, as the platform has their name only once."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from planner_svc.composition.full_names import names_any, package_of, renamed, with_both
from planner_svc.composition.model import SharedDifference
from services.core.model import Key, Object, PlatformTraits
from services.kinds.comparing import differences
from services.kinds.registry import family_and_name
from services.packages.package_text import Declaration


class Merging(NamedTuple):
    """
    Objects without equal names.

    Attributes:
        objects: The objects, each at the place of the one that keeps its key.
        differing: The differences of objects with equal names that are not equal.
        declarations: The declarations of each object that was several, or names such an object, by its key.
    """

    objects: tuple[Object, ...]
    differing: tuple[SharedDifference, ...] = ()
    declarations: Mapping[Key, tuple[Declaration, ...]] = MappingProxyType({})


def merged(
    objects: Sequence[Object], platform: PlatformTraits, recorded: Iterable[Key], previous: Iterable[Object] = ()
) -> Merging:
    """
    Make one object of those whose unique names are equal, with the labels of all of them.

    Two such objects of one package are left as they are: the plan refuses them.

    Args:
        objects: The objects of all packages, under full names.
        platform: Which names are unique, and when they are equal.
        recorded: The keys of the stack. The object that has one of them keeps its key, else the first one does.
        previous: The objects of the current revision. Of several recorded objects, the one that had the name keeps its
            key: its resource has it.
    """
    recorded_names = {family_and_name(key) for key in recorded}
    display_names = {family_and_name(item.key): item.spec.display_name for item in previous}

    def rank(item: Object) -> tuple[bool, bool]:
        name = family_and_name(item.key)
        return name not in recorded_names, not _is_equal_name(item, display_names.get(name), platform)

    groups = [sorted(group, key=rank) for group in _with_equal_names(objects, platform)]
    if not groups:
        return Merging(tuple(objects))
    names = {family_and_name(other.key): first.key.name for first, *others in groups for other in others}

    def kept_name(family: str, name: str) -> str:
        return names.get((family, name), name)

    by_key = {item.key: renamed(item, kept_name) for item in objects}
    differing = []
    shared_names = {family_and_name(item.key) for group in groups for item in group}
    declarations: dict[Key, tuple[Declaration, ...]] = {
        item.key: (_declaration(item),) for item in objects if names_any(item, shared_names)
    }
    for first, *others in groups:
        members = sorted((first, *others), key=lambda item: item.key)
        declarations |= {first.key: tuple(map(_declaration, members))}
        for other in others:
            declarations.pop(other.key, None)
        for other in others:
            item, equal = by_key[first.key], by_key.pop(other.key)
            fields = differences(
                *(first.key.kind, item.spec, other.key.kind, equal.spec), platform.kinds[first.key.kind].set_paths
            )
            if first.key.kind != other.key.kind:
                differing.append(SharedDifference(first.key, other.key, ()))
            elif fields:
                differing.append(SharedDifference(first.key, other.key, fields))
            by_key[first.key] = with_both(item, equal)
    return Merging(tuple(by_key.values()), tuple(differing), declarations)


def _declaration(item: Object) -> Declaration:
    return Declaration(item.key, item.associations, item.lifecycle)


def _with_equal_names(objects: Iterable[Object], platform: PlatformTraits) -> list[list[Object]]:
    """The objects that the platform can only have as one resource; at most one of each package."""
    groups: defaultdict[tuple[str, str], dict[str, Object]] = defaultdict(dict)
    for item in objects:
        # The plan refuses kinds that the platform lacks.
        traits = platform.kinds.get(item.key.kind)
        unique_name = traits.unique_name(item.spec.display_name) if traits else None
        if traits and unique_name is not None:
            groups[traits.scope, unique_name].setdefault(package_of(item.key.name), item)
    return [[*group.values()] for group in groups.values() if len(group) > 1]


def _is_equal_name(item: Object, display_name: str | None, platform: PlatformTraits) -> bool:
    """Whether *display_name* and that of an *item* with a unique name are equal for the platform."""
    unique_name = platform.kinds[item.key.kind].unique_name
    return display_name is not None and unique_name(display_name) == unique_name(item.spec.display_name)
