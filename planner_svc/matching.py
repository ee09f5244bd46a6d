"""Which live resource belongs to which object (docs/reference/engine.md, "Matching")."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple

from planner_svc.holders import Holders, holders_of, taken_by_object, taken_by_resources
from planner_svc.policies import policy_of_leaving, stays_behind
from services.core.errors import KindUnsupported, NameTaken, PackageEmpty
from services.core.model import (
    LABEL,
    Desired,
    InventoryEntry,
    Key,
    Object,
    Origin,
    PlatformTraits,
    Resource,
    ResourceKey,
    StackRecord,
    by_key,
)
from services.engine.listing import listed_whole
from services.kinds.policy import resolved
from services.kinds.registry import KINDS, family_of


class Holder(NamedTuple):
    """
    Another stack that owns a resource, or uses it.

    Attributes:
        stack_id: Its id.
        stack_name: Its name; may be empty.
        operation: The operation that claims that until its end; empty for what is recorded.
        label_ids: The labels that its record wants on the resource.
    """

    stack_id: str
    stack_name: str
    operation: str = ""
    label_ids: frozenset[str] = frozenset()

    @property
    def called(self) -> str:
        """What people call the stack."""
        return f"stack {self.stack_name or self.stack_id!r}"


class Spared(NamedTuple):
    """
    What is protected and would be replaced: it is left out of the plan with all that the package changes of it.

    Attributes:
        key: The object.
        recorded: The key that the stack has its resource under; another one where the object changes its name or kind.
        reason: What of the resource cannot change: a field, or its kind.
        fields: What else would change, sorted by pointer.
    """

    key: Key
    recorded: Key
    reason: str
    fields: tuple[str, ...] = ()


class Match(NamedTuple):
    """
    One object key with all that is known of it; object and entry are never both None.

    Attributes:
        key: The key.
        wanted: The object; None when it left the package.
        recorded: What the stack has for the key, or for the resource of an object that had another key; None when both
            are new to the stack.
        live: The resource on the platform; None when there certainly is none. Its kind may be another one of the
            family.
        owner: The other stack that owns the resource; None when none does.
        users: The other stacks that use it; the oldest one first.
        ignored: Pointers to what the object does not keep, and wants as it is live.
    """

    key: Key
    wanted: Object | None
    recorded: InventoryEntry | None
    live: Resource | None
    owner: Holder | None = None
    users: tuple[Holder, ...] = ()
    ignored: tuple[str, ...] = ()

    @property
    def is_removal(self) -> bool:
        """Whether the object left the package."""
        return self.wanted is None

    @property
    def resource(self) -> ResourceKey | None:
        """Kind and id of the live resource, else of one that leaves the record and is gone; None: there is neither."""
        if self.live:
            return self.live.kind, self.live.id
        return (self.recorded.key.kind, self.recorded.resource_id) if self.is_removal and self.recorded else None

    @property
    def stays(self) -> bool:
        """Whether the object left the package, and the resource is left to other stacks."""
        is_shared = self.recorded is not None and self.recorded.origin is Origin.SHARED
        return self.is_removal and (is_shared or bool(self.owner or self.users))

    @property
    def is_deletion(self) -> bool:
        """Whether the object left the package, and the resource goes with it."""
        return self.is_removal and not self.stays

    def is_wanted_elsewhere(self, label_id: str) -> bool:
        """Whether the record of another stack wants a label on the resource."""
        return any(label_id in each.label_ids for each in (self.owner, *self.users) if each)

    @property
    def live_key(self) -> Key:
        """The key that the resource has until the plan has run: an object may change its name, or its kind."""
        if self.live is None:
            return self.key
        if self.recorded and (self.recorded.key.kind, self.recorded.resource_id) == (self.live.kind, self.live.id):
            return self.recorded.key
        return Key(self.live.kind, self.key.name)

    @property
    def origin(self) -> Origin:
        """How the resource comes, or came, to the stack."""
        if self.live is None:
            return Origin.CREATED
        if self.owner:
            return Origin.SHARED
        return self.recorded.origin if self.recorded and self._is_owned else Origin.ADOPTED

    @property
    def is_adoption(self) -> bool:
        """Whether the resource belongs to no stack yet, as far as is known."""
        return self.live is not None and self.owner is None and not self._is_owned

    @property
    def _is_owned(self) -> bool:
        """Whether the stack has the resource as its own."""
        entry = self.recorded
        is_same = entry is not None and self.live is not None and entry.resource_id == self.live.id
        return is_same and entry is not None and entry.origin is not Origin.SHARED


@dataclass(frozen=True, slots=True)
class Matching:
    """
    The outcome of matching.

    Attributes:
        matches: One for each wanted or removed key, sorted by key.
        untouched: Recorded entries that the caller skips, or that stay as nothing leaves the stack, by key.
        released: Recorded entries that the stack gives up without deleting their resource, by key, sorted.
        live: All resources that were listed, by kind and id.
        renamed: The keys that recorded objects had before, each with the one that it has now.
        protected: Keys of what would be deleted, and is left alone as it is protected, sorted.
        spared: What would be replaced, and is left alone as it is protected, sorted.
        clashes: Errors of the objects whose name several resources have, then of those that claim the resource of
            another object.
    """

    matches: Mapping[Key, Match]
    untouched: Mapping[Key, InventoryEntry]
    released: Mapping[Key, InventoryEntry]
    live: Mapping[ResourceKey, Resource]
    renamed: Mapping[Key, Key]
    protected: Sequence[Key] = ()
    spared: Sequence[Spared] = ()
    clashes: Sequence[NameTaken] = ()

    @property
    def is_anything_protected(self) -> bool:
        """Whether something is left alone as it is protected."""
        return bool(self.protected or self.spared)

    @property
    def protected_entries(self) -> frozenset[Key]:
        """The recorded keys of what is left alone as it is protected, unlike what a caller skips."""
        return frozenset({*self.protected, *(each.recorded for each in self.spared)})

    @property
    def adopted(self) -> list[Match]:
        """The matches with an object whose resource the stack does not own yet."""
        return [match for match in self.matches.values() if match.wanted and match.is_adoption]


def kinds_to_list(desired: Desired, stack: StackRecord, platform: PlatformTraits) -> list[str]:
    """
    The kinds that a plan has to know whole, sorted; of others, it has to know what is recorded.

    The deletion of a label, one that is replaced too, detaches it from resources of any kind, so that one asks for all;
    that of something that others refer to takes their references away. Names are shared by the kinds of one scope, and
    what is referred to may be skipped and yet be there.

    Args:
        desired: What is wanted.
        stack: What is recorded.
        platform: The platform, which has all kinds of the two.
    """
    return _kinds_around(*_kinds_of(desired, stack), platform)


def refuse_unsupported_kinds(desired: Desired, stack: StackRecord, platform: PlatformTraits) -> None:
    """
    Refuse what the platform cannot hold.

    Raises:
        KindUnsupported: The package or the stack has a kind that the platform has not.
    """
    wanted, removed = _kinds_of(desired, stack)
    for kind in sorted(wanted | removed):
        if kind not in platform.kinds:
            raise KindUnsupported(platform.platform, kind)


def _kinds_of(desired: Desired, stack: StackRecord) -> tuple[set[str], set[str]]:
    """The kinds of what a plan applies, and of what it removes."""
    wanted = {item.key for item in desired.package.objects if not desired.skips(item.key)}
    recorded = {entry.key for entry in stack.resources if not desired.skips_entry(entry)}
    return {key.kind for key in wanted}, {key.kind for key in recorded - wanted}


def kinds_of_record(stack: StackRecord, platform: PlatformTraits) -> list[str]:
    """What ``kinds_to_list`` says of a package of just what is recorded, but for kinds that the platform has not."""
    recorded = {entry.key.kind for entry in stack.resources}
    return _kinds_around(recorded & KINDS.keys() & platform.kinds.keys(), frozenset(), platform)


def _kinds_around(wanted: Set[str], removed: Set[str], platform: PlatformTraits) -> list[str]:
    """The kinds to list for a plan that wants objects of some kinds and removes some of others, or of the same."""
    families = Counter(KINDS[kind].family for kind in KINDS.keys() & platform.kinds.keys())
    # An object may change its kind within its family.
    replaceable = {kind for kind in wanted if platform.kinds[kind].immutable_paths or families[KINDS[kind].family] > 1}
    if LABEL in removed | replaceable:
        return listed_whole(platform.kinds, removed | replaceable, platform)
    used = {family for kind in wanted for family in KINDS[kind].uses.values()}
    deleted = {KINDS[kind].family for kind in removed | replaceable}
    scopes = {platform.kinds[kind].scope for kind in wanted}
    kinds = {*wanted, *removed, *(kind for kind, traits in platform.kinds.items() if traits.scope in scopes)}
    # A platform may have kinds that packages have not.
    for kind in KINDS.keys() & platform.kinds.keys():
        if KINDS[kind].family in used or deleted & set(KINDS[kind].uses.values()):
            kinds.add(kind)
    return listed_whole(kinds, removed | replaceable, platform)


def match(desired: Desired, stack: StackRecord, live: Iterable[Resource], platform: PlatformTraits) -> Matching:
    """
    Match by recorded id, then by unique name, else not at all.

    What a stack only uses is found by its name first: the owner may have given the name to another resource.

    An object is known by its name within its family: a recorded one that changed its kind still means its resource, and
    so does a unique name that a resource of another kind of the family has (docs/reference/engine.md, "Matching").

    Args:
        desired: What is wanted.
        stack: What is recorded; empty without a stack.
        live: All resources of the kinds of ``kinds_to_list``, and what is recorded of those with a costly listing.
        platform: What the platform demands of names.
    """
    recorded = [entry for entry in stack.resources if not desired.skips_entry(entry)]
    untouched = by_key([entry for entry in stack.resources if desired.skips_entry(entry)])
    wanted = {item.key: item for item in desired.package.objects if not desired.skips(item.key)}
    by_id = {(resource.kind, resource.id): resource for resource in live}
    entries = entries_of(wanted.keys(), recorded)
    known = {key: by_id.get((entry.key.kind, entry.resource_id)) for key, entry in entries.items()}
    owned = {(entry.key.kind, entry.resource_id): entry for entry in recorded}
    holders: Holders = {}
    misnamed = {key for key, entry in entries.items() if _has_another_name(wanted[key], entry, known[key], platform)}
    # Mostly the record knows all: then no name is looked at.
    if desired.skip or misnamed or len(known) < len(wanted) or not all(known.values()):
        holders = holders_of(by_id.values(), platform)
    # Resources that stay with their key whatever their name is now, so that no other object can take them by name.
    kept = {(entry.key.kind, entry.resource_id): key for key, entry in (*untouched.items(), *entries.items())}
    matches: dict[Key, Match] = {}
    clashes: list[NameTaken] = []
    for key, item in wanted.items():
        entry, found = entries.get(key), known.get(key)
        if found is None or key in misnamed:
            free = _free(item, holders, kept, platform)
            if free[1:]:
                clashes.append(taken_by_resources(key, item.spec.display_name, free))
            elif free:
                [found] = free
                entry = owned.get((found.kind, found.id), entry)
        matches[key] = Match(key, item, entry, found)
    taken = _taken(matches.values(), clashes)
    leaving = {
        key: entry
        for key, entry in owned.items()
        # A resource whose object got another key moves to that instead of being deleted.
        if key not in taken and key not in kept
    }
    untouched |= _skipped_by_name(desired, leaving, holders, platform)
    released: dict[Key, InventoryEntry] = {}
    protected: list[Key] = []
    for resource_key, entry in sorted(leaving.items(), key=lambda item: item[1].key):
        if entry.key in untouched:
            continue
        if desired.is_for_nameless:
            untouched[entry.key] = entry
            continue
        policy = policy_of_leaving(stack, entry)
        if policy.protect:
            untouched[entry.key] = entry
            protected.append(entry.key)
        elif stays_behind(policy, entry, desired.is_end):
            released[entry.key] = entry
        else:
            matches[entry.key] = Match(entry.key, None, entry, by_id.get(resource_key))
    ordered = {key: matches[key] for key in sorted(matches)}
    return Matching(ordered, untouched, released, by_id, _renamed(matches), protected, (), clashes)


def _renamed(matches: Mapping[Key, Match]) -> dict[Key, Key]:
    return {
        found.recorded.key: key
        for key, found in matches.items()
        if found.wanted and found.recorded and found.recorded.key != key
    }


def _free(
    item: Object, holders: Holders, kept: Mapping[ResourceKey, Key], platform: PlatformTraits
) -> Sequence[Resource]:
    """The resources that *item* finds by its unique name and that do not belong to another object."""
    return [each for each in _named(item, holders, platform) if kept.get((each.kind, each.id), item.key) == item.key]


def _has_another_name(item: Object, entry: InventoryEntry, live: Resource | None, platform: PlatformTraits) -> bool:
    """Whether what a stack uses is there and no longer has the unique name by which *item* found it."""
    if live is None or entry.origin is not Origin.SHARED:
        return False
    unique_name = platform.kinds[item.key.kind].unique_name
    return unique_name(live.spec.display_name) != unique_name(item.spec.display_name)


def _taken(matches: Iterable[Match], clashes: list[NameTaken]) -> dict[ResourceKey, Object]:
    """The resources that objects claim, with the first object; each further one is added to *clashes*."""
    taken: dict[ResourceKey, Object] = {}
    for found in matches:
        if found.live and found.wanted:
            first = taken.setdefault((found.live.kind, found.live.id), found.wanted)
            if first is not found.wanted:
                clashes.append(taken_by_object(found.wanted, first))
    return taken


def _skipped_by_name(
    desired: Desired, leaving: Mapping[ResourceKey, InventoryEntry], holders: Holders, platform: PlatformTraits
) -> dict[Key, InventoryEntry]:
    """What of *leaving* a skipped object means, which got another key: it is left alone under the key of the record."""
    meant = [
        leaving.get((each.kind, each.id))
        for item in desired.package.objects
        if desired.skips(item.key)
        for each in _named(item, holders, platform)
    ]
    return by_key([entry for entry in meant if entry])


def entries_of(wanted: Collection[Key], recorded: Iterable[InventoryEntry]) -> dict[Key, InventoryEntry]:
    """What is recorded of *wanted* objects: under their key, else under another kind of their family."""
    exact = by_key(list(recorded))
    alike = {(family_of(key.kind), key.name): entry for key, entry in exact.items() if key not in wanted}
    found = {key: exact.get(key) or alike.get((family_of(key.kind), key.name)) for key in wanted}
    return {key: entry for key, entry in found.items() if entry}


def _named(item: Object, holders: Holders, platform: PlatformTraits) -> list[Resource]:
    """The resources of the family of *item* that have its unique name."""
    if item.key.kind not in platform.kinds:
        return []
    traits = platform.kinds[item.key.kind]
    named = holders.get((traits.scope, traits.unique_name(item.spec.display_name)), ())
    return [each for each in named if family_of(each.kind) == family_of(item.key.kind)]


def refuse_clashes(matching: Matching) -> None:
    """
    Refuse a package that leaves open which object a resource belongs to.

    Raises:
        NameTaken: Two objects claim one resource, or several resources have the name of an object.
    """
    for clash in matching.clashes:
        raise clash


def refuse_adoptions(matching: Matching, stack: StackRecord) -> None:
    """
    Refuse to take over what no stack owns, where the policy says so (docs/reference/engine.md, "Policies", ``adopt``).

    Raises:
        NameTaken: Names the first resource of them.
    """
    for match in matching.adopted if stack.policy else ():
        if match.live and match.wanted and resolved(stack.policy, match.key).adopt == "never":
            raise taken_by_resources(match.key, match.wanted.spec.display_name, [match.live])


def refuse_emptying(desired: Desired, matching: Matching, stack: StackRecord) -> None:
    """
    Refuse a package without objects that would take all from a stack: it is more likely a mistake
    (docs/reference/engine.md, "Policies").

    Nothing is refused where that is allowed.

    Raises:
        PackageEmpty: Says how many resources would go.
    """
    if not (desired.is_end or desired.allow_empty or desired.package.objects) and matching.matches:
        raise PackageEmpty(stack.name or stack.id, len(matching.matches))
