"""Which live resource belongs to which object (engine.md 2)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple

from services.core.errors import KindUnsupported, NameTaken, PackageEmpty, ResourceOwned
from services.core.model import (
    LABEL,
    Desired,
    InventoryEntry,
    Key,
    Object,
    Origin,
    PlatformTraits,
    Resource,
    StackRecord,
    by_key,
)
from services.kinds.table import KINDS

ResourceKey = tuple[str, str]
"""Kind and remote id."""


class Match(NamedTuple):
    """
    One object key with all that is known of it; object and entry are never both None.

    Attributes:
        key: The key.
        wanted: The object; None when it left the package.
        recorded: What the stack has for the key; None when it is new to the stack.
        live: The resource on the platform; None when there certainly is none.
    """

    key: Key
    wanted: Object | None
    recorded: InventoryEntry | None
    live: Resource | None

    @property
    def is_removal(self) -> bool:
        """Whether the object left the package."""
        return self.wanted is None

    @property
    def origin(self) -> Origin:
        """How the resource comes, or came, to the stack."""
        if self.live is None:
            return Origin.CREATED
        if self.recorded and self.recorded.remote_id == self.live.id:
            return self.recorded.origin
        return Origin.ADOPTED


@dataclass(frozen=True, slots=True)
class Owner:
    """The stack that owns a resource."""

    stack_id: str
    stack_name: str


@dataclass(frozen=True, slots=True)
class Matching:
    """
    The outcome of matching.

    Attributes:
        matches: One for each wanted or removed key, sorted by key.
        untouched: Recorded entries that the caller skips, by key.
        released: Recorded entries that the stack gives up without deleting their resource, sorted by key.
        live: All resources that were listed, by kind and id.
    """

    matches: Mapping[Key, Match]
    untouched: Mapping[Key, InventoryEntry]
    released: Sequence[InventoryEntry]
    live: Mapping[ResourceKey, Resource]

    @property
    def adopted(self) -> list[Match]:
        """The matches found by name: the stack does not own their resource yet."""
        return [
            match
            for match in self.matches.values()
            if match.live and (match.recorded is None or match.recorded.remote_id != match.live.id)
        ]


def kinds_to_list(desired: Desired, stack: StackRecord, platform: PlatformTraits) -> list[str]:
    """
    The kinds that a plan has to know whole, sorted.

    The deletion of a label, one that is replaced too, detaches it from resources of any kind, so that one asks for all;
    that of something that others refer to takes their references away. Names are shared by the kinds of one scope, and
    what is referred to may be skipped and yet be there.

    Raises:
        KindUnsupported: The package or the stack has a kind that the platform has not.
    """
    wanted = {item.key for item in desired.package.objects if not desired.skips(item.key)}
    recorded = {entry.key for entry in stack.resources if not desired.skips(entry.key)}
    wanted_kinds, removed_kinds = {key.kind for key in wanted}, {key.kind for key in recorded - wanted}
    for kind in sorted(wanted_kinds | removed_kinds):
        if kind not in platform.kinds:
            raise KindUnsupported(platform.platform, kind)
    return _kinds_around(wanted_kinds, removed_kinds, platform)


def kinds_of_record(stack: StackRecord, platform: PlatformTraits) -> list[str]:
    """What ``kinds_to_list`` says of a package of just what is recorded, but for kinds that the platform has not."""
    recorded = {entry.key.kind for entry in stack.resources}
    return _kinds_around(recorded & KINDS.keys() & platform.kinds.keys(), frozenset(), platform)


def _kinds_around(wanted: Set[str], removed: Set[str], platform: PlatformTraits) -> list[str]:
    """The kinds to list for a plan that wants objects of some kinds and removes some of others, or of the same."""
    replaceable = {kind for kind in wanted if platform.kinds[kind].immutable_paths}
    if LABEL in removed | replaceable:
        return sorted(platform.kinds)
    used = {family for kind in wanted for family in KINDS[kind].uses.values()}
    deleted = {KINDS[kind].family for kind in removed | replaceable}
    scopes = {platform.kinds[kind].scope for kind in wanted}
    kinds = {*wanted, *removed, *(kind for kind, traits in platform.kinds.items() if traits.scope in scopes)}
    # A platform may have kinds that packages have not.
    for kind in KINDS.keys() & platform.kinds.keys():
        if KINDS[kind].family in used or deleted & set(KINDS[kind].uses.values()):
            kinds.add(kind)
    return sorted(kinds)


def match(desired: Desired, stack: StackRecord, live: Iterable[Resource], platform: PlatformTraits) -> Matching:
    """
    Match by recorded id, then by unique name, else not at all.

    Args:
        desired: What is wanted.
        stack: What is recorded; empty without a stack.
        live: All resources of the kinds of ``kinds_to_list``.
        platform: What the platform demands of names.

    Raises:
        NameTaken: Two objects claim one resource.
    """
    recorded = by_key([entry for entry in stack.resources if not desired.skips(entry.key)])
    untouched = by_key([entry for entry in stack.resources if desired.skips(entry.key)])
    wanted = {item.key: item for item in desired.package.objects if not desired.skips(item.key)}
    by_id = {(resource.kind, resource.id): resource for resource in live}
    known = {key: by_id.get((key.kind, recorded[key].remote_id)) for key in wanted.keys() & recorded.keys()}
    by_name: dict[tuple[str, str], Resource] = {}
    kept: dict[ResourceKey, Key] = {}
    # Mostly the record knows all: then no name is looked at.
    if len(known) < len(wanted) or not all(known.values()):
        by_name = {(found.kind, unique): found for unique, found in _unique_names(by_id.values(), platform)}
        # Resources that stay with their key whatever their name is now, so that no other object can take them by name.
        staying = (*untouched.values(), *(recorded[key] for key in known))
        kept = {(entry.key.kind, entry.remote_id): entry.key for entry in staying}
    matches: dict[Key, Match] = {}
    taken: dict[ResourceKey, Key] = {}
    for key, item in wanted.items():
        entry, found = recorded.get(key), known.get(key)
        if found is None and (unique := platform.kinds[key.kind].unique_name(item.spec.display_name)) is not None:
            found = by_name.get((key.kind, unique))
            if found and kept.get((found.kind, found.id), key) != key:
                found = None
        if found:
            other = taken.setdefault((found.kind, found.id), key)
            if other != key:
                raise NameTaken(key.kind, key.name, item.spec.display_name, f"{other} of the same package")
        matches[key] = Match(key, item, entry, found)
    released = []
    for key, entry in sorted(recorded.items()):
        resource_key = (key.kind, entry.remote_id)
        # A resource whose object got another metadata.name moves to the new key instead of being deleted.
        if key in wanted or resource_key in taken:
            continue
        if desired.is_end and entry.origin is Origin.ADOPTED:
            released.append(entry)
        else:
            matches[key] = Match(key, None, entry, by_id.get(resource_key))
    return Matching({key: matches[key] for key in sorted(matches)}, untouched, released, by_id)


def refuse_emptying(desired: Desired, matching: Matching, stack: StackRecord) -> None:
    """
    Refuse a package without objects that would take all from a stack: it is more likely a mistake (engine.md 9).

    Raises:
        PackageEmpty: Says how many resources would go.
    """
    if not (desired.is_end or desired.package.objects) and matching.matches:
        raise PackageEmpty(stack.name or stack.id, len(matching.matches))


def refuse_owned(matching: Matching, owners: Mapping[ResourceKey, Owner], stack: StackRecord) -> None:
    """
    Refuse to adopt what another stack owns (engine.md I8).

    Args:
        matching: The matches.
        owners: Owners of the adopted resources, as far as they have any.
        stack: The stack that the plan is for.

    Raises:
        ResourceOwned: Names the first such resource and its owner.
    """
    for found in matching.adopted:
        assert found.live is not None  # noqa: S101 - what `adopted` means
        owner = owners.get((found.live.kind, found.live.id))
        if owner and owner.stack_id != stack.id:
            raise ResourceOwned(*found.key, found.live.id, owner.stack_id, owner.stack_name)


def name_needs(matching: Matching, last: Set[Key], platform: PlatformTraits) -> dict[Key, set[Key]]:
    """
    For each wanted object whose name another resource still has: the objects that must be renamed first.

    Raises:
        NameTaken: The other resource keeps its name, or is removed or written, as *last* ones are, only at the end of
            the plan.
    """
    holders = {
        (platform.kinds[found.kind].scope, unique): found
        for unique, found in _unique_names(matching.live.values(), platform)
    }
    renamed = {
        (found.live.kind, found.live.id): found for found in matching.matches.values() if found.live and found.wanted
    }
    removed = {
        (found.live.kind, found.live.id): found.key
        for found in matching.matches.values()
        if found.live and found.is_removal
    }
    claims: dict[tuple[str, str], Key] = {}
    needs: dict[Key, set[Key]] = {}
    for key, found in matching.matches.items():
        if found.wanted is None:
            continue
        needs[key] = set()
        display_name = found.wanted.spec.display_name
        unique = platform.kinds[key.kind].unique_name(display_name)
        if unique is None:
            continue
        claim = (platform.kinds[key.kind].scope, unique)
        first = claims.setdefault(claim, key)
        if first != key:
            raise NameTaken(key.kind, key.name, display_name, f"{first} of the same package")
        holder = holders.get(claim)
        if holder is None:
            continue
        holder_key = (holder.kind, holder.id)
        if found.live and holder_key == (found.live.kind, found.live.id):
            continue
        if holder_key in removed:
            other = f"{removed[holder_key]}, which is removed only afterwards: remove it first, then rename,"
            raise NameTaken(key.kind, key.name, display_name, other)
        if holder_key not in renamed:
            raise NameTaken(key.kind, key.name, display_name, f"{holder.kind} resource {holder.id} on the platform")
        # That holder's own name is another one by now, or `claims` would have found it.
        giver = renamed[holder_key].key
        if giver not in last:
            needs[key].add(giver)
        elif key not in last:
            other = f"{giver}, which is replaced only afterwards: replace it first, then rename,"
            raise NameTaken(key.kind, key.name, display_name, other)
    return needs


def _unique_names(resources: Iterable[Resource], platform: PlatformTraits) -> Iterator[tuple[str, Resource]]:
    """The resources with unique names, each after the form in which the platform compares its name."""
    for resource in resources:
        unique = platform.kinds[resource.kind].unique_name(resource.spec.display_name)
        if unique is not None:
            yield unique, resource


def owner_questions(matching: Matching) -> Sequence[ResourceKey]:
    """The resources whose owners ``refuse_owned`` wants to know."""
    return [(found.live.kind, found.live.id) for found in matching.adopted if found.live]
