"""
Namesakes: resources that have the kind and the name of an object that is created beside them
(docs/operations.md, "Duplicates").
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from planner_svc.matching.match import Matching
from planner_svc.sharing.ownership import ResourceHolders
from services.core.model import Key, PlatformTraits, Resource, ResourceKey, StackRecord
from services.core.text_lists import listed
from services.kinds.registry import KINDS

_SHOWN_PLACES = 5


def kinds_to_search(matching: Matching, platform: PlatformTraits) -> set[str]:
    """The kinds of which a plan creates a resource and whose names may repeat."""
    return {
        key.kind
        for key, match in matching.matches.items()
        if match.desired and not match.live and platform.kinds[key.kind].names_may_repeat
    }


def namesakes_of(matching: Matching, stack: StackRecord, platform: PlatformTraits) -> dict[Key, list[Resource]]:
    """
    The namesakes of each object that has any; a resource of the stack is none.

    Args:
        matching: The matches, with all live resources of ``kinds_to_search``.
        stack: The record that the plan is based on.
        platform: Which names may repeat.
    """
    kinds = kinds_to_search(matching, platform)
    if not kinds:
        return {}
    own = {(entry.key.kind, entry.resource_id) for entry in stack.resources}
    named: defaultdict[tuple[str, str], list[Resource]] = defaultdict(list)
    for resource_key, resource in matching.live.items():
        if resource.kind in kinds and resource_key not in own:
            named[resource.kind, resource.spec.display_name].append(resource)
    return {
        key: named[key.kind, match.desired.spec.display_name]
        for key, match in matching.matches.items()
        if match.desired and not match.live and (key.kind, match.desired.spec.display_name) in named
    }


def warnings_about(
    namesakes: Mapping[Key, Sequence[Resource]], holders: Mapping[ResourceKey, ResourceHolders], stack: StackRecord
) -> list[str]:
    """
    One sentence for each object that is created beside its *namesakes*.

    Args:
        namesakes: What ``namesakes_of`` returned.
        holders: The owners of the namesakes, where they have one.
        stack: The record that the plan is based on.
    """
    rest = "" if stack.is_kept else "; only a stack would match the two"
    return [
        f"{key} is created beside {_described(resources, holders)}{_effect(key)}{rest}"
        for key, resources in namesakes.items()
    ]


def _described(namesakes: Sequence[Resource], holders: Mapping[ResourceKey, ResourceHolders]) -> str:
    owners = [holders.get((each.kind, each.id), ResourceHolders()).owner for each in namesakes]
    # An unowned one comes first, as the stack could import it.
    places = ["without a stack"] if None in owners else []
    places += sorted({f"of {owner.called}" for owner in owners if owner})
    count = "another one" if len(namesakes) == 1 else f"{len(namesakes):,} others"
    return f"{count} named {namesakes[0].spec.display_name!r}, {listed(places, _SHOWN_PLACES)}"


def _effect(key: Key) -> str:
    effect = KINDS[key.kind].effect
    return f": each of them {effect}" if effect else ""
