"""
Whether a plan is stale: its steps are rehearsed, one after another, on a model of the platform
(docs/reference/engine.md, "Plans").
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from services.core.errors import KindUnsupported
from services.core.model import LABEL, Key, Origin, Plan, PlatformTraits, Resource, ResourceKey, Spec, StackRecord, Step
from services.core.text_lists import listed
from services.engine.effects import AnyEffect, PutSecret, effect_of
from services.engine.ids import ResourceIds
from services.engine.list_scope import listed_whole
from services.kinds.comparing import differences

SHOWN = 10
"""Number of resources that a problem names; it counts the others."""

_SHOWN_FIELDS = 5


def refuse_lost_kinds(plan: Plan, platform: PlatformTraits) -> None:
    """
    Check that the platform still supports all kinds of *plan*.

    Raises:
        KindUnsupported: Names the first unsupported kind.
    """
    _refuse_lost(_kinds_named(_of_resources(plan)) | {each.kind for each in plan.adoptions}, platform)


def kinds_to_read(plan: Plan, platform: PlatformTraits) -> list[str]:
    """
    The kinds to read for a check of *plan*, sorted: kinds that it touches, refers to, or shares name scopes with.

    A deletion removes labels and references from resources of any kind, so a plan with one needs all kinds. Kinds with
    a costly listing that it does not change are left out; of these ``resources_named`` are enough.

    Raises:
        KindUnsupported: The plan has a kind that the platform does not support.
    """
    effects = _of_resources(plan)
    kinds = _kinds_named(effects)
    _refuse_lost(kinds, platform)
    deleted = {effect.step.key.kind for effect in effects if effect.removes and not effect.links}
    if deleted:
        return listed_whole(platform.kinds, deleted, platform)
    scopes = {platform.kinds[effect.step.key.kind].scope for effect in effects if effect.step.new_spec}
    kinds |= {kind for kind, traits in platform.kinds.items() if traits.scope in scopes}
    return listed_whole(kinds, deleted, platform)


def resources_named(plan: Plan) -> set[ResourceKey]:
    """Kind and id of the resources that steps of *plan* are about or refer to, and that existed when it was made."""
    steps = [effect.step for effect in _of_resources(plan)]
    resources = {(step.key.kind, step.resource_id) for step in steps}
    resources |= {(step.label.kind, step.label_id) for step in steps if step.label}
    resources |= {(each.key.kind, each.id) for step in steps for each in (*step.references, *step.old_references)}
    return {(kind, id_) for kind, id_ in resources if id_}


def _of_resources(plan: Plan) -> list[AnyEffect]:
    return [effect for effect in map(effect_of, plan.steps) if not effect.is_of_secret]


def _refuse_lost(kinds: Collection[str], platform: PlatformTraits) -> None:
    for kind in sorted(kinds):
        if kind not in platform.kinds:
            raise KindUnsupported(platform.platform, kind)


def _kinds_named(effects: Iterable[AnyEffect]) -> set[str]:
    """The kinds that the steps of *effects* are about or refer to."""
    kinds: set[str] = set()
    for step in (effect.step for effect in effects):
        kinds |= {step.key.kind, *(reference.key.kind for reference in (*step.references, *step.old_references))}
        kinds |= {step.label.kind} if step.label else set()
    return kinds


def stale_parts(plan: Plan, live: Iterable[Resource], platform: PlatformTraits) -> list[str]:
    """
    The resources of *plan* that changed since the plan was made.

    Args:
        plan: The plan.
        live: All resources of the kinds of ``kinds_to_read``, and the resources of ``resources_named`` whose kinds have
            a costly listing.
        platform: The traits of the platform.

    Returns:
        One sentence for each resource, in the order of the steps, with the names of fields and without their values.
        Empty: the plan is not stale, so each step can have the planned effect, and be undone exactly.
    """
    rehearsal = _Rehearsal(plan, live, platform)
    for step in plan.steps:
        effect_of(step).rehearse(rehearsal)
    return list(rehearsal.problems.values())


def stale_secrets(plan: Plan, live_secrets: Collection[str]) -> list[str]:
    """
    The secrets of *plan* that were created or deleted since it was made, as sentences in the order of the steps.

    A secret that another writer created meanwhile would be overwritten, and an undo would delete it.

    Args:
        plan: The plan.
        live_secrets: Keys of the secrets that the platform holds.
    """
    written = [effect for effect in map(effect_of, plan.steps) if isinstance(effect, PutSecret)]
    return [
        f"{effect.step.key} {'is gone' if effect.overwrites else 'exists on the platform now'}"
        for effect in written
        if (effect.step.key.name in live_secrets) != effect.overwrites
    ]


def adopted(plan: Plan, record: StackRecord) -> dict[ResourceKey, Key]:
    """
    The unowned resources that *plan* adopts or deletes, with their keys.

    For an apply without a stack, the resources that it writes.
    """
    taken_over = {*plan.record.taken_over}
    recorded = {(entry.key.kind, entry.resource_id) for entry in record.resources}
    recorded |= {(entry.key.kind, entry.resource_id) for entry in plan.record.entries if entry.key in taken_over}
    # A shared resource keeps its owner.
    recorded |= {(entry.key.kind, entry.resource_id) for entry in plan.record.entries if entry.origin is Origin.SHARED}
    recorded |= {(use.kind, use.resource_id) for use in plan.uses if not use.label_id}
    keys = {(entry.key.kind, entry.resource_id): entry.key for entry in plan.record.entries if entry.resource_id}
    keys |= {
        (effect.step.key.kind, effect.step.resource_id): effect.step.key
        for effect in map(effect_of, plan.steps)
        # A step without a name is about a resource of no object, which only loses a reference to a deleted resource.
        if effect.step.key.name and effect.step.resource_id and not effect.is_of_secret
    }
    return {resource: key for resource, key in keys.items() if resource not in recorded}


def owned_parts(taken: Mapping[ResourceKey, Key], owners: Mapping[ResourceKey, str]) -> list[str]:
    """The resources of *taken* that another stack owns since the plan was made, as sentences with its name, sorted."""
    return [f"{taken[resource]} is owned by stack {owners[resource]!r} now" for resource in sorted(owners)]


def problem_of(parts: Sequence[str]) -> str:
    """The stale parts in one text."""
    return listed(parts, SHOWN, "; ")


@dataclass(slots=True)
class _Live:
    """A resource of the model, after the steps that are rehearsed so far."""

    spec: Spec
    references: dict[str, ResourceKey]
    labels: set[str] = field(default_factory=set)

    @property
    def uses(self) -> list[ResourceKey]:
        """The resources whose deletion would change this one."""
        return [*self.references.values(), *((LABEL, label) for label in self.labels)]


class _Rehearsal:
    """
    A model of the platform on which steps are rehearsed.

    Attributes:
        ids: The resource of each key.
        problems: The first problem of each resource.
    """

    def __init__(self, plan: Plan, live: Iterable[Resource], platform: PlatformTraits) -> None:
        self.ids = ResourceIds(plan)
        self.problems: dict[ResourceKey, str] = {}
        self._platform = platform
        self._resources: dict[ResourceKey, _Live] = {}
        self._named: defaultdict[tuple[str, str], set[ResourceKey]] = defaultdict(set)
        self._users: defaultdict[ResourceKey, set[ResourceKey]] = defaultdict(set)
        for resource in live:
            references = {each.pointer: (each.kind, each.id) for each in resource.references}
            self._put((resource.kind, resource.id), _Live(resource.spec, references, set(resource.label_ids)))

    def holds(self, resource: ResourceKey, step: Step) -> bool:
        if resource not in self._resources:
            self._report(resource, step.key, "is gone")
        return resource in self._resources

    def compare(self, resource: ResourceKey, step: Step) -> None:
        live = self._resources[resource]
        recorded = {each.pointer: (each.kind, each.id) for each in self.ids.references(step.old_references)}
        differing = set()
        if step.old_spec:
            sets = self._platform.kinds[step.key.kind].set_paths
            changed = differences(step.key.kind, step.old_spec, step.key.kind, live.spec, sets)
            differing = {change.path for change in changed}
        differing |= {
            pointer
            for pointer in recorded.keys() | live.references.keys()
            if recorded.get(pointer) != live.references.get(pointer)
        }
        if differing:
            fields = sorted(path.lstrip("/") for path in differing)
            self._report(resource, step.key, f"changed in {listed(fields, _SHOWN_FIELDS, noun='fields')}")

    def write(self, resource: ResourceKey, step: Step) -> None:
        if step.new_spec is None:
            return
        name = self._name(step.key.kind, step.new_spec)
        old = self._resources.get(resource)
        # A resource keeps its name, even if the platform holds another one that has it, too.
        keeps_name = old is not None and self._name(step.key.kind, old.spec) == name
        others = self._named[name] if name and not keeps_name else set()
        if others:
            display_name = step.new_spec.display_name
            holder = _shown(min(others))
            self._report(resource, step.key, f"is to be named {display_name!r}, but {holder} has that name")
        references = {each.pointer: (each.kind, each.id) for each in self.ids.references(step.references)}
        for planned in step.references:
            if references[planned.pointer] not in self._resources:
                self._report(references[planned.pointer], planned.key, "is gone")
        labels = old.labels if old else set()
        self._take(resource)
        self._put(resource, _Live(step.new_spec, references, labels))

    def remove(self, resource: ResourceKey, step: Step) -> None:
        # A deletion also removes labels and references that the plan does not know, and its undo cannot restore them.
        if self._resources[resource].labels:
            label = (LABEL, min(self._resources[resource].labels))
            self._report(resource, step.key, f"got {_shown(label)} attached")
        elif self._users[resource]:
            self._report(resource, step.key, f"is used by {_shown(min(self._users[resource]))}")
        self._take(resource)

    def link(self, resource: ResourceKey, step: Step, attached: bool) -> None:
        label_id = self.ids.find(step.label, step.label_id)
        label, labels = (LABEL, label_id), self._resources[resource].labels
        shown = str(step.label) if step.label and step.label.name else _shown(label)
        if label not in self._resources:
            self._report(label, step.label or Key(LABEL, ""), "is gone")
            return
        if (label_id in labels) == attached:
            self._report(resource, step.key, f"got {shown} attached" if attached else f"lost {shown}")
        change, use = (labels.add, self._users[label].add) if attached else (labels.discard, self._users[label].discard)
        change(label_id)
        use(resource)

    def _put(self, resource: ResourceKey, live: _Live) -> None:
        self._resources[resource] = live
        if name := self._name(resource[0], live.spec):
            self._named[name].add(resource)
        for used in live.uses:
            self._users[used].add(resource)

    def _take(self, resource: ResourceKey) -> None:
        live = self._resources.pop(resource, None)
        if live is None:
            return
        if name := self._name(resource[0], live.spec):
            self._named[name].discard(resource)
        for used in live.uses:
            self._users[used].discard(resource)

    def _name(self, kind: str, spec: Spec) -> tuple[str, str] | None:
        """The unique name of a resource, in its scope; None where names may repeat."""
        traits = self._platform.kinds[kind]
        unique = traits.unique_name(spec.display_name)
        return None if unique is None else (traits.scope, unique)

    def _report(self, resource: ResourceKey, key: Key, problem: str) -> None:
        self.problems.setdefault(resource, f"{key if key.name else _shown(resource)} {problem}")


def _shown(resource: ResourceKey) -> str:
    return f"{resource[0]} resource {resource[1]}"
