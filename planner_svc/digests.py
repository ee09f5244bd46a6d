"""
The digest of a plan: the steps of an apply, and the facts that they follow from (docs/reference/engine.md, "Plans").
"""

import hashlib
from collections.abc import Iterator, Sequence

from planner_svc.changes.steps import Stage
from planner_svc.matching.desired import Desired
from services.core.model import InventoryEntry, PlatformTraits, StackRecord, Step, StepReference
from services.kinds.format.canonical import canonical_text


def plan_digest(
    desired: Desired,
    stack: StackRecord,
    platform: PlatformTraits,
    ordered: Sequence[Stage],
    inventory: Sequence[InventoryEntry],
    package_digest: str = "",
) -> str:
    """
    Hash a plan; equal plans have equal digests.

    A stack enters by its name, as a stack that the apply creates has no id when the plan is first shown. Live resources
    enter through the steps: a resource that changes meanwhile changes them. Secrets enter with their keys and whether
    the platform holds them, but not with their values, which a planner never gets.

    Args:
        desired: The desired state.
        stack: The record that the plan is based on.
        platform: The platform.
        ordered: The stages with their steps.
        inventory: The entries of the stack once the plan has run.
        package_digest: Digest of the package of its revision; empty: there is none.
    """
    digest = hashlib.sha256()
    # Line by line, as the content of a large plan is tens of megabytes.
    for line in _content(desired, stack, platform, ordered, inventory, package_digest):
        digest.update(canonical_text(line).encode() + b"\n")
    return f"sha256:{digest.hexdigest()}"


def _content(
    desired: Desired,
    stack: StackRecord,
    platform: PlatformTraits,
    ordered: Sequence[Stage],
    inventory: Sequence[InventoryEntry],
    package_digest: str,
) -> Iterator[object]:
    yield {
        "stack": stack.name or stack.id,
        "target": [stack.target.platform, stack.target.org],
        "base_generation": stack.generation,
        "ends_stack": desired.is_end,
        "rollback_of": desired.rollback_of,
        "package": package_digest,
        **({"after_uninstall": desired.after_uninstall.value} if desired.is_end else {}),
        **({"nameless": True} if desired.is_for_nameless else {}),
        "platform": [platform.platform, platform.version],
    }
    for stage in ordered:
        yield {"stage": stage.name}
        yield from map(_step_content, stage.steps)
    yield {"inventory": len(inventory)}
    for entry in inventory:
        labels = [label.name for label in entry.associations]
        own_policy = [entry.own_policy] if entry.own_policy else []
        yield [*entry.key, entry.resource_id, entry.origin.value, labels, entry.policy, *own_policy]


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
