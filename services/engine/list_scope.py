"""The kinds that are listed whole. Of other kinds, whose listing is costly, only known resources are read."""

from collections.abc import Collection, Set

from services.core.model import LABEL, PlatformTraits
from services.kinds.registry import KINDS


def listed_whole(kinds: Collection[str], deleted: Set[str], platform: PlatformTraits) -> list[str]:
    """
    The part of *kinds* that is listed whole, sorted.

    A kind with a costly listing is included if deletions may change any resource of that kind.

    Args:
        kinds: Kinds of the platform.
        deleted: The kinds of the deleted resources.
        platform: The platform.
    """
    return sorted(
        kind for kind in kinds if not platform.kinds[kind].costly_listing or _is_changed_by_deletions(kind, deleted)
    )


def _is_changed_by_deletions(kind: str, deleted: Set[str]) -> bool:
    """Whether deletions remove labels or references from resources of *kind*."""
    if not deleted or kind not in KINDS:
        # The references of a kind that packages do not have are unknown.
        return bool(deleted)
    families = {KINDS[each].family for each in deleted if each in KINDS}
    return LABEL in deleted or not families.isdisjoint(KINDS[kind].uses.values())
