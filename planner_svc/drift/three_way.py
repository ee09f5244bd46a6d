"""
Drift: the fields of one resource at which package, baseline and platform are not all equal (docs/reference/engine.md,
"Drift").

The rules here are pure; ``report.py`` makes the three sides of a recorded resource.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from enum import Enum
from typing import Any, NamedTuple

from services.core.drift import DriftClass, DriftField, DriftStatus
from services.kinds.policy import ignores

_ABSENT = object()
"""Stands for a value that is missing on a side; null is a value."""

_LABELS = "/associations"


class Side(NamedTuple):
    """
    The state of a resource in one of package, baseline and platform.

    Attributes:
        spec: The spec, where lists are sorted if their order has no meaning; None: the side does not have the resource.
        labels: Names of the labels.
        references: The resources that it refers to, by pointer, as JSON text.
    """

    spec: Mapping[str, Any] | None
    labels: Set[str] = frozenset()
    references: Mapping[str, str] = {}


class Presence(Enum):
    """Whether the platform holds a resource."""

    THERE = "there"
    GONE = "gone"
    UNREADABLE = "unreadable"


def fields_of(package: Side, applied: Side, live: Side, ignored: Collection[str] = ()) -> tuple[DriftField, ...]:
    """
    Compare the three sides of one resource.

    A label that neither package nor baseline has was attached outside the stack, and is no drift.

    Args:
        package: The state that the current revision declares.
        applied: The state that the platform held after the last write.
        live: The state that the platform holds.
        ignored: Pointers that the policy ignores; a whole segment may be ``*``. Each covers its field and all below it.

    Returns:
        The fields at which not all sides are equal, sorted by path.
    """
    sides = (package, applied, live)
    referring = {pointer for side in sides for pointer in side.references}
    differing = {
        path: texts
        for path, texts in _walk("", *(_ABSENT if side.spec is None else side.spec for side in sides))
        # A spec names the referenced object there; the references themselves are compared instead.
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


def status_of(presence: Presence, fields: Iterable[DriftField], *, is_pending_delete: bool = False) -> DriftStatus:
    """
    The drift status of a resource.

    Args:
        presence: Whether the platform holds it.
        fields: Its fields that differ; they count only if the platform holds it and it is not pending deletion.
        is_pending_delete: Whether its entry is marked for deletion.
    """
    if presence is Presence.UNREADABLE:
        return DriftStatus.UNREADABLE
    if is_pending_delete:
        return DriftStatus.LEFTOVER if presence is Presence.THERE else DriftStatus.GONE
    if presence is Presence.GONE:
        return DriftStatus.MISSING
    counted = {_STATUSES[each.field_class] for each in fields if each.field_class in _STATUSES}
    return min(counted, key=lambda status: status.rank, default=DriftStatus.IN_SYNC)


_STATUSES = {
    DriftClass.CONFLICT: DriftStatus.CONFLICT,
    DriftClass.DRIFTED: DriftStatus.DRIFTED,
    DriftClass.PENDING: DriftStatus.PENDING,
}
"""The status that a field of each class gives its resource; fields of other classes have no influence."""


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
    """The pointers at which not all sides are equal, with the values of the sides as text."""
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
    """The JSON text of a value; empty for a missing one."""
    if value is _ABSENT:
        return ""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
