"""The plan as a whole: a pure function of what is wanted, recorded and live."""

import hashlib
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from planner_svc.associations import Association, associations, recorded_labels
from planner_svc.conflicts import conflicts_of, refuse_replacements
from planner_svc.differences import Differences, differences
from planner_svc.matching import Match, Matching
from planner_svc.secrets import missing_secrets, secret_steps
from planner_svc.steps import Stage, stages
from planner_svc.warnings import warnings_of
from services.core.model import (
    Desired,
    DiffStatus,
    FieldChange,
    InventoryEntry,
    Key,
    LabelMappingDiff,
    Object,
    Origin,
    Plan,
    PlatformTraits,
    ResourceDiff,
    StackRecord,
    Step,
    StepReference,
)
from services.kinds.canonical import canonical_text
from services.kinds.summary import summary_document


@dataclass(frozen=True, slots=True)
class Remarks:
    """
    What the parser found beside the objects; all sorted.

    Attributes:
        missing_env_refs: Environment keys that were not supplied.
        secret_refs: Keys of secrets that the package refers to.
        warnings: For people.
    """

    missing_env_refs: tuple[str, ...] = ()
    secret_refs: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def make_plan(
    desired: Desired,
    stack: StackRecord,
    matching: Matching,
    platform: PlatformTraits,
    remarks: Remarks,
    held_secrets: Set[str] = frozenset(),
) -> Plan:
    """
    Make the plan that carries *matching* out.

    Args:
        desired: What is wanted.
        stack: The record that the plan is based on; without id and name for a plan that leaves no inventory.
        matching: The matches of the two with the live resources.
        platform: Rules of the platform.
        remarks: Passed on.
        held_secrets: Keys of the secrets that the platform holds.

    Raises:
        NameTaken: Two resources would have to have one unique name.
        DependencyCycle: Objects exchange their names.
        RequestInvalid: Something that is referred to is skipped and does not exist.
        ReplacementRefused: What no stack owns would be deleted, and nobody allows that.
    """
    found = differences(desired, matching, platform)
    conflicts = conflicts_of(matching, found, platform)
    if not desired.allow_replace:
        refuse_replacements(conflicts, found)
    replaced = frozenset(found.replaced)
    links = associations(matching, replaced, platform)
    ordered = stages(matching, found, links, platform, secret_steps(desired.secret_keys, held_secrets))
    steps = tuple(step for stage in ordered for step in stage.steps)
    inventory = _inventory(desired, matching, replaced)
    missing = missing_secrets(remarks.secret_refs, desired.secret_keys, held_secrets)
    return Plan(
        target=stack.target,
        stack_id=stack.id,
        base_generation=stack.generation,
        stages=tuple(stage.name for stage in ordered),
        steps=steps,
        resource_diffs=tuple(_diff(match, found.changed) for match in matching.matches.values()),
        label_mapping_diffs=_mapping_diffs(links, matching),
        inventory=inventory,
        no_change=not steps and (not stack.is_kept or inventory == tuple(sorted(stack.resources, key=_key))),
        summary=canonical_text(_summary(desired, matching, found, links, remarks.missing_env_refs, missing)),
        missing_env_refs=remarks.missing_env_refs,
        missing_secrets=missing,
        warnings=(*remarks.warnings, *warnings_of(desired, matching, steps, stack, platform)),
        sources=desired.package.sources,
        digest=_digest(desired, stack, platform, ordered, inventory),
        unresolved_env_refs=_unresolved(desired, remarks),
        conflicts=conflicts,
        stack_name=stack.name,
        ends_stack=desired.is_end,
    )


def _key(entry: InventoryEntry) -> Key:
    return entry.key


def _unresolved(desired: Desired, remarks: Remarks) -> tuple[str, ...]:
    """The missing environment keys for which no default stands in, at one place at least."""
    settled: dict[str, bool] = {}
    for item in desired.package.objects:
        for reference in item.env_references:
            is_settled = reference.default is not None or desired.skips(item.key)
            settled[reference.env_key] = settled.get(reference.env_key, True) and is_settled
    # A key without a place is that of a credential: those take no default (packages.md 6.2).
    return tuple(key for key in remarks.missing_env_refs if not settled.get(key, False))


def _mapping_diffs(links: Sequence[Association], matching: Matching) -> tuple[LabelMappingDiff, ...]:
    """One entry for each association of two objects; one that goes away only to come back is shown as it will be."""
    keys = {match.live_key: key for key, match in matching.matches.items()}
    shown: dict[tuple[Key, Key], Association] = {}
    for link in links:
        resource = keys.get(link.resource, link.resource)
        if resource.name and link.label.name:
            before = shown.get((resource, link.label))
            if before is None or link.wanted:
                shown[resource, link.label] = link._replace(resource=resource)
    return tuple(shown[names].diff() for names in sorted(shown))


def _inventory(desired: Desired, matching: Matching, replaced: frozenset[Key]) -> tuple[InventoryEntry, ...]:
    """What the stack owns once the plan has run."""
    gone = {key for key, match in matching.matches.items() if match.is_removal}
    entries = [
        entry._replace(associations=tuple(sorted(recorded_labels(entry, matching) - gone)))
        for entry in matching.untouched.values()
    ]
    for key, match in matching.matches.items():
        if match.wanted:
            is_new = match.live is None or key in replaced
            resource_id = "" if match.live is None or is_new else match.live.id
            origin = Origin.CREATED if is_new else match.origin
            entries.append(InventoryEntry(key, resource_id, origin, _recorded_associations(desired, matching, match)))
    return tuple(sorted(entries, key=_key))


def _recorded_associations(desired: Desired, matching: Matching, match: Match) -> tuple[Key, ...]:
    """The labels that the package asks for; of those that are skipped, the recorded ones."""
    assert match.wanted is not None  # noqa: S101 - only wanted objects have any
    if not desired.skip:
        return match.wanted.associations
    labels = {label for label in match.wanted.associations if not desired.skips(label)}
    if match.recorded:
        recorded = recorded_labels(match.recorded, matching)
        labels |= {label for label in recorded if desired.skips(label) or label in matching.untouched}
    return tuple(sorted(labels))


def _diff(match: Match, changed: Mapping[Key, tuple[FieldChange, ...]]) -> ResourceDiff:
    status = DiffStatus.REMOVE
    if match.wanted:
        # A recorded resource that is gone still "exists" in the diff, under its recorded id (service.md 1.4).
        status = DiffStatus.EXISTS if match.live or match.recorded else DiffStatus.NEW
    known = match.live.id if match.live else match.recorded.resource_id if match.recorded else ""
    kind = match.live.kind if match.live else match.key.kind
    return ResourceDiff(
        key=match.key,
        resource_id=known,
        status=status,
        old_spec=match.live.spec if match.live else None,
        new_spec=match.wanted.spec if match.wanted else None,
        changes=changed.get(match.key, ()),
        old_kind="" if kind == match.key.kind else kind,
    )


def _summary(
    desired: Desired,
    matching: Matching,
    found: Differences,
    links: Sequence[Association],
    missing_env_refs: Sequence[str],
    missing_secrets: Sequence[str],
) -> dict[str, object]:
    existing = {(link.resource, link.label) for link in links if link.wanted and link.attached}
    objects = desired.package.objects
    used = {each.key: each.id for references in found.references.values() for each in references if each.id}
    live = {key: match.live.id for key, match in matching.matches.items() if match.live and key not in found.replaced}
    return summary_document(
        [_without_skipped_labels(item, desired) for item in objects if not desired.skips(item.key)],
        ids=used | live,
        mapping_status=lambda resource, label: "exists" if (resource, label) in existing else "new",
        missing_env_refs=missing_env_refs,
        missing_secrets=missing_secrets,
        left_out=[item for item in objects if desired.skips(item.key)],
    )


def _without_skipped_labels(item: Object, desired: Desired) -> Object:
    if not desired.skip:
        return item
    labels = tuple(label for label in item.associations if not desired.skips(label))
    return item if labels == item.associations else item._replace(associations=labels)


def _digest(
    desired: Desired,
    stack: StackRecord,
    platform: PlatformTraits,
    ordered: Sequence[Stage],
    inventory: Sequence[InventoryEntry],
) -> str:
    """
    Hash what an apply would do and what it was concluded from (engine.md 7).

    A stack enters by its name, as one that the apply is going to create has no id when the plan is first shown. What
    was observed enters through the steps: a resource that changes meanwhile changes them. Of secrets their keys enter,
    and whether they are there; no value does, as no planner ever sees one.
    """
    content = {
        "stack": stack.name or stack.id,
        "target": [stack.target.platform, stack.target.org],
        "base_generation": stack.generation,
        "ends_stack": desired.is_end,
        "platform": [platform.platform, platform.version],
        "stages": [[stage.name, [_step_content(step) for step in stage.steps]] for stage in ordered],
        "inventory": [
            [*entry.key, entry.resource_id, entry.origin.value, [label.name for label in entry.associations]]
            for entry in inventory
        ],
    }
    return "sha256:" + hashlib.sha256(canonical_text(content).encode()).hexdigest()


def _step_content(step: Step) -> list[object]:
    return [
        step.verb.value,
        *step.key,
        step.resource_id,
        step.label.name if step.label else None,
        step.label_id,
        step.old_spec.text if step.old_spec else None,
        step.new_spec.text if step.new_spec else None,
        step.undo.value,
        [_reference_content(each) for each in step.old_references],
        [_reference_content(each) for each in step.references],
    ]


def _reference_content(reference: StepReference) -> list[str]:
    return [reference.pointer, *reference.key, reference.id]
