"""
What other stacks have that would lose a label or a reference by a deletion (docs/reference/engine.md, "Expectations").
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

from planner_svc.matching import Match, Matching
from planner_svc.sharing import Holders
from services.core.errors import InUse
from services.core.model import LABEL, Key, PlatformTraits, Resource, ResourceKey, StackRecord, Step


def possible_users(matching: Matching, differing: Set[Key], platform: PlatformTraits) -> Sequence[ResourceKey]:
    """
    The resources that no object names and that use what the plan may delete: their owners are to be asked for.

    Args:
        matching: The matches.
        differing: Keys of the objects that are not as the resource is.
        platform: What can only be changed by a replacement.
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
    steps: Iterable[Step], matching: Matching, holders: Mapping[ResourceKey, Holders], stack: StackRecord
) -> None:
    """
    Refuse to take anything from what another stack has.

    Args:
        steps: The steps of the plan.
        matching: The matches.
        holders: Owners of ``possible_users``, as far as they have any.
        stack: The stack that the plan is for.

    Raises:
        InUse: Names all uses.
    """
    uses = []
    # Of what no object names, a plan only takes away what refers to something that it deletes.
    for step in (each for each in steps if each.resource_id and not each.key.name):
        resource = step.key.kind, step.resource_id
        owner = holders.get(resource, Holders()).owner
        if owner and owner.stack_id != stack.id:
            name = matching.live[resource].spec.display_name
            holder = f"{step.key.kind} {name!r} of {owner.called}"
            uses += [f"{what} {holder}" for what in _taken(step)]
    if uses:
        raise InUse(uses)


def _may_be_deleted(match: Match, platform: PlatformTraits) -> bool:
    if match.wanted is None or match.live is None:
        return match.is_deletion
    return match.live.kind != match.key.kind or bool(platform.kinds[match.live.kind].immutable_paths)


def _used(resource: Resource) -> Iterator[ResourceKey]:
    yield from ((LABEL, label) for label in resource.label_ids)
    yield from ((each.kind, each.id) for each in resource.references)


def _taken(step: Step) -> Iterator[str]:
    if step.label:
        yield f"{step.label} is attached to"
    yield from (f"{each.key} is referred to by" for each in step.old_references if each not in step.references)
