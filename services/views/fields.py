"""The fields of the spec of a resource that is created or deleted, for users."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

_SHOWN_NAMES = 5


@dataclass(frozen=True, slots=True)
class SpecField:
    """
    A field of a spec.

    Attributes:
        path: Its path, as in ``Hunk``.
        value: JSON text; for a folded value, a description such as ``2 items``.
        lines: The lines of a text with several lines, unless it is folded.
    """

    path: str
    value: str
    lines: tuple[str, ...] = ()


def fields_of(spec: str, width: int, full: bool = False) -> tuple[SpecField, ...]:
    """
    The fields of a spec, without empty fields and without the name, which is shown next to the key.

    Args:
        spec: The spec as JSON text; empty for none.
        width: Longer values are folded to a description.
        full: Show nested fields at their own paths, and fold nothing.
    """
    content = json.loads(spec) if spec else {}
    shown = {key: value for key, value in content.items() if key != "name" and not _is_empty(value)}
    if full:
        return tuple(field for key in sorted(shown) for field in _flat(key, shown[key]))
    return tuple(SpecField(key, _folded(shown[key], width)) for key in sorted(shown))


def _is_empty(value: Any) -> bool:
    return value is None or value in ("", [], {})


def _flat(path: str, value: Any) -> Iterator[SpecField]:
    if isinstance(value, dict) and value:
        for key in sorted(value):
            yield from _flat(f"{path}.{key}", value[key])
    elif isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        for number, item in enumerate(value):
            yield from _flat(f"{path}[{number}]", item)
    elif isinstance(value, str) and "\n" in value:
        yield SpecField(path, _folded(value, 0), tuple(value.split("\n")))
    else:
        yield SpecField(path, _text(value))


def _folded(value: Any, width: int) -> str:
    text = _text(value)
    if isinstance(value, str) and "\n" in value:
        return _count(len(value.rstrip("\n").split("\n")), "line")
    if len(text) <= width or not isinstance(value, str | list | dict):
        return text
    if isinstance(value, str):
        return f"{text[: width - 1]}…"
    if isinstance(value, dict):
        return _count(len(value), "field")
    return _count(len(value), "item") + _names(value)


def _names(items: Sequence[Any]) -> str:
    """The names of items, as text; empty if no item has one."""
    names = [item["name"] for item in items if isinstance(item, dict) and isinstance(item.get("name"), str)]
    if not any(names):
        return ""
    more = ", …" if len(items) > _SHOWN_NAMES else ""
    return f": {', '.join(names[:_SHOWN_NAMES])}{more}"


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
