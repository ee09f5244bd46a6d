"""
Drift: the fields of one resource at which package, baseline and platform are not all equal (docs/reference/engine.md,
"Drift").

The rules here are pure; ``sides.py`` says what the three sides of a recorded resource are.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from enum import Enum
from typing import Any, NamedTuple

from services.core.drift import DriftClass, DriftField, DriftStatus
from services.kinds.policy import ignores

_ABSENT = object()
"""In the place of a value that is not there; null is a value."""

_LABELS = "/associations"

Three = tuple[Any, Any, Any]
"""What stands at one place of the three sides: package, applied, live."""


class Side(NamedTuple):
    """
    What one of package, baseline and platform says of a resource.

    Attributes:
        spec: The content, with the lists whose order has no meaning sorted; None: the side does not have the resource.
        labels: Names of the labels.
        references: What is referred to, by pointer, as JSON text.
    """

    spec: Mapping[str, Any] | None
    labels: Set[str] = frozenset()
    references: Mapping[str, str] = {}


class Found(Enum):
    """What is known of a resource on the platform."""

    THERE = "there"
    GONE = "gone"
    UNREADABLE = "unreadable"


def fields_of(package: Side, applied: Side, live: Side, ignored: Collection[str] = ()) -> tuple[DriftField, ...]:
    """
    Compare the three sides of one resource.

    Labels that neither package nor baseline knows are other people's, and no drift.

    Args:
        package: What the current revision says.
        applied: What the platform held after the last write.
        live: What the platform holds.
        ignored: Pointers that the policy ignores; a whole segment may be ``*``. Each takes its field and all below it.

    Returns:
        The fields at which not all sides are equal, sorted by path.
    """
    sides = (package, applied, live)
    referring = {pointer for side in sides for pointer in side.references}
    differing = {
        path: texts
        for path, texts in _walk("", *(_ABSENT if side.spec is None else side.spec for side in sides))
        # The word there is the package's own for what is referred to.
        if path not in referring
    }
    differing |= {pointer: _texts(side.references.get(pointer, "") for side in sides) for pointer in referring}
    differing |= {
        f"{_LABELS}/{_escaped(name)}": _texts("true" if name in side.labels else "" for side in sides)
        for name in package.labels | applied.labels
    }
    return tuple(
        DriftField(path, _class_of(path, texts, ignored), *texts)
        for path, texts in sorted(differing.items())
        if len({*texts}) > 1
    )


def status_of(found: Found, fields: Iterable[DriftField], *, is_pending_delete: bool = False) -> DriftStatus:
    """
    Say how a resource is.

    Args:
        found: What is known of it on the platform.
        fields: Its fields that are different; of no account unless it is there and wanted.
        is_pending_delete: Whether its entry says that it is to be deleted.
    """
    if found is Found.UNREADABLE:
        return DriftStatus.UNREADABLE
    if is_pending_delete:
        return DriftStatus.LEFTOVER if found is Found.THERE else DriftStatus.GONE
    if found is Found.GONE:
        return DriftStatus.MISSING
    counted = {_STATUSES[each.field_class] for each in fields if each.field_class in _STATUSES}
    return min(counted, key=lambda status: status.rank, default=DriftStatus.IN_SYNC)


_STATUSES = {
    DriftClass.CONFLICT: DriftStatus.CONFLICT,
    DriftClass.DRIFTED: DriftStatus.DRIFTED,
    DriftClass.PENDING: DriftStatus.PENDING,
}
"""What each class makes of its resource; the others count for nothing."""


def _class_of(path: str, texts: tuple[str, str, str], ignored: Collection[str]) -> DriftClass:
    package, applied, live = texts
    if any(ignores(rule, path) for rule in ignored):
        return DriftClass.IGNORED
    if applied == live:
        return DriftClass.PENDING
    if package == applied:
        return DriftClass.DRIFTED
    return DriftClass.CONVERGED if package == live else DriftClass.CONFLICT


def _walk(path: str, package: Any, applied: Any, live: Any) -> Iterator[tuple[str, tuple[str, str, str]]]:
    """The places at which not all sides are equal, with their texts."""
    sides = (package, applied, live)
    if package is applied is live:
        return
    if all(isinstance(side, Mapping) for side in sides):
        for key in package.keys() | applied.keys() | live.keys():
            yield from _walk(f"{path}/{_escaped(key)}", *(side.get(key, _ABSENT) for side in sides))
    elif all(isinstance(side, list) for side in sides) and len(package) == len(applied) == len(live):
        for index, items in enumerate(zip(*sides, strict=True)):
            yield from _walk(f"{path}/{index}", *items)
    else:
        # Texts, not values: in Python True == 1 and 1 == 1.0.
        texts = _texts(map(value_text, sides))
        if len({*texts}) > 1:
            yield path, texts


def _texts(texts: Iterable[str]) -> tuple[str, str, str]:
    package, applied, live = texts
    return package, applied, live


def value_text(value: Any) -> str:
    """The text of a value; empty for what is not there."""
    if value is _ABSENT:
        return ""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
