"""The plan as a whole: a pure function of desired, recorded and live state."""

from collections.abc import Collection, Mapping, Set
from dataclasses import dataclass
from types import MappingProxyType

from planner_svc.changes.associations import associations, recorded_labels
from planner_svc.changes.data_loss import with_protected_data
from planner_svc.changes.differences import differences_of
from planner_svc.changes.prepare_specs import refuse_content, with_prepared
from planner_svc.changes.rename_order import refuse_equal_names, refuse_taken_names
from planner_svc.changes.steps import refuse_cycles, schedule, stages
from planner_svc.conflicts import conflicts_of, refuse_replacements
from planner_svc.digests import plan_digest
from planner_svc.history import history_of
from planner_svc.matching.desired import Desired
from planner_svc.matching.match import Match, Matching
from planner_svc.matching.references import refuse_missing_references
from planner_svc.secrets import missing_secrets, secret_steps
from planner_svc.sharing.cross_stack_use import refuse_used
from planner_svc.sharing.namesakes import namesakes_of, warnings_about
from planner_svc.sharing.ownership import (
    ResourceHolders,
    refuse_differing,
    refuse_used_replacements,
    remarks_of,
    staying_labels,
    uses_of,
    with_take_overs,
)
from planner_svc.views import ViewInput
from planner_svc.warnings import warnings_of
from services.core.model import (
    Adoption,
    InventoryEntry,
    Key,
    Origin,
    Plan,
    PlanRemarks,
    PlatformTraits,
    RecordChanges,
    ResourceKey,
    Spec,
    StackRecord,
    Violation,
    by_key,
)
from services.engine.outcome import Failed
from services.kinds.policy import NO_OWN_POLICY, max_deletes, read_own, resolved
from services.packages.package_text import NOTHING_KEPT, KeptPackage


@dataclass(frozen=True, slots=True)
class Remarks:
    """
    The findings of the parser beside the objects; all sorted.

    Attributes:
        missing_env_refs: Environment keys that were not supplied.
        secret_refs: Keys of secrets that the package refers to.
        warnings: Warnings for the user.
        package_warnings: Warnings about the package, without fixes.
    """

    missing_env_refs: tuple[str, ...] = ()
    secret_refs: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    package_warnings: tuple[Violation, ...] = ()


def make_plan(
    desired: Desired,
    stack: StackRecord,
    matching: Matching,
    platform: PlatformTraits,
    remarks: Remarks,
    held_secrets: Set[str] = frozenset(),
    holders: Mapping[ResourceKey, ResourceHolders] = MappingProxyType({}),
    prepared: Mapping[Key, Spec | Failed] = MappingProxyType({}),
    previous: KeptPackage = NOTHING_KEPT,
) -> ViewInput:
    """
    Make the plan for *matching*.

    Args:
        desired: The desired state.
        stack: The record that the plan is based on; without id and name for a plan without a stack.
        matching: The matches of desired and recorded objects with the live resources.
        platform: Rules of the platform.
        remarks: The findings of the parser, for the remarks of the plan.
        held_secrets: Keys of the secrets that the platform holds.
        holders: Owners of namesakes, and of the resources that use deleted resources, where they have one.
        prepared: The specs of ``specs_to_prepare`` as the platform would hold them; missing: the spec is held as it is.
        previous: The package of the current revision of the stack; needed only if an object of the stack is skipped.

    Raises:
        PkgerError: A check refuses the plan (docs/reference/engine.md, "Refusals").
        UnreadableSpecError: The spec of a live resource cannot be read.
    """
    refuse_content(stack.target.platform, matching, prepared)
    matching, protected_data = with_protected_data(with_prepared(matching, prepared), stack)
    differences = differences_of(desired, matching, platform)
    matching = with_take_overs(desired, matching, differences, stack)
    conflicts = conflicts_of(matching, differences, platform)
    refuse_missing_references(differences.missing_references)
    refuse_differing(matching, differences)
    refuse_used_replacements(matching, differences)
    refuse_replacements(desired, conflicts, differences)
    refuse_equal_names(matching, platform)
    scheduled = schedule(matching, differences, platform)
    refuse_taken_names(scheduled.names)
    refuse_cycles(scheduled)
    replaced = frozenset(differences.replaced)
    links = associations(matching, replaced, platform)
    secrets = secret_steps(desired.secret_keys, held_secrets)
    ordered = stages(scheduled, matching, differences, links, secrets, is_end=desired.is_end)
    steps = tuple(step for stage in ordered for step in stage.steps)
    refuse_used(steps, matching, holders, stack)
    inventory = _inventory(desired, matching, replaced, stack)
    record = _record_changes(inventory, matching, stack)
    changes_anything = bool(steps or record.entries or record.removed) or desired.deletes_stack
    changes_anything = changes_anything or bool(desired.packages and desired.packages.planned)
    namesakes = namesakes_of(matching, stack, platform)
    history = history_of(desired, matching, differences, inventory, steps, stack, previous)
    plan = Plan(
        target=stack.target,
        stack_id=stack.id,
        base_generation=stack.generation,
        stages=tuple(stage.name for stage in ordered),
        steps=steps,
        record=record,
        no_change=not changes_anything,
        kind=desired.operation_kind,
        remarks=PlanRemarks(
            missing_env_refs=remarks.missing_env_refs,
            unresolved_env_refs=_unresolved(desired, remarks),
            missing_secrets=missing_secrets(remarks.secret_refs, desired.secret_keys, held_secrets),
            warnings=(
                *remarks.warnings,
                *warnings_about(namesakes, holders, stack),
                *warnings_of(desired, matching, steps, stack, platform, protected_data),
                *remarks_of(matching, differences),
            ),
            conflicts=conflicts,
            package_warnings=remarks.package_warnings,
        ),
        sources=desired.package.sources,
        digest=plan_digest(desired, stack, platform, ordered, inventory, history.package_digest),
        stack_name=stack.name,
        adoptions=_adoptions(matching) if steps or record.entries else (),
        uses=uses_of(matching, links, stack) if steps or record.entries else (),
        package_digest=history.package_digest,
        baselines_digest=history.baselines_digest,
        rollback_of=desired.rollback_of,
        after_uninstall=desired.after_uninstall,
        key_changes=tuple(sorted(matching.renamed.items())),
        untouched_count=len(matching.untouched) + len(protected_data),
        creates_nameless_stack=stack.is_new_nameless,
        max_deletes=max_deletes(stack.policy),
        duplicate_count=len(namesakes),
    )
    return ViewInput(plan, desired, matching, differences, links, history.texts)


def _record_changes(inventory: Collection[InventoryEntry], matching: Matching, stack: StackRecord) -> RecordChanges:
    """
    The changes of the record that a run of the plan makes; *inventory*, which is sorted, has the entries afterwards.
    """
    if not stack.is_kept:
        return RecordChanges()
    recorded, inventory_keys = by_key(stack.resources), {entry.key for entry in inventory}
    return RecordChanges(
        tuple(entry for entry in inventory if recorded.get(entry.key) != entry),
        tuple(sorted(recorded.keys() - inventory_keys)),
        # Only live resources: one that was deleted outside pkger gets no other owner.
        tuple(sorted(key for key, match in matching.matches.items() if match.stays and match.live and key in recorded)),
        staying_labels(matching),
        tuple(sorted(key for key, match in matching.matches.items() if match.takes_over)),
    )


def _adoptions(matching: Matching) -> tuple[Adoption, ...]:
    return tuple(
        Adoption(match.key, match.live.kind, match.live.id, match.live.spec.display_name)
        for match in matching.adopted
        if match.live
    )


def _key(entry: InventoryEntry) -> Key:
    return entry.key


def _unresolved(desired: Desired, remarks: Remarks) -> tuple[str, ...]:
    """The missing environment keys that at least one reference uses without a default."""
    settled: dict[str, bool] = {}
    for item in desired.package.objects:
        for reference in item.env_references:
            is_settled = reference.default is not None or desired.skips(item.key)
            settled[reference.env_key] = settled.get(reference.env_key, True) and is_settled
    # A key that no object refers to belongs to a credential, which takes no default (docs/reference/package-format.md,
    # "Where references work").
    return tuple(key for key in remarks.missing_env_refs if not settled.get(key, False))


def _inventory(
    desired: Desired, matching: Matching, replaced: frozenset[Key], stack: StackRecord
) -> tuple[InventoryEntry, ...]:
    """The entries of the stack after the plan has run."""
    # Nothing attaches a label that is created again to a resource that the plan does not touch.
    detached = {
        key
        for key, match in matching.matches.items()
        if match.is_removal or (match.desired and match.live is None) or key in replaced
    }
    declared = {
        each.recorded: matching.own_policies.get(each.key, NO_OWN_POLICY) for each in matching.protected_replacements
    }
    entries = []
    for key, recorded in matching.untouched.items():
        entry = recorded._replace(associations=tuple(sorted(recorded_labels(recorded, matching) - detached)))
        # A protected entry stays and gets the policy of this apply; another one that is kept has its own policy.
        if key in matching.protected_entries or not (desired.options.keep_others or desired.skips_entry(recorded)):
            own = declared[key] if key in declared else read_own(recorded.own_policy)
            entries.append(entry._replace(policy=resolved(stack.policy, key, own).text, own_policy=own.text))
        else:
            entries.append(entry)
    for key, match in matching.matches.items():
        if match.desired:
            is_new = match.live is None or key in replaced
            resource_id = "" if match.live is None or is_new else match.live.id
            origin = Origin.CREATED if is_new else match.origin
            labels, policy = _recorded_associations(desired, matching, match), matching.policy(stack, key).text
            own_policy = matching.own_policies[key].text if key in matching.own_policies else ""
            entries.append(InventoryEntry(key, resource_id, origin, labels, policy=policy, own_policy=own_policy))
    return tuple(sorted(entries, key=_key))


def _recorded_associations(desired: Desired, matching: Matching, match: Match) -> tuple[Key, ...]:
    """The labels that the package declares; of skipped labels, those that a live resource is recorded to have."""
    assert match.desired is not None  # noqa: S101 - only desired objects have any
    if not desired.skip:
        return match.desired.associations
    suspended = matching.suspended_labels
    labels = {label for label in match.desired.associations if not desired.skips(label) or label in suspended}
    if match.recorded and match.live:
        recorded = recorded_labels(match.recorded, matching) - suspended
        labels |= {label for label in recorded if desired.skips(label) or label in matching.untouched}
    return tuple(sorted(labels))
