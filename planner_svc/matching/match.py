"""Which live resource belongs to which object (docs/reference/engine.md, "Matching")."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import NamedTuple

from planner_svc.composition.own_policies import own_policies
from planner_svc.matching.desired import Desired
from planner_svc.matching.key_changes import key_changes
from planner_svc.matching.name_index import NameIndex, holders_of, taken_by_object, taken_by_resources
from planner_svc.matching.policies import policy_of_leaving, stays_behind
from services.core.errors import KindUnsupported, NameTaken, PackageEmpty
from services.core.model import (
    LABEL,
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
from services.engine.list_scope import listed_whole
from services.kinds.policy import NO_OWN_POLICY, OwnPolicy, Policy, resolved
from services.kinds.registry import KINDS, family_and_name, family_of


class ResourceHolder(NamedTuple):
    """
    Another stack that owns a resource, or uses it.

    Attributes:
        stack_id: Its id.
        stack_name: Its name; may be empty.
        operation: The operation that claims ownership or use until its end; empty if the stack records it.
        label_ids: The labels that its record wants on the resource.
    """

    stack_id: str
    stack_name: str
    operation: str = ""
    label_ids: frozenset[str] = frozenset()

    @property
    def called(self) -> str:
        """The stack as messages name it."""
        return f"stack {self.stack_name or self.stack_id!r}"


class ProtectedReplacement(NamedTuple):
    """
    A protected object whose resource would be replaced: the plan skips it with all its changes.

    Attributes:
        key: The object.
        recorded: The recorded key of its resource; differs from *key* if the object changes its name or kind.
        reason: The reason of the replacement: a field that cannot change, or the kind.
        fields: The other fields that would change, sorted by pointer.
    """

    key: Key
    recorded: Key
    reason: str
    fields: tuple[str, ...] = ()


class Match(NamedTuple):
    """
    An object key with its object, entry and resource; object and entry are never both None.

    Attributes:
        key: The key.
        desired: The object; None when it left the package.
        recorded: The entry of the key, or of the resource if its object had another key; without labels if it names
            another resource than *live*. None when both are new to the stack.
        live: The resource on the platform; None when it certainly does not exist. Its kind may be another one of the
            family.
        owner: The other stack that owns the resource; None when none does.
        users: The other stacks that use it; the oldest one first.
        ignored: Pointers to the ignored fields of the object, which have their live values in *desired*.
        takes_over: Whether the plan changes the resource and takes it over from *owner*.
    """

    key: Key
    desired: Object | None
    recorded: InventoryEntry | None
    live: Resource | None
    owner: ResourceHolder | None = None
    users: tuple[ResourceHolder, ...] = ()
    ignored: tuple[str, ...] = ()
    takes_over: bool = False

    @property
    def is_removal(self) -> bool:
        """Whether the object left the package."""
        return self.desired is None

    @property
    def resource(self) -> ResourceKey | None:
        """Kind and id of the live resource, else of a removed one that is gone; None: there is neither."""
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
        """Whether the object left the package and its resource is deleted."""
        return self.is_removal and not self.stays

    def is_wanted_elsewhere(self, label_id: str) -> bool:
        """Whether the record of another stack wants a label on the resource."""
        return any(label_id in each.label_ids for each in (self.owner, *self.users) if each)

    @property
    def live_key(self) -> Key:
        """The key that the resource has before the plan runs: an object may change its name or its kind."""
        if self.live is None:
            return self.key
        if self.recorded and (self.recorded.key.kind, self.recorded.resource_id) == (self.live.kind, self.live.id):
            return self.recorded.key
        return Key(self.live.kind, self.key.name)

    @property
    def is_another(self) -> bool:
        """Whether the live resource is another one than that of the entry."""
        return self.live is not None and self.recorded is not None and self.recorded.resource_id != self.live.id

    @property
    def origin(self) -> Origin:
        """How the resource came to the stack, or comes to it by the plan."""
        if self.live is None:
            return Origin.CREATED
        if self.takes_over:
            # The store gives it the origin that it has with its owner; if that is gone by then, nobody deletes it.
            return Origin.ADOPTED
        if self.owner:
            return Origin.SHARED
        return self.recorded.origin if self.recorded and self._is_owned else Origin.ADOPTED

    @property
    def is_adoption(self) -> bool:
        """Whether the stack does not own the resource yet, and no other owner is known."""
        return self.live is not None and self.owner is None and not self._is_owned

    @property
    def _is_owned(self) -> bool:
        """Whether the stack owns the resource."""
        entry = self.recorded
        is_same = entry is not None and self.live is not None and entry.resource_id == self.live.id
        return is_same and entry is not None and entry.origin is not Origin.SHARED


@dataclass(frozen=True, slots=True)
class Matching:
    """
    The outcome of matching.

    Attributes:
        matches: One for each desired or removed key, sorted by key.
        untouched: Entries that the plan leaves as they are, by key: skipped and protected ones, and those that the
            package lacks, if these are kept.
        released: Entries that leave the record while their resource stays, by key, sorted.
        live: All resources that were listed, by kind and id.
        renamed: The earlier keys of recorded objects, each with its present key.
        protected: Keys of entries whose deletion a policy forbids, sorted.
        protected_replacements: The objects whose replacement a policy forbids, sorted.
        name_conflicts: Errors of the objects whose name several resources have, then of objects that claim the resource
            of another object.
        suspended_labels: The untouched labels of suspended packages that are live: they are attached all the same.
        own_policies: What the package and its objects say themselves, of objects of which anything is said.
    """

    matches: Mapping[Key, Match]
    untouched: Mapping[Key, InventoryEntry]
    released: Mapping[Key, InventoryEntry]
    live: Mapping[ResourceKey, Resource]
    renamed: Mapping[Key, Key]
    protected: Sequence[Key] = ()
    protected_replacements: Sequence[ProtectedReplacement] = ()
    name_conflicts: Sequence[NameTaken] = ()
    suspended_labels: frozenset[Key] = frozenset()
    own_policies: Mapping[Key, OwnPolicy] = field(default_factory=dict)

    def policy(self, stack: StackRecord, key: Key) -> Policy:
        """The policy of the object *key* of the package."""
        return resolved(stack.policy, key, self.own_policies.get(key, NO_OWN_POLICY))

    def has_policies(self, stack: StackRecord) -> bool:
        """Whether any object may have another policy than the default."""
        return bool(stack.policy or self.own_policies)

    @property
    def is_anything_protected(self) -> bool:
        """Whether a policy forbids a deletion or a replacement."""
        return bool(self.protected or self.protected_replacements)

    @property
    def protected_entries(self) -> frozenset[Key]:
        """The recorded keys of entries that stay because they are protected, not because the caller skips them."""
        return frozenset({*self.protected, *(each.recorded for each in self.protected_replacements)})

    @property
    def adopted(self) -> list[Match]:
        """The matches with an object whose resource the stack does not own yet."""
        return [match for match in self.matches.values() if match.desired and match.is_adoption]


def kinds_to_list(desired: Desired, stack: StackRecord, platform: PlatformTraits) -> list[str]:
    """
    The kinds whose resources a plan needs completely, sorted; of other kinds, it needs only the recorded resources.

    - The deletion or replacement of a label detaches it from resources of any kind, so it needs all kinds.
    - The deletion of a resource that others refer to needs the kinds that refer to it, as they lose the reference.
    - A name needs all kinds of its scope, as they share their names.
    - A reference needs the kinds that it may lead to, as a skipped object may exist.
    - Labels of suspended packages are skipped, and attached all the same.

    Args:
        desired: The desired state.
        stack: The record.
        platform: The platform, which has all kinds of the two.
    """
    applied, removed = _kinds_of(desired, stack)
    if desired.packages and desired.packages.suspended:
        applied |= {LABEL} & platform.kinds.keys()
    return _kinds_around(applied, removed, platform)


def refuse_unsupported_kinds(desired: Desired, stack: StackRecord, platform: PlatformTraits) -> None:
    """
    Refuse kinds that the platform does not have.

    Raises:
        KindUnsupported: The package or the stack has a kind that the platform does not have.
    """
    applied_kinds, removed = _kinds_of(desired, stack)
    for kind in sorted(applied_kinds | removed):
        if kind not in platform.kinds:
            raise KindUnsupported(platform.platform, kind)


def _kinds_of(desired: Desired, stack: StackRecord) -> tuple[set[str], set[str]]:
    """The kinds of the objects that a plan applies, and of those that it removes."""
    package_keys = {item.key for item in desired.package.objects if not desired.skips(item.key)}
    if desired.options.keep_others:
        return {key.kind for key in package_keys}, set()
    recorded = {entry.key for entry in stack.resources if not desired.skips_entry(entry)}
    return {key.kind for key in package_keys}, {key.kind for key in recorded - package_keys}


def kinds_of_record(stack: StackRecord, platform: PlatformTraits) -> list[str]:
    """The result of ``kinds_to_list`` for a package of the recorded objects, without kinds that the platform lacks."""
    recorded = {entry.key.kind for entry in stack.resources}
    return _kinds_around(recorded & KINDS.keys() & platform.kinds.keys(), frozenset(), platform)


def _kinds_around(applied_kinds: Set[str], removed: Set[str], platform: PlatformTraits) -> list[str]:
    """The kinds to list for a plan that applies objects of *applied_kinds* and removes some of *removed*."""
    families = Counter(KINDS[kind].family for kind in KINDS.keys() & platform.kinds.keys())
    # An object may change its kind within its family.
    replaceable = {
        kind for kind in applied_kinds if platform.kinds[kind].immutable_paths or families[KINDS[kind].family] > 1
    }
    if LABEL in removed | replaceable:
        return listed_whole(platform.kinds, removed | replaceable, platform)
    used = {family for kind in applied_kinds for family in KINDS[kind].uses.values()}
    deleted = {KINDS[kind].family for kind in removed | replaceable}
    scopes = {platform.kinds[kind].scope for kind in applied_kinds}
    kinds = {*applied_kinds, *removed, *(kind for kind, traits in platform.kinds.items() if traits.scope in scopes)}
    # A platform may have kinds that packages do not have.
    for kind in KINDS.keys() & platform.kinds.keys():
        if KINDS[kind].family in used or deleted & set(KINDS[kind].uses.values()):
            kinds.add(kind)
    return listed_whole(kinds, removed | replaceable, platform)


def match(desired: Desired, stack: StackRecord, live: Iterable[Resource], platform: PlatformTraits) -> Matching:
    """
    Match objects and resources by recorded id, else by unique name, else by the name of a resource of the stack.

    A resource that a stack only uses is matched by its name first: the owner may have given the name to another one.

    The kinds of a family share their names: a recorded object that changes its kind keeps its resource, and a unique
    name matches a resource of any kind of the family (docs/reference/engine.md, "Matching").

    Args:
        desired: The desired state.
        stack: The record; empty without a stack.
        live: All resources of the kinds of ``kinds_to_list``, and the recorded ones of kinds with a costly listing.
        platform: The rules of the platform for names.
    """
    recorded = [entry for entry in stack.resources if not desired.skips_entry(entry)]
    untouched = by_key([entry for entry in stack.resources if desired.skips_entry(entry)])
    objects = {item.key: item for item in desired.package.objects if not desired.skips(item.key)}
    by_id = {(resource.kind, resource.id): resource for resource in live}
    entries = entries_of(objects.keys(), recorded)
    if desired.key_moves:
        entries = _with_moves(entries, desired.key_moves, by_key(recorded))
    resources = {key: by_id.get((entry.key.kind, entry.resource_id)) for key, entry in entries.items()}
    owned = {(entry.key.kind, entry.resource_id): entry for entry in recorded}
    holders: NameIndex = {}
    misnamed = {
        key for key, entry in entries.items() if _has_another_name(objects[key], entry, resources[key], platform)
    }
    # Names are only needed if the record does not lead to the live resource of each object, which is the exception.
    if desired.skip or misnamed or len(resources) < len(objects) or not all(resources.values()):
        holders = holders_of(by_id.values(), platform)
    # Resources that keep their key whatever their name is now, so that no other object can match them by name.
    kept = {(entry.key.kind, entry.resource_id): key for key, entry in (*untouched.items(), *entries.items())}
    matches: dict[Key, Match] = {}
    name_conflicts: list[NameTaken] = []
    for key, item in objects.items():
        entry, live_resource = entries.get(key), resources.get(key)
        if live_resource is None or key in misnamed:
            free = _free(item, holders, kept, platform)
            if free[1:]:
                name_conflicts.append(taken_by_resources(key, item.spec.display_name, free))
            elif free:
                [live_resource] = free
                # The labels of an entry are those of the resource that it names, not of another one.
                entry = owned.get((live_resource.kind, live_resource.id)) or (entry and entry._replace(associations=()))
        matches[key] = Match(key, item, entry, live_resource)
    taken = _taken(matches.values(), name_conflicts)
    leaving = {
        key: entry
        for key, entry in owned.items()
        # A resource whose object got another key moves to that key instead of being deleted.
        if key not in taken and key not in kept
    }
    untouched |= _skipped_by_name(desired, leaving, holders, platform)
    for resource_key, new_key in _with_new_keys(desired, leaving, matches, untouched, by_id, platform).items():
        entry = leaving.pop(resource_key)
        if new_key in matches:
            matches[new_key] = matches[new_key]._replace(recorded=entry, live=by_id[resource_key])
        else:
            # The object is skipped, so its entry keeps its key.
            untouched[entry.key] = entry
    released: dict[Key, InventoryEntry] = {}
    protected: list[Key] = []
    for resource_key, entry in sorted(leaving.items(), key=lambda item: item[1].key):
        if entry.key in untouched:
            continue
        if desired.keeps_others:
            untouched[entry.key] = entry
            continue
        policy = policy_of_leaving(stack, entry)
        if policy.protect:
            untouched[entry.key] = entry
            protected.append(entry.key)
        elif stays_behind(policy, entry, desired.ends(entry)):
            released[entry.key] = entry
        else:
            matches[entry.key] = Match(entry.key, None, entry, by_id.get(resource_key))
    ordered = {key: matches[key] for key in sorted(matches)}
    return Matching(
        ordered,
        untouched,
        released,
        by_id,
        _renamed(matches),
        protected,
        name_conflicts=name_conflicts,
        own_policies=own_policies(desired.package, desired.packages.declarations if desired.packages else {}),
        suspended_labels=_suspended_labels(desired, untouched, by_id),
    )


def _suspended_labels(
    desired: Desired, untouched: Mapping[Key, InventoryEntry], by_id: Mapping[ResourceKey, Resource]
) -> frozenset[Key]:
    return frozenset(
        key
        for key, entry in untouched.items()
        if key.kind == LABEL and desired.is_suspended(key) and (key.kind, entry.resource_id) in by_id
    )


def _with_new_keys(
    desired: Desired,
    leaving: Mapping[ResourceKey, InventoryEntry],
    matches: Mapping[Key, Match],
    untouched: Mapping[Key, InventoryEntry],
    live: Mapping[ResourceKey, Resource],
    platform: PlatformTraits,
) -> dict[ResourceKey, Key]:
    """The resources of *leaving* entries whose objects are in the package under another key, with that key."""
    old = {
        entry.key: resource_key
        for resource_key, entry in leaving.items()
        # A unique name has matched already. The object of a pending deletion left the package in an earlier apply.
        if resource_key in live and platform.kinds[entry.key.kind].names_may_repeat and not entry.is_pending_delete
    }
    if not old:
        return {}

    def is_new(key: Key) -> bool:
        key_match = matches.get(key)
        return not (key_match.recorded or key_match.live) if key_match else not entries_of([key], untouched.values())

    changes = key_changes(
        [(key, live[resource_key].spec.display_name) for key, resource_key in old.items()],
        [(item.key, item.spec.display_name) for item in desired.package.objects if is_new(item.key)],
    )
    return {old[key]: new_key for key, new_key in changes.items()}


def _renamed(matches: Mapping[Key, Match]) -> dict[Key, Key]:
    return {
        each.recorded.key: key
        for key, each in matches.items()
        if each.desired and each.recorded and each.recorded.key != key
    }


def _free(
    item: Object, holders: NameIndex, kept: Mapping[ResourceKey, Key], platform: PlatformTraits
) -> Sequence[Resource]:
    """The resources that match *item* by its unique name and that no other object has."""
    return [each for each in _named(item, holders, platform) if kept.get((each.kind, each.id), item.key) == item.key]


def _has_another_name(item: Object, entry: InventoryEntry, live: Resource | None, platform: PlatformTraits) -> bool:
    """Whether the stack only uses a resource, and the resource no longer has the unique name of *item*."""
    if live is None or entry.origin is not Origin.SHARED:
        return False
    unique_name = platform.kinds[item.key.kind].unique_name
    return unique_name(live.spec.display_name) != unique_name(item.spec.display_name)


def _taken(matches: Iterable[Match], name_conflicts: list[NameTaken]) -> dict[ResourceKey, Object]:
    """The resources that objects claim, with the first object; each further one is added to *name_conflicts*."""
    taken: dict[ResourceKey, Object] = {}
    for each in matches:
        if each.live and each.desired:
            first = taken.setdefault((each.live.kind, each.live.id), each.desired)
            if first is not each.desired:
                name_conflicts.append(taken_by_object(each.desired, first))
    return taken


def _skipped_by_name(
    desired: Desired, leaving: Mapping[ResourceKey, InventoryEntry], holders: NameIndex, platform: PlatformTraits
) -> dict[Key, InventoryEntry]:
    """The entries of *leaving* whose resource matches a skipped object with a new key by name; they stay."""
    meant = [
        leaving.get((each.kind, each.id))
        for item in desired.package.objects
        if desired.skips(item.key)
        for each in _named(item, holders, platform)
    ]
    return by_key([entry for entry in meant if entry])


def entries_of(keys: Collection[Key], recorded: Iterable[InventoryEntry]) -> dict[Key, InventoryEntry]:
    """The entries of the objects with *keys*: under their key, else under another kind of their family."""
    exact = by_key(list(recorded))
    alike = {family_and_name(key): entry for key, entry in exact.items() if key not in keys}
    entries = {key: exact.get(key) or alike.get(family_and_name(key)) for key in keys}
    return {key: entry for key, entry in entries.items() if entry}


def _with_moves(
    entries: Mapping[Key, InventoryEntry], moves: Mapping[Key, Key], recorded: Mapping[Key, InventoryEntry]
) -> dict[Key, InventoryEntry]:
    """*entries* of objects, where the entries of some *recorded* keys are those of other objects."""
    moved = {new_key: recorded[key] for key, new_key in moves.items() if key in recorded}
    return {key: entry for key, entry in entries.items() if entry.key not in moves} | moved


def _named(item: Object, holders: NameIndex, platform: PlatformTraits) -> list[Resource]:
    """The resources of the family of *item* that have its unique name."""
    if item.key.kind not in platform.kinds:
        return []
    traits = platform.kinds[item.key.kind]
    named = holders.get((traits.scope, traits.unique_name(item.spec.display_name)), ())
    return [each for each in named if family_of(each.kind) == family_of(item.key.kind)]


def refuse_clashes(matching: Matching) -> None:
    """
    Refuse a package where the match of object and resource is ambiguous.

    Raises:
        NameTaken: Two objects claim one resource, or several resources have the name of an object.
    """
    for clash in matching.name_conflicts:
        raise clash


def refuse_adoptions(matching: Matching, stack: StackRecord) -> None:
    """
    Refuse to adopt resources if the policy forbids it (docs/reference/engine.md, "Policies", ``adopt``).

    Raises:
        NameTaken: Names the first such resource.
    """
    for match in matching.adopted if matching.has_policies(stack) else ():
        if match.live and match.desired and matching.policy(stack, match.key).adopt == "never":
            raise taken_by_resources(match.key, match.desired.spec.display_name, [match.live])


def refuse_emptying(desired: Desired, matching: Matching, stack: StackRecord) -> None:
    """
    Refuse a package without objects that would empty a stack, unless the request or the policy allows it
    (docs/reference/engine.md, "Policies").

    It is more likely a mistake of the caller.

    Raises:
        PackageEmpty: Has the number of resources that would be removed.
    """
    is_allowed = desired.options.allow_empty or stack.policy.get("allow_empty", False)
    is_allowed = is_allowed or desired.is_end or desired.packages is not None
    if not (is_allowed or desired.package.objects) and matching.matches:
        raise PackageEmpty(stack.name or stack.id, len(matching.matches))
