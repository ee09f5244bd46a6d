"""
The three sides of each resource of a stack, package, baseline and platform, and its drift (docs/reference/engine.md,
"Drift").
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

import orjson

from planner_svc.drift.three_way import Presence, Side, fields_of, status_of, value_text
from services.core.drift import DriftField, DriftStatus
from services.core.masking import masked_sides
from services.core.model import (
    LABEL,
    Baseline,
    DesiredSpec,
    InventoryEntry,
    Key,
    KindTraits,
    Object,
    Origin,
    PlatformTraits,
    Reference,
    Resource,
    ResourceKey,
    Spec,
    StackRecord,
    UnreadableSpecError,
    by_key,
)
from services.engine.outcome import Failed
from services.kinds.comparing import comparable, differences
from services.kinds.format.canonical import canonical_text
from services.kinds.policy import read_own, resolved
from services.kinds.registry import KINDS, family_and_name
from services.packages.package_text import KeptPackage

SENSITIVE = '"(sensitive)"'
"""Shown instead of a credential, as JSON text."""


class LiveState(NamedTuple):
    """
    The live resources.

    Attributes:
        resources: The resources that were listed or read, by kind and id.
        problems: The kinds that cannot be read, each with the reason in one sentence.
    """

    resources: Mapping[ResourceKey, Resource]
    problems: Mapping[str, str]


# Without slots, as cached properties need a dict.
@dataclass(frozen=True)
class DriftInput:
    """
    The facts that a drift detection compares.

    Attributes:
        stack: The record of the stack.
        entries: The entries of the stack that are compared.
        package: The package of the current revision; None: there is none.
        baselines: The baselines of the stack, by key.
        live: The live resources of the kinds of *entries*.
        platform: The traits of the platform.
    """

    stack: StackRecord
    entries: Sequence[InventoryEntry]
    package: KeptPackage | None
    baselines: Mapping[Key, Baseline]
    live: LiveState
    platform: PlatformTraits

    def has_left(self, key: Key) -> bool:
        """Whether the package of the current revision is known and does not have *key*."""
        return self.package is not None and key not in self.objects and key not in self.package.untouched

    @cached_property
    def objects(self) -> Mapping[Key, Object]:
        """The objects of the current revision whose desired state it has, by key."""
        return self.package.applied if self.package else {}

    @cached_property
    def label_ids(self) -> Mapping[str, str]:
        """Ids of the recorded labels, by name."""
        return {entry.key.name: entry.resource_id for entry in self.stack.resources if entry.key.kind == LABEL}

    @cached_property
    def referable(self) -> Mapping[tuple[str, str], InventoryEntry]:
        """The recorded entries by family and name, by which packages refer to them."""
        return {family_and_name(key): entry for key, entry in by_key(self.stack.resources).items()}


class ResourceDrift(NamedTuple):
    """
    The drift of one resource; planner.proto defines each field.

    Attributes:
        entry: Its entry.
        status: Its drift status.
        fields: The fields that differ, sorted by path.
        display_name: Its display name.
        same_name: The live resource that has the unique name of this one, which is missing.
        problem: Why it cannot be read.
        lacks_baseline: Whether it has no baseline.
        is_ignored: Whether its policy ignores drift.
    """

    entry: InventoryEntry
    status: DriftStatus
    fields: tuple[DriftField, ...] = ()
    display_name: str = ""
    same_name: ResourceKey | None = None
    problem: str = ""
    lacks_baseline: bool = False
    is_ignored: bool = False

    @property
    def counted(self) -> DriftStatus:
        """The status that it counts as: in sync if it was changed outside the stack and its policy ignores drift."""
        return DriftStatus.IN_SYNC if self.is_ignored and self.status in _CHANGED else self.status


_CHANGED = (DriftStatus.MISSING, DriftStatus.CONFLICT, DriftStatus.DRIFTED)
"""The statuses of a resource that was changed outside the stack."""


def missing_scopes(facts: DriftInput) -> set[str]:
    """The scopes of the unique names of missing resources."""
    return {
        traits.scope
        for entry in facts.entries
        if entry.key.kind not in facts.live.problems and (entry.key.kind, entry.resource_id) not in facts.live.resources
        if (traits := facts.platform.kinds[entry.key.kind]).unique_name("") is not None
    }


def specs_to_compare(facts: DriftInput) -> dict[Key, DesiredSpec]:
    """
    The specs of the package that differ from the baseline, or from the live resource if there is no baseline.

    The difference may be one of notation only, which the platform resolves by preparing the spec.
    """
    specs: dict[Key, DesiredSpec] = {}
    for entry in facts.entries:
        key, item = entry.key, facts.objects.get(entry.key)
        live = facts.live.resources.get((key.kind, entry.resource_id))
        if item is None or live is None or entry.is_pending_delete:
            continue
        baseline = facts.baselines.get(key)
        old_spec = Spec(baseline.spec, "") if baseline else live.spec
        references = [each for each in _package_references(item, facts).values() if each]
        pointers = {each.pointer for each in references}
        try:
            differing = differences(key.kind, old_spec, key.kind, item.spec, facts.platform.kinds[key.kind].set_paths)
        except UnreadableSpecError:
            # The report of the resource has the problem.
            continue
        if any(change.path not in pointers for change in differing):
            specs[key] = DesiredSpec(key.kind, entry.resource_id, item.spec, tuple(references))
    return specs


def reports_of(facts: DriftInput, prepared: Mapping[Key, Spec | Failed] = MappingProxyType({})) -> list[ResourceDrift]:
    """
    Report the drift of each resource.

    Args:
        facts: The facts to compare.
        prepared: The specs of ``specs_to_compare`` as the platform would hold them; missing: the spec is held as it is.

    Returns:
        One report for each entry, worst first, then sorted by key.
    """
    reports = [_report(entry, facts, prepared.get(entry.key)) for entry in facts.entries]
    missing = [report for report in reports if report.status is DriftStatus.MISSING]
    if missing:
        names = _names(facts)
        named = {report.entry.key: names.get(_unique_name(report, facts.platform)) for report in missing}
        reports = [report._replace(same_name=named.get(report.entry.key)) for report in reports]
    return sorted(reports, key=lambda report: (report.status.rank, report.entry.key))


def _report(entry: InventoryEntry, facts: DriftInput, prepared: Spec | Failed | None) -> ResourceDrift:
    key, policy = entry.key, resolved(facts.stack.policy, entry.key, read_own(entry.own_policy))
    item, baseline = facts.objects.get(key), facts.baselines.get(key)
    live = facts.live.resources.get((key.kind, entry.resource_id))
    is_ignored = policy.drift == "ignore"
    report = ResourceDrift(entry, DriftStatus.UNREADABLE, lacks_baseline=baseline is None, is_ignored=is_ignored)
    try:
        if live is None:
            name = item.spec.display_name if item else _name_in(baseline)
            problem = facts.live.problems.get(key.kind, "")
            presence = Presence.UNREADABLE if problem else Presence.GONE
            status = status_of(presence, (), is_pending_delete=entry.is_pending_delete)
            return report._replace(status=status, display_name=name, problem=problem)
        report = report._replace(display_name=live.spec.display_name)
        if entry.is_pending_delete:
            return report._replace(status=status_of(Presence.THERE, (), is_pending_delete=True))
        fields = _fields(entry, live, facts, prepared, policy.ignore)
        return report._replace(status=status_of(Presence.THERE, fields), fields=fields)
    except UnreadableSpecError as error:
        return report._replace(problem=str(error))


def _fields(
    entry: InventoryEntry, live: Resource, facts: DriftInput, prepared: Spec | Failed | None, ignored: Collection[str]
) -> tuple[DriftField, ...]:
    item, baseline = facts.objects.get(entry.key), facts.baselines.get(entry.key)
    applied = Spec(baseline.spec, "") if baseline else None
    package = prepared if isinstance(prepared, Spec) else item.spec if item else None
    if package is None and not facts.has_left(entry.key):
        # The desired state is unknown: the applied state counts as desired.
        package = applied or live.spec
    specs = (package, applied or package or live.spec, live.spec)
    traits = facts.platform.kinds[entry.key.kind]
    labels = _labels(entry, live, facts)
    references = _references(entry, live, facts)
    if entry.origin is Origin.SHARED and facts.stack.policy.get("share") == "always":
        # The stack uses the resource as its owner has it, so all sides are equal.
        specs, references = (live.spec,) * 3, (references[2],) * 3
    if specs[0] == specs[1] == specs[2] and _are_equal(labels) and _are_equal(references):
        return ()
    package_side, applied_side, live_side = (
        Side(comparable(entry.key.kind, spec, traits.set_paths).value if spec else None, names, referred)
        for spec, names, referred in zip(specs, labels, references, strict=True)
    )
    fields = fields_of(package_side, applied_side, live_side, ignored)
    return _masked(fields, [spec for spec in specs if spec], traits)


def _are_equal(sides: Sequence[object]) -> bool:
    package, applied, live = sides
    return package == applied == live


def _labels(entry: InventoryEntry, live: Resource, facts: DriftInput) -> tuple[frozenset[str], ...]:
    """The names of the labels on each side; a label without an entry in the stack does not count."""
    item, baseline, ids = facts.objects.get(entry.key), facts.baselines.get(entry.key), facts.label_ids
    recorded = {label for label in entry.associations if not (baseline and label in baseline.missing_labels)}
    package = {*item.associations} if item else recorded
    applied = recorded if baseline else package
    named = [frozenset(label.name for label in labels if label.name in ids) for labels in (package, applied)]
    return (*named, frozenset(name for name in named[0] | named[1] if ids[name] in live.label_ids))


def _references(entry: InventoryEntry, live: Resource, facts: DriftInput) -> tuple[Mapping[str, str], ...]:
    """The references of each side, by pointer."""
    item, baseline = facts.objects.get(entry.key), facts.baselines.get(entry.key)
    package_references = _package_references(item, facts) if item else {}
    if not (package_references or live.references or (baseline and baseline.references)):
        return {}, {}, {}
    live_references = {each.pointer: _text(each) for each in live.references}
    applied = {each.pointer: _text(each) for each in baseline.references} if baseline else None
    # A reference to an object without an entry counts as unchanged.
    before = live_references if applied is None else applied
    package = {
        pointer: _text(each) if each else before[pointer]
        for pointer, each in package_references.items()
        if each or pointer in before
    }
    if item is None:
        package = before
    return package, package if applied is None else applied, live_references


def _package_references(item: Object, facts: DriftInput) -> dict[str, Reference | None]:
    """The references of *item*, by pointer; None for a reference to an object without an entry."""
    references: dict[str, Reference | None] = {}
    kind = KINDS.get(item.key.kind)
    for field, family in kind.uses.items() if kind else ():
        pointer = f"/{field}"
        entry = facts.referable.get((family, item.spec.value[field]))
        references[pointer] = Reference(pointer, entry.key.kind, entry.resource_id) if entry else None
    return references


def _text(reference: Reference) -> str:
    return canonical_text({"id": reference.id, "kind": reference.kind})


def _masked(fields: tuple[DriftField, ...], specs: Iterable[Spec], traits: KindTraits) -> tuple[DriftField, ...]:
    """
    *fields* without the credentials in addresses, and at sensitive paths of any side.

    Keys of secrets are not credentials.
    """
    hidden = {path for spec in specs for path in traits.written_secrets(spec)} if fields else set()
    for path in hidden:
        fields = tuple(
            each._replace(
                package=_hidden(each.path, each.package, path),
                applied=_hidden(each.path, each.applied, path),
                live=_hidden(each.path, each.live, path),
            )
            for each in fields
        )
    return tuple(map(_with_masked_addresses, fields))


def _with_masked_addresses(field: DriftField) -> DriftField:
    package, applied, live = masked_sides((field.package, field.applied, field.live))
    return field._replace(package=package, applied=applied, live=live)


def _hidden(path: str, text: str, sensitive: str) -> str:
    """The *text* of the field at *path* without the value at the pointer *sensitive*."""
    if not text:
        return text
    if f"{path}/".startswith(f"{sensitive}/"):
        return SENSITIVE
    if not sensitive.startswith(f"{path}/"):
        return text
    value = orjson.loads(text)
    *holders, name = (
        step.replace("~1", "/").replace("~0", "~") for step in sensitive.removeprefix(path).split("/")[1:]
    )
    holder = value
    for step in holders:
        holder = holder.get(step) if isinstance(holder, dict) else None
    if isinstance(holder, dict) and name in holder:
        holder[name] = orjson.loads(SENSITIVE)
    return value_text(value)


def _name_in(baseline: Baseline | None) -> str:
    return str(Spec(baseline.spec, "").value.get("name", "")) if baseline else ""


def _names(facts: DriftInput) -> dict[tuple[str, str] | None, ResourceKey]:
    """The resources that have unique names, by scope and name."""
    names: dict[tuple[str, str] | None, ResourceKey] = {}
    for resource_key, resource in sorted(facts.live.resources.items()):
        traits = facts.platform.kinds[resource.kind]
        unique = traits.unique_name(resource.spec.display_name)
        if unique is not None:
            names.setdefault((traits.scope, unique), resource_key)
    return names


def _unique_name(report: ResourceDrift, platform: PlatformTraits) -> tuple[str, str] | None:
    traits = platform.kinds[report.entry.key.kind]
    unique = traits.unique_name(report.display_name) if report.display_name else None
    return None if unique is None else (traits.scope, unique)
