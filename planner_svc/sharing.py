"""
What stacks share: one owns a resource, and any number of others use it (docs/reference/engine.md, "Shared resources").
"""

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import replace
from typing import NamedTuple

from planner_svc.associations import Association, label_id_of, recorded_labels, unwanted_labels
from planner_svc.differences import Differences
from planner_svc.matching import Holder, Match, Matching
from services.core.diff import shown_value
from services.core.errors import InUse, Owned, ResourceOwned, SharedDiffers
from services.core.listing import and_more
from services.core.model import (
    Desired,
    FieldChange,
    InventoryEntry,
    Key,
    Origin,
    PlatformTraits,
    ResourceKey,
    StackRecord,
    Use,
)

_SHOWN_FIELDS = 5


class Holders(NamedTuple):
    """The stack that owns a resource, or None, and those that use it, the oldest user first; the caller's own too."""

    owner: Holder | None = None
    users: tuple[Holder, ...] = ()


def shareable(matching: Matching, differing: Set[Key], platform: PlatformTraits) -> list[ResourceKey]:
    """
    The resources whose owner or users a plan has to know.

    That is what it takes from elsewhere, and what it changes or lets go, of the kinds whose names find them.

    Args:
        matching: The matches.
        differing: Keys of the objects that are not as the resource is.
        platform: Which names are unique.
    """
    named = {kind for kind, traits in platform.kinds.items() if traits.unique_name("") is not None}
    found = [
        resource
        for key, match in matching.matches.items()
        if (resource := match.resource) and resource[0] in named and (key in differing or _is_at_stake(match, matching))
    ]
    return found + [(key.kind, entry.resource_id) for key, entry in matching.released.items()]


def with_holders(matching: Matching, holders: Mapping[ResourceKey, Holders], stack: StackRecord) -> Matching:
    """*matching* with the other stacks that own or use its resources, as *holders* has them."""
    if not holders:
        return matching
    matches = {
        key: _held(match, holders.get(match.resource), stack) if match.resource else match
        for key, match in matching.matches.items()
    }
    released: dict[Key, InventoryEntry] = {}
    for key, entry in matching.released.items():
        resource = (key.kind, entry.resource_id)
        left = Match(key, None, entry, matching.live.get(resource))
        held = _held(left, holders.get(resource), stack)
        if held.users:
            matches[key] = held
        else:
            released[key] = entry
    return replace(matching, matches={key: matches[key] for key in sorted(matches)}, released=released)


def refuse_owned(matching: Matching, holders: Mapping[ResourceKey, Holders], stack: StackRecord) -> None:
    """
    Refuse what an operation of another stack claims: only what stands in a record can be shared.

    Args:
        matching: The matches.
        holders: Owners of the resources that the plan takes from elsewhere, as far as they have any.
        stack: The stack that the plan is for.

    Raises:
        ResourceOwned: Names all such resources, and who has them.
    """
    owned = []
    for match in matching.adopted:
        assert match.live is not None  # noqa: S101 - what is adopted is there
        owner = holders.get((match.live.kind, match.live.id), Holders()).owner
        if owner and owner.stack_id != stack.id:
            what = f"resource {match.live.id}"
            owned.append(Owned(*match.key, what, match.live.id, owner.stack_id, owner.stack_name, owner.operation))
    if owned:
        raise ResourceOwned(owned)


def refuse_sharing(desired: Desired, matching: Matching, stack: StackRecord) -> None:
    """
    Refuse what other stacks own, where the policy shares nothing (``share: never``), or nobody named the stack.

    Raises:
        ResourceOwned: Names all of it, and who has it.
    """
    if not desired.is_for_nameless and stack.policy.get("share") != "never":
        return
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
        if match.wanted and match.live and match.owner
    ]
    if owned:
        raise ResourceOwned(owned)


def refuse_differing(matching: Matching, found: Differences) -> None:
    """
    Refuse to share what is not as the package wants it (``share: equal``).

    Raises:
        SharedDiffers: Names all of it, with owner and fields.
    """
    differing = [
        _difference(match, match.owner, found)
        for key, match in matching.matches.items()
        if match.wanted and match.owner and (found.changed.get(key) or key in found.replaced)
    ]
    if differing:
        raise SharedDiffers(differing)


def refuse_used_replacements(matching: Matching, found: Differences) -> None:
    """
    Refuse to replace what other stacks use: they would be left with what is deleted.

    Raises:
        InUse: Names all uses.
    """
    uses = [
        f"{key} would be replaced, as {found.replaced[key]} cannot change, but {user} uses it"
        for key, match in matching.matches.items()
        if key in found.replaced
        for user in called(match.users)
    ]
    if uses:
        raise InUse(uses)


def uses_of(matching: Matching, links: Iterable[Association], stack: StackRecord) -> tuple[Use, ...]:
    """
    What a plan counts on and the record of *stack* does not say yet: resources of others, and labels that are attached.

    Returns:
        The uses, sorted by key.
    """
    found = {
        Use(key, match.live.kind, match.live.id)
        for key, match in matching.matches.items()
        if match.wanted and match.live and match.owner and not _is_recorded_use(match)
    }
    found |= {
        Use(link.resource, link.resource.kind, link.resource_id, link.label_id)
        for link in links
        if link.wanted and link.attached and not (stack.is_kept and _is_recorded_link(link, matching))
    }
    return tuple(sorted(found))


def staying_labels(matching: Matching) -> tuple[Use, ...]:
    """The labels that leave the record and stay attached, as the records of other stacks want them, sorted by key."""
    return tuple(
        sorted(
            Use(match.key, match.live.kind, match.live.id, label_id)
            for match in matching.matches.values()
            if match.live and match.recorded and (match.owner or match.users)
            for label in unwanted_labels(match, matching)
            if (label_id := label_id_of(label, matching)) and match.is_wanted_elsewhere(label_id)
        )
    )


def remarks_of(matching: Matching, found: Differences) -> Iterator[str]:
    """What a plan means for the other stacks that own or use its resources, one sentence for each resource."""
    for key, match in matching.matches.items():
        users = called(match.users)
        if match.stays and match.owner:
            yield f"{key} belongs to {match.owner.called}, and stays"
        elif match.stays and users:
            heirs = called(user for user in match.users if not user.operation) or users
            others = f"; so does {', '.join(each for each in users if each != heirs[0])}" if users[1:] else ""
            stays = "stays, as" if match.live else "is gone from the platform, and"
            yield f"{key} {stays} {heirs[0]} uses it{others}: {heirs[0]} becomes its owner"
        elif users and found.changed.get(key):
            yield f"{key} is used by {', '.join(users)}: the change is theirs as well"


def called(holders: Iterable[Holder]) -> list[str]:
    """What people call the stacks of *holders*, each once, in order."""
    return list(dict.fromkeys(holder.called for holder in holders))


def _is_at_stake(match: Match, matching: Matching) -> bool:
    """Whether a resource comes from elsewhere, leaves, or is to lose a label."""
    # What is shared is no adoption only once its owner is known.
    return match.is_removal or match.is_adoption or bool(unwanted_labels(match, matching))


def _held(match: Match, found: Holders | None, stack: StackRecord) -> Match:
    if found is None:
        return match
    owner = found.owner
    # What an operation claims stands in no record yet, or no longer.
    is_elsewhere = owner is not None and owner.stack_id != stack.id and not owner.operation
    others = tuple(user for user in found.users if user.stack_id != stack.id)
    return match._replace(owner=owner if is_elsewhere else None, users=others)


def _difference(match: Match, owner: Holder, found: Differences) -> str:
    assert match.live is not None  # noqa: S101 - what has an owner is there
    what = f"{match.live.kind} {match.live.spec.display_name!r} of {owner.called}"
    if match.live.kind != match.key.kind:
        return f"{match.key} shares its name with {what}, which is of another kind"
    fields = list(map(_field, found.changed[match.key]))
    more = and_more(len(fields) - _SHOWN_FIELDS, ", ", "fields")
    return f"{match.key} shares {what}, where {', '.join(fields[:_SHOWN_FIELDS])}{more}"


def _field(change: FieldChange) -> str:
    return f"{change.path.lstrip('/')} is {shown_value(change.old)} and not {shown_value(change.new)}"


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
