"""What the policies of a stack mean for a plan (docs/reference/engine.md, "Policies")."""

from dataclasses import replace

from services.core.model import InventoryEntry, Origin, StackRecord
from services.kinds.policy import Policy, read, resolved


def policy_of_leaving(stack: StackRecord, entry: InventoryEntry) -> Policy:
    """
    What holds of an entry whose object left the package, or whose stack ends.

    The stack may protect it now, or may have done so when it was last applied: to unprotect and delete takes two
    applies.
    """
    policy = resolved(stack.policy, entry.key)
    return replace(policy, protect=policy.protect or read(entry.policy).protect)


def stays_behind(policy: Policy, entry: InventoryEntry, is_end: bool) -> bool:
    """Whether a resource that leaves the record stays on the platform; *is_end*: because its stack ends."""
    if not is_end:
        return policy.on_remove == "orphan"
    if policy.on_delete == "orphan":
        return True
    return entry.origin is Origin.ADOPTED and policy.adopted_on_delete == "orphan"
