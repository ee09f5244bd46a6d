"""
Shared resources: one stack owns a resource, and others may use it (docs/reference/engine.md, "Shared resources").
"""

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import replace
from typing import NamedTuple

from planner_svc.changes.associations import Association, label_id_of, recorded_labels, unwanted_labels
from planner_svc.changes.differences import Differences
from planner_svc.matching.desired import Desired
from planner_svc.matching.match import Match, Matching, ResourceHolder
from services.core.diff import shown_fields
from services.core.errors import InUse, Owned, ResourceOwned, SharedDiffers
from services.core.model import (
    InventoryEntry,
    Key,
    Origin,
    PlatformTraits,
    ResourceKey,
    StackRecord,
    Use,
)


class ResourceHolders(NamedTuple):
    """The stack that owns a resource, or None, and its users, the oldest first; the caller's stack is among them."""

    owner: ResourceHolder | None = None
    users: tuple[ResourceHolder, ...] = ()


def shareable(matching: Matching, differing: Set[Key], platform: PlatformTraits) -> list[ResourceKey]:
    """
    The resources whose owner or users the planner looks up.

    These are the resources that the plan adopts, changes, removes or releases. Except for released ones, only resources
    of kinds with unique names count: only those can be shared.

    Args:
        matching: The matches.
        differing: Keys of the objects that differ from their resource.
        platform: Which names are unique.
    """
    named = {kind for kind, traits in platform.kinds.items() if traits.unique_name("") is not None}
    resources = [
        resource
        for key, match in matching.matches.items()
        if (resource := match.resource) and resource[0] in named and (key in differing or _is_at_stake(match, matching))
    ]
    return resources + [(key.kind, entry.resource_id) for key, entry in matching.released.items()]


def with_holders(matching: Matching, holders: Mapping[ResourceKey, ResourceHolders], stack: StackRecord) -> Matching:
    """*matching* with the other stacks of *holders* that own or use its resources."""
    if not holders:
        return matching
    matches = {
        key: _with_other_stacks(match, holders.get(match.resource), stack) if match.resource else match
        for key, match in matching.matches.items()
    }
    released: dict[Key, InventoryEntry] = {}
    for key, entry in matching.released.items():
        resource = (key.kind, entry.resource_id)
        left = Match(key, None, entry, matching.live.get(resource))
        released_match = _with_other_stacks(left, holders.get(resource), stack)
        if released_match.users:
            matches[key] = released_match
        else:
            released[key] = entry
    return replace(matching, matches={key: matches[key] for key in sorted(matches)}, released=released)


def refuse_owned(matching: Matching, holders: Mapping[ResourceKey, ResourceHolders], stack: StackRecord) -> None:
    """
    Refuse to adopt a resource that an operation of another stack claims: only recorded resources can be shared.

    Args:
        matching: The matches.
        holders: Owners of the resources that the plan adopts, where they have one.
        stack: The stack that the plan is for.

    Raises:
        ResourceOwned: Names all such resources and their owners.
    """
    owned = []
    for match in matching.adopted:
        assert match.live is not None  # noqa: S101 - an adopted resource is live
        owner = holders.get((match.live.kind, match.live.id), ResourceHolders()).owner
        if owner and owner.stack_id != stack.id:
            resource = f"resource {match.live.id}"
            owned.append(Owned(*match.key, resource, match.live.id, owner.stack_id, owner.stack_name, owner.operation))
    if owned:
        raise ResourceOwned(owned)


def refuse_sharing(desired: Desired, matching: Matching, stack: StackRecord) -> None:
    """
    Refuse to use resources of other stacks if the policy forbids it (``share: never``).

    A request that names no stack may not use resources of stacks with a name either.

    Raises:
        ResourceOwned: Names all such resources and their owners.
    """
    is_never = stack.policy.get("share") == "never"
    owned = [
        Owned(
            *match.key,
            f"resource {match.live.id} ({match.live.spec.display_name!r})",
            match.live.id,
            match.owner.stack_id,
            match.owner.stack_name,
            "",
        )
        for match in matching.matches.values()
        if match.desired
        and match.live
        and match.owner
        and (is_never or (desired.is_for_nameless and match.owner.stack_name))
    ]
    if owned:
        raise ResourceOwned(owned)


def with_take_overs(desired: Desired, matching: Matching, differences: Differences, stack: StackRecord) -> Matching:
    """
    *matching*, where a plan whose request names no stack takes over what other stacks own and what differs.

    Such a request comes from a client that knows no owners, so its last apply wins (docs/http.md, "Which stack an apply
    without one joins"). A resource that would have to be replaced stays, as the record of its owner has its id.
    """
    if not desired.is_for_nameless or "share" in stack.policy:
        return matching
    taken = {
        key: match._replace(takes_over=True)
        for key, match in matching.matches.items()
        if match.desired and match.owner and differences.changed.get(key) and key not in differences.replaced
    }
    return replace(matching, matches={**matching.matches, **taken}) if taken else matching


def refuse_differing(matching: Matching, differences: Differences) -> None:
    """
    Refuse to share resources that differ from the package (``share: equal``), but not to take them over.

    Raises:
        SharedDiffers: Names all such resources, with owner and fields.
    """
    differing = [
        _difference(match, match.owner, differences)
        for key, match in matching.matches.items()
        if match.desired
        and match.owner
        and not match.takes_over
        and (differences.changed.get(key) or key in differences.replaced)
    ]
    if differing:
        raise SharedDiffers(differing)


def refuse_used_replacements(matching: Matching, differences: Differences) -> None:
    """
    Refuse to replace resources that other stacks use: their records would have the id of a deleted resource.

    Raises:
        InUse: Names all uses.
    """
    uses = [
        f"{key} would be replaced, as {differences.replaced[key]} cannot change, but {user} uses it"
        for key, match in matching.matches.items()
        if key in differences.replaced
        for user in called(match.users)
    ]
    if uses:
        raise InUse(uses)


def uses_of(matching: Matching, links: Iterable[Association], stack: StackRecord) -> tuple[Use, ...]:
    """
    The uses that a plan relies on and that the record of *stack* lacks: resources of others, and attached labels.

    Returns:
        The uses, sorted by key.
    """
    uses = {
        Use(key, match.live.kind, match.live.id)
        for key, match in matching.matches.items()
        if match.desired and match.live and match.owner and not (match.takes_over or _is_recorded_use(match))
    }
    uses |= {
        Use(link.resource, link.resource.kind, link.resource_id, link.label_id)
        for link in links
        if link.is_desired and link.attached and not (stack.is_kept and _is_recorded_link(link, matching))
    }
    return tuple(sorted(uses))


def staying_labels(matching: Matching) -> tuple[Use, ...]:
    """The labels that leave the record and stay attached, as records of other stacks want them; sorted by key."""
    return tuple(
        sorted(
            Use(match.key, match.live.kind, match.live.id, label_id)
            for match in matching.matches.values()
            if match.live and match.recorded and (match.owner or match.users)
            for label in unwanted_labels(match, matching)
            if (label_id := label_id_of(label, matching)) and match.is_wanted_elsewhere(label_id)
        )
    )


def remarks_of(matching: Matching, differences: Differences) -> Iterator[str]:
    """The effects of a plan on the other stacks that own or use its resources, one sentence for each resource."""
    for key, match in matching.matches.items():
        users = called(match.users)
        if match.stays and match.owner:
            yield f"{key} belongs to {match.owner.called}, and stays"
        elif match.stays and users:
            next_owner = (called(user for user in match.users if not user.operation) or users)[0]
            others = f"; so does {', '.join(each for each in users if each != next_owner)}" if users[1:] else ""
            stays = "stays, as" if match.live else "is gone from the platform, and"
            yield f"{key} {stays} {next_owner} uses it{others}: {next_owner} becomes its owner"
        elif match.takes_over and match.owner:
            used = f" and used by {', '.join(users)}" if users else ""
            yield f"{key} is taken over from {match.owner.called}{used}: the change is theirs as well"
        elif users and differences.changed.get(key):
            yield f"{key} is used by {', '.join(users)}: the change is theirs as well"


def called(holders: Iterable[ResourceHolder]) -> list[str]:
    """The stacks of *holders* as messages name them, each once, in order."""
    return list(dict.fromkeys(holder.called for holder in holders))


def _is_at_stake(match: Match, matching: Matching) -> bool:
    """Whether a resource is removed, is adopted or shared, or loses a label."""
    # A shared resource counts as an adoption until its owner is known.
    return match.is_removal or match.is_adoption or bool(unwanted_labels(match, matching))


def _with_other_stacks(match: Match, holders: ResourceHolders | None, stack: StackRecord) -> Match:
    if holders is None:
        return match
    owner = holders.owner
    # A resource that an operation claims is not in a record yet, or no longer.
    is_elsewhere = owner is not None and owner.stack_id != stack.id and not owner.operation
    others = tuple(user for user in holders.users if user.stack_id != stack.id)
    return match._replace(owner=owner if is_elsewhere else None, users=others)


def _difference(match: Match, owner: ResourceHolder, differences: Differences) -> str:
    assert match.live is not None  # noqa: S101 - an owned resource is live
    resource = f"{match.live.kind} {match.live.spec.display_name!r} of {owner.called}"
    if match.live.kind != match.key.kind:
        return f"{match.key} shares its name with {resource}, which is of another kind"
    return f"{match.key} shares {resource}, where {shown_fields(differences.changed[match.key])}"


def _is_recorded_use(match: Match) -> bool:
    entry = match.recorded
    is_shared = entry is not None and entry.origin is Origin.SHARED
    return is_shared and entry is not None and match.live is not None and entry.resource_id == match.live.id


def _is_recorded_link(link: Association, matching: Matching) -> bool:
    resource, label = matching.matches.get(link.resource), matching.matches.get(link.label)
    if not (resource and resource.recorded and label and label.recorded):
        return False
    entry = resource.recorded
    if (entry.resource_id, label.recorded.resource_id) != (link.resource_id, link.label_id):
        return False
    return link.label in entry.associations or link.label in recorded_labels(entry, matching)
