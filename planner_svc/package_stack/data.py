"""Dependencies that nothing requires any more, and that stay because their data would be lost."""

from collections.abc import Iterable, Mapping

from planner_svc.composition.full_names import package_of
from planner_svc.matching.policies import policy_of_leaving, stays_behind
from planner_svc.resolution.model import ChangeAction, Resolution
from services.core.model import InventoryEntry, Key, Origin, PlatformTraits, StackRecord, Undo
from services.packages.package_text import Declaration


def unneeded_with_data(
    resolution: Resolution,
    uninstalled: Iterable[str],
    stack: StackRecord,
    declarations: Mapping[Key, tuple[Declaration, ...]],
    platform: PlatformTraits,
) -> frozenset[str]:
    """
    The packages that would be removed only because nothing requires them, and whose data would be lost.

    Args:
        resolution: The changes.
        uninstalled: The packages that the request uninstalls.
        stack: The record.
        declarations: The declarations of objects that several packages declare.
        platform: The platform, which knows what a deletion loses.
    """
    removed = {each.name for each in resolution.changes if each.action is ChangeAction.REMOVE}
    pruned = removed.difference(uninstalled)
    with_data: set[str] = set()
    for entry in stack.resources:
        packages = {
            package_of(entry.key.name),
            *(package_of(each.key.name) for each in declarations.get(entry.key, ())),
        }
        if packages <= removed and not pruned.isdisjoint(packages) and _loses_data(entry, stack, platform):
            # If one of them is uninstalled by name, its data goes to those that are not.
            with_data |= packages & pruned
    return frozenset(with_data)


def _loses_data(entry: InventoryEntry, stack: StackRecord, platform: PlatformTraits) -> bool:
    """Whether a removal of its package would delete the resource of *entry*, which cannot be undone."""
    traits = platform.kinds.get(entry.key.kind)
    if traits is None or traits.delete_undo is not Undo.NONE or entry.origin is not Origin.CREATED:
        return False
    policy = policy_of_leaving(stack, entry)
    return not (policy.protect or stays_behind(policy, entry, is_end=True))
