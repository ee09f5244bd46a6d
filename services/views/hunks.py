"""The differences of two specs, each at its own path, for users."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from services.views.lines import Line, line_diff

_ABSENT = object()

_NAME = "name"
"""The field that identifies items of a list, if all items have it."""

_COMPARED = 500
"""Up to so many items without names are compared by content; longer lists are compared by position."""


@dataclass(frozen=True, slots=True)
class Change:
    """A difference as in a plan: an RFC 6901 pointer and JSON texts, which are empty for an absent value."""

    path: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Hunk:
    """
    One difference.

    Attributes:
        path: Its path as users read it: ``charts[cpu].queries[0].query``; empty for the spec itself.
        old: JSON text of the value before; empty if there was none.
        new: JSON text of the value after; empty if there is none.
        lines: The line diff of two texts of which one has several lines.
        moved: Whether only the order of the items of a list changes.
    """

    path: str
    old: str = ""
    new: str = ""
    lines: tuple[Line, ...] = ()
    moved: bool = False


def hunks_of(changes: Iterable[Change], old_spec: str, new_spec: str) -> tuple[Hunk, ...]:
    """
    The differences of two specs.

    A plan compares lists by position, or as a whole. Here, items are identified by their names, or by their content if
    they have none, so an added item is one hunk.

    Args:
        changes: The differences of the plan.
        old_spec: The spec before, as JSON text.
        new_spec: The spec after, as JSON text.

    Returns:
        The hunks in the order of *changes*.
    """
    before, after = (json.loads(text) if text else {} for text in (old_spec, new_spec))
    lists: set[tuple[str, ...]] = set()
    hunks: list[Hunk] = []
    for change in changes:
        pointer = _steps(change.path)
        outer = _outermost_list(before, after, pointer)
        if outer is None:
            sides = (_loaded(change.old), _loaded(change.new))
            hunks += _compare(_joined(pointer), *sides)
        elif outer not in lists:
            lists.add(outer)
            hunks += _compare(_joined(outer), _at(before, outer), _at(after, outer))
    return tuple(hunks)


def _steps(pointer: str) -> tuple[str, ...]:
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:])


def _joined(pointer: Sequence[str]) -> str:
    return ".".join(pointer)


def _loaded(text: str) -> Any:
    if not text:
        return _ABSENT
    try:
        return json.loads(text)
    except ValueError:
        # A driver may return a text that is not JSON.
        return text


def _at(value: Any, pointer: Sequence[str]) -> Any:
    for step in pointer:
        value = value.get(step, _ABSENT) if isinstance(value, dict) else _ABSENT
    return value


def _outermost_list(before: Any, after: Any, pointer: Sequence[str]) -> tuple[str, ...] | None:
    """The shortest prefix of *pointer* at which both specs have lists, if these differ; else None."""
    for length in range(len(pointer) + 1):
        sides = [_at(side, pointer[:length]) for side in (before, after)]
        if all(isinstance(side, list) for side in sides):
            return tuple(pointer[:length]) if sides[0] != sides[1] else None
    return None


def _compare(path: str, old: Any, new: Any) -> Iterator[Hunk]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            yield from _compare(f"{path}.{key}" if path else key, old.get(key, _ABSENT), new.get(key, _ABSENT))
    elif isinstance(old, list) and isinstance(new, list):
        yield from _compare_lists(path, old, new)
    elif (before := _text(old)) != (after := _text(new)):
        has_lines = isinstance(old, str) and isinstance(new, str) and "\n" in old + new
        yield Hunk(path, before, after, line_diff(old, new) if has_lines else ())


def _compare_lists(path: str, old: Sequence[Any], new: Sequence[Any]) -> Iterator[Hunk]:
    if _are_named(old) and _are_named(new):
        before, after = _by_name(old), _by_name(new)
        for label, item in before.items():
            if label not in after:
                yield Hunk(f"{path}[{label}]", _text(item))
        for label, item in after.items():
            yield from _compare(f"{path}[{label}]", before.get(label, _ABSENT), item)
        if [label for label in before if label in after] != [label for label in after if label in before]:
            yield Hunk(path, _text(list(before)), _text(list(after)), moved=True)
        return
    for (start, end), (new_start, new_end) in _differing(list(map(_text, old)), list(map(_text, new))):
        paired = min(end - start, new_end - new_start)
        for offset in range(paired):
            yield from _compare(f"{path}[{new_start + offset}]", old[start + offset], new[new_start + offset])
        for number in range(start + paired, end):
            yield Hunk(f"{path}[{number}]", _text(old[number]))
        for number in range(new_start + paired, new_end):
            yield Hunk(f"{path}[{number}]", "", _text(new[number]))


def _differing(old: list[str], new: list[str]) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """The ranges in which two lists of texts differ: start and end in each list."""
    if len(old) + len(new) > _COMPARED:
        yield (0, len(old)), (0, len(new))
        return
    for tag, start, end, new_start, new_end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            yield (start, end), (new_start, new_end)


def _are_named(items: Sequence[Any]) -> bool:
    return bool(items) and all(isinstance(item, dict) and isinstance(item.get(_NAME), str) for item in items)


def _by_name(items: Sequence[Any]) -> dict[str, Any]:
    """Items by their names; repeated names are numbered."""
    seen: Counter[str] = Counter()
    by_label: dict[str, Any] = {}
    for item in items:
        name = item[_NAME] or '""'
        seen[name] += 1
        label = name if seen[name] == 1 else f"{name} #{seen[name]}"
        while label in by_label:
            label += "'"
        by_label[label] = item
    return by_label


def _text(value: Any) -> str:
    return "" if value is _ABSENT else json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
