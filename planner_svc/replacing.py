"""What is protected from being replaced (lifecycle.md 2, ``protect``)."""

from collections.abc import Mapping

from planner_svc.differences import differences
from planner_svc.matching import Matching
from planner_svc.preparing import with_prepared
from services.core.model import Desired, Key, PlatformTraits, Spec, StackRecord, by_key
from services.engine.outcome import Failed
from services.kinds.policy import read, resolved


def protected_replacements(
    desired: Desired,
    matching: Matching,
    prepared: Mapping[Key, Spec | Failed],
    stack: StackRecord,
    platform: PlatformTraits,
) -> frozenset[Key]:
    """
    The keys of objects whose resource would be replaced, and is protected: now, or since the last apply.

    Raises:
        UnreadableSpecError: The spec of a live resource is none.
    """
    recorded = by_key(stack.resources)
    kept = {key for key, entry in recorded.items() if read(entry.policy).protect}
    kept |= {key for key in matching.matches if stack.policy and resolved(stack.policy, key).protect}
    if not kept:
        return frozenset()
    found = differences(desired, with_prepared(matching, prepared), platform)
    return frozenset(key for key in found.replaced if key in kept or matching.matches[key].live_key in kept)
