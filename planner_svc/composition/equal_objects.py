"""Objects of several packages that are one resource, as the platform has their name only once."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from planner_svc.composition.full_names import renamed, with_both
from planner_svc.composition.model import SharedDifference
from services.core.model import Key, Object, PlatformTraits
from services.kinds.comparing import differences
from services.kinds.registry import family_of


def merged(
    objects: Sequence[Object], platform: PlatformTraits, recorded: Iterable[Key]
) -> tuple[list[Object], list[SharedDifference]]:
    """
    Make one object of those whose unique names are equal, with the labels of all of them.

    Two such objects of one package are left as they are: the plan refuses them.

    Args:
        objects: The objects of all packages, under full names.
        platform: Which names are unique, and when they are equal.
        recorded: The keys of the stack. The object that has one of them keeps its key, else the first one does.

    Returns:
        The objects, each at the place of the one that keeps its key, and the differences of objects that are not equal.
    """
    recorded_names = {_name_of(key) for key in recorded}
    groups = [
        sorted(group, key=lambda item: _name_of(item.key) not in recorded_names)
        for group in _with_equal_names(objects, platform)
    ]
    if not groups:
        return list(objects), []
    names = {_name_of(other.key): first.key.name for first, *others in groups for other in others}

    def kept_name(family: str, name: str) -> str:
        return names.get((family, name), name)

    by_key = {item.key: renamed(item, kept_name) for item in objects}
    differing = []
    for first, *others in groups:
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
    return list(by_key.values()), differing


def _with_equal_names(objects: Iterable[Object], platform: PlatformTraits) -> list[list[Object]]:
    """The objects that the platform can only have as one resource; at most one of each package."""
    groups: defaultdict[tuple[str, str], dict[str, Object]] = defaultdict(dict)
    for item in objects:
        # The plan refuses kinds that the platform lacks.
        traits = platform.kinds.get(item.key.kind)
        unique_name = traits.unique_name(item.spec.display_name) if traits else None
        if traits and unique_name is not None:
            groups[traits.scope, unique_name].setdefault(item.key.name.partition(".")[0], item)
    return [[*group.values()] for group in groups.values() if len(group) > 1]


def _name_of(key: Key) -> tuple[str, str]:
    """Family and name: an object may change its kind within its family."""
    return family_of(key.kind), key.name
