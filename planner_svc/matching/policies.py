"""What the policies of a stack mean for a plan (docs/reference/engine.md, "Policies")."""

from dataclasses import replace

from services.core.model import InventoryEntry, Origin, StackRecord
from services.kinds.policy import Policy, read, read_own, resolved


def policy_of_leaving(stack: StackRecord, entry: InventoryEntry) -> Policy:
    """
    The policy of an entry whose object left the package, or whose stack is uninstalled.

    It is resolved from the policy of the stack now, and from what package and object said when they had the object. The
    entry is protected if that protects it, or did so at the last apply. Hence a protected resource is deleted in two
    applies: the first one lifts the protection, the second one deletes.
    """
    policy = resolved(stack.policy, entry.key, read_own(entry.own_policy))
    return replace(policy, protect=policy.protect or read(entry.policy).protect)


def stays_behind(policy: Policy, entry: InventoryEntry, is_end: bool) -> bool:
    """Whether a resource that leaves the record stays on the platform; *is_end*: because its stack is uninstalled."""
    if not is_end:
        return policy.on_remove == "orphan"
    if policy.on_delete == "orphan":
        return True
    return entry.origin is Origin.ADOPTED and policy.adopted_on_delete == "orphan"
