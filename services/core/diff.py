"""The differences of two specs, field by field."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from services.core.masking import masked_sides
from services.core.model import FieldChange, Spec
from services.core.text_lists import and_more

_MISSING = object()

_LONGEST_VALUE = 60

_SHOWN_FIELDS = 5


def changes(old: Spec, new: Spec) -> tuple[FieldChange, ...]:
    """
    Compare two specs.

    Lists of equal length are compared item by item. Lists of different length are one change, because it is unknown
    which item was added or removed.

    Returns:
        The differences sorted by path; empty exactly for equal specs.
    """
    if old == new:
        return ()
    return tuple(sorted(_compare("", old.value, new.value), key=lambda change: change.path))


def covers(path: str, field: str) -> bool:
    """Whether the pointer *field* is *path*, or below it."""
    return f"{field}/".startswith(f"{path}/")


def touches(path: str, changed: tuple[FieldChange, ...]) -> bool:
    """Whether one of the *changed* fields is the field at *path*, is below it or contains it."""
    below = path + "/"
    return any(
        change.path == path or change.path.startswith(below) or path.startswith(change.path + "/") for change in changed
    )


def _compare(path: str, old: Any, new: Any) -> Iterator[FieldChange]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in old.keys() | new.keys():
            step = key.replace("~", "~0").replace("/", "~1")
            yield from _compare(f"{path}/{step}", old.get(key, _MISSING), new.get(key, _MISSING))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from _compare(f"{path}/{index}", before, after)
    # Texts, not values: in Python True == 1 and 1 == 1.0.
    elif (before := _text(old)) != (after := _text(new)):
        yield FieldChange(path, before, after)


def _text(value: Any) -> str:
    return "" if value is _MISSING else json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def shown_values(change: FieldChange) -> tuple[str, str]:
    """The sides of *change* for messages: JSON texts with masked addresses, shortened, or ``absent``."""
    old, new = masked_sides((change.old, change.new))
    return _shortened(old), _shortened(new)


def shown_fields(changed: Sequence[FieldChange]) -> str:
    """The first of the *changed* fields with both sides, and how many more there are: ``color is "red" and not ""``."""
    fields = []
    for change in changed[:_SHOWN_FIELDS]:
        old, new = shown_values(change)
        fields.append(f"{change.path.lstrip('/')} is {old} and not {new}")
    return ", ".join(fields) + and_more(len(changed) - _SHOWN_FIELDS, ", ", "fields")


def _shortened(text: str) -> str:
    if not text:
        return "absent"
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"
