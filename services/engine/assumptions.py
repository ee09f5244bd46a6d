"""
The facts that a plan relies on although none of its steps would notice a change: resources that it adopts, and labels
that are attached already (docs/reference/engine.md, "Claims").
"""

from collections.abc import Mapping

from services.core.model import LABEL, Plan, Resource, ResourceKey


def assumed_resources(plan: Plan) -> list[ResourceKey]:
    """The resources that *plan* adopts, or on which it assumes that a label is attached, sorted."""
    labelled = {(use.kind, use.resource_id) for use in plan.uses if use.label_id}
    return sorted(labelled | {(each.kind, each.resource_id) for each in plan.adoptions})


def broken_assumptions(plan: Plan, live: Mapping[ResourceKey, Resource]) -> list[str]:
    """
    The facts that *plan* relies on and that are no longer true, one sentence for each, sorted by resource.

    Args:
        plan: The plan.
        live: Those resources of ``assumed_resources`` that exist.
    """
    keys = {(entry.key.kind, entry.resource_id): entry.key for entry in plan.record.entries if entry.resource_id}
    names = {each: str(keys.get(each, f"{each[0]} resource {each[1]}")) for each in assumed_resources(plan)}
    parts = {resource: f"{name} is gone" for resource, name in names.items() if resource not in live}
    for use in plan.uses:
        resource = use.kind, use.resource_id
        if use.label_id and resource in live and use.label_id not in live[resource].label_ids:
            label = keys.get((LABEL, use.label_id), f"{LABEL} resource {use.label_id}")
            parts.setdefault(resource, f"{names[resource]} lost {label}")
    return [parts[resource] for resource in sorted(parts)]
