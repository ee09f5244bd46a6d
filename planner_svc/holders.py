"""The resources that have unique names, and how it is told that one is taken."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from services.core.errors import NameTaken
from services.core.model import Key, Object, PlatformTraits, Resource

Holders = Mapping[tuple[str, str | None], Sequence[Resource]]
"""The resources that have a name, by scope and name as the platform compares it; mostly one."""


def holders_of(resources: Iterable[Resource], platform: PlatformTraits) -> Holders:
    """Which of *resources* have which unique name."""
    found: defaultdict[tuple[str, str | None], list[Resource]] = defaultdict(list)
    for resource in resources:
        traits = platform.kinds[resource.kind]
        unique = traits.unique_name(resource.spec.display_name)
        if unique is not None:
            found[traits.scope, unique].append(resource)
    return found


def taken_by_object(item: Object, first: Object) -> NameTaken:
    """Two objects of a package that cannot both have their names."""
    name, held = item.spec.display_name, first.spec.display_name
    way_out = "" if held == name else "The platform takes the two names for one: rename one of the two objects."
    return NameTaken(*item.key, name, f"{first.key} of the same package{_as(held, name)}", way_out)


def taken_by_resources(key: Key, display_name: str, holders: Sequence[Resource]) -> NameTaken:
    """An object that cannot have the name of *holders*, or cannot be matched with any of them as they are several."""
    named = [
        f"{each.kind} resource {each.id} on the platform{_as(each.spec.display_name, display_name)}" for each in holders
    ]
    if not named[1:]:
        way_out = "Choose another name, or rename or delete that one, in the stack that owns it or on the platform."
        return NameTaken(*key, display_name, named[0], way_out)
    way_out = "Only one can have it: rename or delete the others, in the stack that owns them or on the platform."
    return NameTaken(*key, display_name, f"each of {', '.join(named[:-1])} and {named[-1]}", way_out)


def _as(held: str, wanted: str) -> str:
    """How a name is written that is the same for the platform, where that is not as *wanted*."""
    return "" if held == wanted else f" (as {held!r})"
