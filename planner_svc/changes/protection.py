"""The resources that a policy protects from replacement (docs/reference/engine.md, "Policies", ``protect``)."""

from collections.abc import Iterable, Mapping

from planner_svc.changes.differences import differences_of
from planner_svc.changes.prepare_specs import with_prepared
from planner_svc.matching.desired import Desired
from planner_svc.matching.match import Matching, ProtectedReplacement
from services.core.model import FieldChange, Key, PlatformTraits, Spec, StackRecord
from services.engine.outcome import Failed
from services.kinds.policy import read


def protected_keys(matching: Matching, stack: StackRecord) -> set[Key]:
    """The keys of the matches whose resource is protected, by the policy of now or of the last apply."""
    kept = {entry.key for entry in stack.resources if read(entry.policy).protect}
    if not (kept or matching.has_policies(stack)):
        return set()
    return {
        key
        for key, match in matching.matches.items()
        if key in kept or match.live_key in kept or matching.policy(stack, key).protect
    }


def protected_replacements(
    desired: Desired,
    matching: Matching,
    prepared: Mapping[Key, Spec | Failed],
    stack: StackRecord,
    platform: PlatformTraits,
) -> list[ProtectedReplacement]:
    """
    The objects whose resource would be replaced and is protected, by the policy of now or of the last apply; sorted.

    Raises:
        UnreadableSpecError: The spec of a live resource cannot be read.
    """
    kept = protected_keys(matching, stack)
    if not kept:
        return []
    differences = differences_of(desired, with_prepared(matching, prepared), platform)
    return [
        ProtectedReplacement(key, matching.matches[key].live_key, reason, _others(reason, differences.changed[key]))
        for key, reason in sorted(differences.replaced.items())
        if key in kept
    ]


def _others(reason: str, changed: Iterable[FieldChange]) -> tuple[str, ...]:
    fields = (change.path.lstrip("/") for change in changed)
    return tuple(field for field in fields if f"{field}/".partition("/")[0] != reason.partition("/")[0])
