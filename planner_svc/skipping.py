"""What a caller leaves out of a plan (service.md 1.2 and 5.2)."""

from collections.abc import Iterable

from services.core.errors import RequestInvalid
from services.core.model import Key
from services.kinds.table import ACCEPTED, FAMILY_NAMES, KINDS


def skipped_keys(skips: Iterable[Key]) -> frozenset[Key]:
    """
    What *skips* name, kind by kind; an empty name stands for all of a kind.

    The kinds of a family, such as all kinds of checks, share their names and count as one: each of them stands for all,
    as does the name of the family.

    Raises:
        RequestInvalid: Names what is no kind, and its place.
    """
    return frozenset(
        Key(kind, skip.name)
        for place, skip in enumerate(skips)
        for kind in _relatives(skip.kind, f"skip[{place}].kind")
    )


def _relatives(kind: str, field: str) -> list[str]:
    if kind not in ACCEPTED:
        known = ", ".join(sorted(ACCEPTED))
        raise RequestInvalid(field, f"{kind!r} is no kind; write one of {known}" if kind else "name a kind")
    family = FAMILY_NAMES.get(kind) or KINDS[kind].family
    return [name for name, each in KINDS.items() if each.family == family]
