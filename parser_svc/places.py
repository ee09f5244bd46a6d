"""Lines and columns of values, worked out from a second pass over the events of a source, for messages only."""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from yaml import YAMLError
from yaml._yaml import CParser
from yaml.events import (
    CollectionEndEvent,
    CollectionStartEvent,
    DocumentStartEvent,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    StreamEndEvent,
)

from services.kinds.fields import THE_KEY

_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")

Pointer = tuple[str | int, ...]
"""Way to a value: number of the document, then keys and positions as the source has them; ``THE_KEY`` may end it."""

Place = tuple[int, int]
"""Line and column, from 1."""


@dataclass(frozen=True, slots=True)
class Written:
    """
    How a value stands in its source.

    Attributes:
        place: Where it begins.
        text: What stands there, when it is a scalar; else None.
    """

    place: Place
    text: str | None


NOWHERE = Written((0, 0), None)
"""What stands for a value that is not found."""


def places(text: str, wanted: Collection[Pointer]) -> dict[Pointer, Written]:
    """
    Find values in a YAML stream, or in JSON, which YAML's events can tell the places of as well.

    Returns:
        For each pointer its value, or the nearest value around it, which then has no text. Left out when not even the
        document is found: libyaml does not read all of JSON.
    """
    around = {pointer[:length] for pointer in wanted for length in range(1, len(pointer) + 1)}
    found = {
        pointer: Written((event.start_mark.line + 1, event.start_mark.column + 1), getattr(event, "value", None))
        for pointer, event in _found(text, around)
    }
    nearest: dict[Pointer, Written] = {}
    for pointer in wanted:
        for length in range(len(pointer), 0, -1):
            if (written := found.get(pointer[:length])) is not None:
                nearest[pointer] = written if length == len(pointer) else Written(written.place, None)
                break
    return nearest


def source_texts(text: str, wanted: Collection[Pointer]) -> dict[Pointer, str]:
    """How the scalars at the pointers are written; those that are aliases are left out."""
    return {pointer: event.value for pointer, event in _found(text, wanted) if isinstance(event, ScalarEvent)}


def place_of_repeated_key(text: str, mapping: Any, key: str) -> Place:
    """The place of the second *key* directly in the mapping that begins at the mark *mapping*; else of the mapping."""
    nodes = _nodes(text)
    if not any(_begins_at(event, mapping.index) for event in nodes):
        return mapping.line + 1, mapping.column + 1
    depth, turn, count = 0, 0, 0
    for event in nodes:
        if isinstance(event, CollectionEndEvent):
            depth -= 1
            if depth < 0:
                break
            continue
        if depth == 0:
            count += turn % 2 == 0 and isinstance(event, ScalarEvent) and event.value == key
            if count == 2:
                return event.start_mark.line + 1, event.start_mark.column + 1
            turn += 1
        depth += isinstance(event, CollectionStartEvent)
    return mapping.line + 1, mapping.column + 1


def place_of_byte(text: str, offset: int) -> Place:
    """The place of the byte *offset* of the UTF-8 of *text*."""
    before = text.encode()[:offset].decode(errors="ignore").replace("\r\n", "\n").replace("\r", "\n")
    return before.count("\n") + 1, len(before) - before.rfind("\n")


def _found(text: str, around: Collection[Pointer]) -> Iterator[tuple[Pointer, Any]]:
    """The values at the pointers, each with the event that it begins with."""
    document = -1
    path: list[str | int | None] = []
    mappings: list[bool] = []
    for event in _nodes(text):
        if isinstance(event, DocumentStartEvent):
            document += 1
            path, mappings = [document], []
            continue
        if isinstance(event, CollectionEndEvent):
            mappings.pop()
            path.pop()
            if mappings and mappings[-1]:
                path[-1] = None
            continue
        if mappings and mappings[-1] and path[-1] is None:
            # A key; its value comes next. Keys are never lists or mappings in a source that was read.
            path[-1] = event.value if isinstance(event, ScalarEvent) else ""
            of_key: Any = (*path, THE_KEY)
            if of_key in around:
                yield of_key, event
            continue
        if mappings and not mappings[-1]:
            path[-1] = path[-1] + 1  # type: ignore[operator]
        pointer: Any = tuple(path)
        if pointer in around:
            yield pointer, event
        if isinstance(event, CollectionStartEvent):
            mappings.append(isinstance(event, MappingStartEvent))
            path.append(None if mappings[-1] else -1)
        elif mappings and mappings[-1]:
            path[-1] = None


def _begins_at(event: Any, index: int) -> bool:
    mark = event.start_mark
    return isinstance(event, MappingStartEvent) and mark.index == index


def _nodes(text: str) -> Iterator[Any]:
    """Starts of documents and nodes, and ends of lists and mappings, as far as libyaml can read."""
    # Halves of surrogate pairs, which JSON may escape, would stop libyaml; what stands there moves no place.
    pull = CParser(_SURROGATE_ESCAPE.sub(r"\\u0020", text)).get_event
    try:
        while not isinstance(event := pull(), StreamEndEvent):
            if isinstance(event, NodeEvent | CollectionEndEvent | DocumentStartEvent):
                yield event
    except YAMLError:
        return
