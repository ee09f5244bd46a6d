"""The resources that hold unique names, and the errors for a name that is taken."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from services.core.errors import NameTaken
from services.core.model import Key, Object, PlatformTraits, Resource

NameIndex = Mapping[tuple[str, str | None], Sequence[Resource]]
"""The resources that hold a name, by scope and name as the platform compares it; mostly one."""


def holders_of(resources: Iterable[Resource], platform: PlatformTraits) -> NameIndex:
    """The *resources* that hold unique names, by scope and name."""
    holders: defaultdict[tuple[str, str | None], list[Resource]] = defaultdict(list)
    for resource in resources:
        traits = platform.kinds[resource.kind]
        unique = traits.unique_name(resource.spec.display_name)
        if unique is not None:
            holders[traits.scope, unique].append(resource)
    return holders


def taken_by_object(item: Object, first: Object) -> NameTaken:
    """The error for two objects of a package that cannot both have their names."""
    name, first_name = item.spec.display_name, first.spec.display_name
    remedy = "" if first_name == name else "The platform treats the two names as equal: rename one of the two objects."
    return NameTaken(*item.key, name, f"{first.key} of the same package{_as(first_name, name)}", remedy)


def taken_by_resources(key: Key, display_name: str, holders: Sequence[Resource]) -> NameTaken:
    """The error for an object whose name one or more resources hold already, the *holders*."""
    named = [
        f"{each.kind} resource {each.id} on the platform{_as(each.spec.display_name, display_name)}" for each in holders
    ]
    if not named[1:]:
        remedy = "Choose another name, or rename or delete that one, in the stack that owns it or on the platform."
        return NameTaken(*key, display_name, named[0], remedy)
    remedy = "Only one can have it: rename or delete the others, in the stack that owns them or on the platform."
    return NameTaken(*key, display_name, f"each of {', '.join(named[:-1])} and {named[-1]}", remedy)


def _as(spelling: str, name: str) -> str:
    """The spelling of a name that the platform treats as equal to *name*; empty if both are spelled the same."""
    return "" if spelling == name else f" (as {spelling!r})"
