"""
The resources of other stacks that would lose a label or a reference by a deletion (docs/reference/engine.md,
"Expectations").
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

from planner_svc.matching.match import Match, Matching
from planner_svc.sharing.ownership import ResourceHolders
from services.core.errors import InUse
from services.core.model import LABEL, Key, PlatformTraits, Resource, ResourceKey, StackRecord, Step


def possible_users(matching: Matching, differing: Set[Key], platform: PlatformTraits) -> Sequence[ResourceKey]:
    """
    The resources that no object names and that use resources that the plan may delete. Another stack may own them.

    Args:
        matching: The matches.
        differing: Keys of the objects that differ from their resource.
        platform: Which fields can only be changed by a replacement.
    """
    deleted = {
        (match.live.kind, match.live.id)
        for key, match in matching.matches.items()
        if match.live and (key in differing or match.is_removal) and _may_be_deleted(match, platform)
    }
    if not deleted:
        return []
    named = {(match.live.kind, match.live.id) for match in matching.matches.values() if match.live}
    named |= {(key.kind, entry.resource_id) for key, entry in matching.untouched.items()}
    return [
        key for key, resource in matching.live.items() if key not in named and not deleted.isdisjoint(_used(resource))
    ]


def refuse_used(
    steps: Iterable[Step], matching: Matching, holders: Mapping[ResourceKey, ResourceHolders], stack: StackRecord
) -> None:
    """
    Refuse to detach a label from a resource of another stack, or to remove a reference from one.

    Args:
        steps: The steps of the plan.
        matching: The matches.
        holders: Owners of the resources of ``possible_users``, where they have one.
        stack: The stack that the plan is for.

    Raises:
        InUse: Names all uses.
    """
    uses = []
    # A step on a resource that no object names only removes labels and references to something that the plan deletes.
    for step in (each for each in steps if each.resource_id and not each.key.name):
        resource = step.key.kind, step.resource_id
        owner = holders.get(resource, ResourceHolders()).owner
        if owner and owner.stack_id != stack.id:
            name = matching.live[resource].spec.display_name
            holder = f"{step.key.kind} {name!r} of {owner.called}"
            uses += [f"{lost} {holder}" for lost in _removed(step)]
    if uses:
        raise InUse(uses)


def _may_be_deleted(match: Match, platform: PlatformTraits) -> bool:
    if match.desired is None or match.live is None:
        return match.is_deletion
    return match.live.kind != match.key.kind or bool(platform.kinds[match.live.kind].immutable_paths)


def _used(resource: Resource) -> Iterator[ResourceKey]:
    yield from ((LABEL, label) for label in resource.label_ids)
    yield from ((each.kind, each.id) for each in resource.references)


def _removed(step: Step) -> Iterator[str]:
    if step.label:
        yield f"{step.label} is attached to"
    yield from (f"{each.key} is referred to by" for each in step.old_references if each not in step.references)
