"""What the package of a stack says of policies, as its export says it again (docs/policies.md, "In packages")."""

from collections.abc import Mapping

from services.core.model import InventoryEntry, ResourceKey, StackRecord
from services.kinds.format.canonical import canonical_text
from services.kinds.policy import combined, read_own, resolved

_ADDED_UP = frozenset({"protect", "ignore"})
"""The fields that all layers add to."""


def lifecycles_of(stack: StackRecord, *, has_packages: bool) -> dict[ResourceKey, str]:
    """
    The policies in the objects of the export of *stack*, by their resources; those without one are left out.

    An export of several packages is one package, whose objects say what their packages said as far as it counts.
    """
    lifecycles = {
        (entry.key.kind, entry.resource_id): _lifecycle(entry, stack.policy if has_packages else None)
        for entry in stack.resources
        if entry.own_policy and not entry.is_pending_delete
    }
    return {key: text for key, text in lifecycles.items() if text}


def _lifecycle(entry: InventoryEntry, policy_over_package: Mapping[str, object] | None) -> str:
    """
    The policy in the object of *entry*, as canonical JSON; empty: none.

    Args:
        entry: The entry.
        policy_over_package: The policy of the stack, which overrides what the package says; None: the export has the
            Lifecycle document of the package.
    """
    own = read_own(entry.own_policy)
    layers = [own.of_object]
    if policy_over_package is not None:
        policy = resolved(policy_over_package, entry.key, own)
        counting = {
            name: value for name, value in own.of_package.items() if name in _ADDED_UP or getattr(policy, name) == value
        }
        layers = [counting, own.of_object]
    fields = combined(layers, entry.key)
    return canonical_text(fields) if fields else ""
