"""Which kinds are listed whole; of others, whose listing is costly, only known resources are read."""

from collections.abc import Collection, Set

from services.core.model import LABEL, PlatformTraits
from services.kinds.registry import KINDS


def listed_whole(kinds: Collection[str], deleted: Set[str], platform: PlatformTraits) -> list[str]:
    """
    Those of *kinds* that are listed whole, sorted.

    A kind with a costly listing is, where deletions may change any resource of it.

    Args:
        kinds: Kinds of the platform.
        deleted: The kinds of what is deleted.
        platform: The platform.
    """
    return sorted(
        kind for kind in kinds if not platform.kinds[kind].costly_listing or _is_changed_by_deletions(kind, deleted)
    )


def _is_changed_by_deletions(kind: str, deleted: Set[str]) -> bool:
    """Whether deletions take labels or references from resources of *kind*."""
    if not deleted or kind not in KINDS:
        # Nobody knows what a kind refers to that packages have not.
        return bool(deleted)
    families = {KINDS[each].family for each in deleted if each in KINDS}
    return LABEL in deleted or not families.isdisjoint(KINDS[kind].uses.values())
