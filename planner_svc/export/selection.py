"""Selects the resources of an export: the requested ones, and those that they refer to (docs/export.md)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from planner_svc.export.request import ExportSelection, NamedResource, ResourceFilter
from services.core.model import LABEL, InventoryEntry, PlatformTraits, Resource, ResourceKey, StackRecord
from services.kinds.registry import KINDS


@dataclass(slots=True)
class Chosen:
    """
    One resource of an export.

    Attributes:
        resource: The resource.
        label_ids: Ids of the labels to associate with it.
        renaming: The item of the request that gives it another display name; None: it keeps its own.
    """

    resource: Resource
    label_ids: set[str] = field(default_factory=set)
    renaming: NamedResource | None = None


@dataclass(frozen=True, slots=True)
class Warned:
    """
    A warning about a resource that an export leaves out or cannot reproduce exactly.

    Attributes:
        kind: Kind of the resource.
        display_name: Its display name.
        id: Its id; empty for a label that does not exist.
        text: The warning, one sentence.
        obstacle: Why a resource that exists is left out; empty: it is not left out, or it is gone.
    """

    kind: str
    display_name: str
    id: str
    text: str
    obstacle: str = ""


@dataclass(frozen=True, slots=True)
class Selection:
    """
    The resources of an export.

    Attributes:
        chosen: The resources, all of kinds that packages have.
        warnings: Warnings about requested resources that cannot be exported.
        missing: The resources that the request names and that do not exist, each as text.
    """

    chosen: Mapping[ResourceKey, Chosen]
    warnings: list[Warned]
    missing: list[str]


def kinds_to_list(
    requested_selection: ExportSelection, stack: StackRecord | None, platform: PlatformTraits
) -> list[str]:
    """
    The kinds whose resources an export needs completely, sorted.

    Each kind needs also labels, the kinds that it may refer to, and all kinds of its family, which share its names. A
    kind with a costly listing is listed only if the ids of its resources are not known.
    """
    everything = requested_selection.everything
    filtered = (platform.kinds.keys() if everything.kinds is None else everything.kinds) if everything else ()
    by_name = {kind for each in requested_selection.named if each.name for kind in each.kinds}
    by_id = {kind for kind, _ in requested_selection.by_id}
    recorded = {entry.key.kind for entry in stack.resources} & platform.kinds.keys() if stack else set()
    kinds = {*filtered, *by_name, *by_id, *recorded}
    families = {KINDS[kind].family for kind in kinds & KINDS.keys()}
    families |= {used for kind in kinds & KINDS.keys() for used in KINDS[kind].uses.values()}
    around = {kind for kind in KINDS.keys() & platform.kinds.keys() if KINDS[kind].family in families}
    around |= {LABEL} & platform.kinds.keys() if kinds else set()
    whole = {*filtered, *by_name}
    return sorted(kind for kind in kinds | around if kind in whole or not platform.kinds[kind].costly_listing)


def select(
    requested_selection: ExportSelection,
    stack: StackRecord | None,
    live: Mapping[ResourceKey, Resource],
    platform: PlatformTraits,
) -> Selection:
    """
    Choose the resources of an export.

    Args:
        requested_selection: The resources that the request names.
        stack: The stack that it names; None: it names none.
        live: All resources of the kinds of ``kinds_to_list``, and those with a costly listing whose ids are known.
        platform: The platform.
    """
    selector = _Selector(live, platform)
    if requested_selection.everything:
        selector.take_fitting(requested_selection.everything)
    for each in requested_selection.named:
        selector.take_named(each)
    for entry in stack.resources if stack else ():
        selector.take_entry(entry)
    selector.close()
    return Selection(selector.chosen, selector.warnings, selector.missing)


class _Selector:
    """Collects the resources of an export, each of them once, however many parts of the request choose it."""

    def __init__(self, live: Mapping[ResourceKey, Resource], platform: PlatformTraits) -> None:
        self.chosen: dict[ResourceKey, Chosen] = {}
        self.warnings: list[Warned] = []
        self.missing: list[str] = []
        self._live = live
        self._platform = platform
        self._labels_named: frozenset[str] = frozenset()
        # Resources with only the labels that a filter names. One that is also chosen otherwise gets all its labels.
        self._narrow: set[ResourceKey] = set()

    def take_fitting(self, resource_filter: ResourceFilter) -> None:
        """Choose the resources that a filter matches."""
        self._labels_named = self._find_labels(resource_filter.labels)
        for key, resource in self._live.items():
            if resource_filter.kinds is not None and resource.kind not in resource_filter.kinds:
                continue
            carried = {resource.id} if resource.kind == LABEL else set(resource.label_ids)
            if resource_filter.labels and carried.isdisjoint(self._labels_named):
                continue
            if resource.kind not in KINDS:
                text = f"{resource.kind} {resource.spec.display_name!r}: packages have no such kind, so it is left out"
                self.warnings.append(Warned(resource.kind, resource.spec.display_name, resource.id, text))
                continue
            self._take(key, bool(resource_filter.labels))

    def take_named(self, named: NamedResource) -> None:
        """Choose the resources that a request names; one that does not exist is added to ``missing``."""
        keys = [(kind, named.id) for kind in named.kinds if (kind, named.id) in self._live] if named.id else []
        if not keys and named.name:
            keys = [key for key, each in self._live.items() if self._is_named(each, named)]
        if not keys:
            self.missing.append(str(named))
        for key in keys:
            self._take(key, False)
            if named.new_name:
                self.chosen[key].renaming = named

    def take_entry(self, entry: InventoryEntry) -> None:
        """Choose the resource of an entry whose object is still in the package of the stack."""
        key = entry.key.kind, entry.resource_id
        if entry.is_pending_delete:
            return
        obstacle = self._obstacle(key)
        if obstacle or key not in self._live:
            text = f"{entry.key} of the stack is left out: {obstacle or 'its resource is gone'}"
            self.warnings.append(Warned(entry.key.kind, entry.key.name, entry.resource_id, text, obstacle))
            return
        self._take(key, False)

    def close(self) -> None:
        """Choose the resources that chosen ones refer to, and the labels of all."""
        for key in list(self.chosen):
            uses = {f"/{field}" for field in KINDS[key[0]].uses}
            for each in self._live[key].references:
                if each.pointer in uses and each.kind in KINDS and (each.kind, each.id) in self._live:
                    self._take((each.kind, each.id), key in self._narrow)
        for chosen in list(self.chosen.values()):
            for label_id in chosen.label_ids:
                self._take((LABEL, label_id), False)

    def _obstacle(self, key: ResourceKey) -> str:
        """Why a resource of a stack cannot be exported if it exists; empty: it can."""
        if key[0] not in KINDS:
            return "packages have no such kind"
        return "" if key[0] in self._platform.kinds else "the platform has no such kind any more"

    def _take(self, key: ResourceKey, is_narrow: bool) -> None:
        """Choose a resource with its labels; *is_narrow*: only with labels that the filter names."""
        if is_narrow and (key not in self.chosen or key in self._narrow):
            self._narrow.add(key)
        else:
            self._narrow.discard(key)
        labels = {label_id for label_id in self._live[key].label_ids if (LABEL, label_id) in self._live}
        chosen = self.chosen.setdefault(key, Chosen(self._live[key]))
        chosen.label_ids = labels & self._labels_named if key in self._narrow else labels

    def _find_labels(self, names: Sequence[str]) -> frozenset[str]:
        """Ids of the labels with *names*, as the platform compares them; a missing label gives a warning."""
        traits = self._platform.kinds.get(LABEL)
        compared = traits.compared_name if traits else str
        ids: dict[str, set[str]] = {}
        for kind, id_ in self._live:
            if kind == LABEL:
                ids.setdefault(compared(self._live[kind, id_].spec.display_name), set()).add(id_)
        for name in names:
            if compared(name) not in ids:
                self.warnings.append(Warned(LABEL, name, "", f"there is no label {name!r}, so nothing carries it"))
        return frozenset(id_ for name in names for id_ in ids.get(compared(name), ()))

    def _is_named(self, resource: Resource, named: NamedResource) -> bool:
        """Whether *resource* has the name of *named*, as the platform compares names."""
        if resource.kind not in named.kinds:
            return False
        compared = self._platform.kinds[resource.kind].compared_name
        return compared(resource.spec.display_name) == compared(named.name)
