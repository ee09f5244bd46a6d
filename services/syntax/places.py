"""Lines and columns of values, from a second pass over the events of a source; only messages need them."""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from yaml import YAMLError
from yaml._yaml import CParser
from yaml.events import (
    AliasEvent,
    CollectionEndEvent,
    CollectionStartEvent,
    DocumentEndEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)

from services.kinds.format.fields import THE_KEY

_LINE_BREAK = re.compile("[\n\r\x85\u2028\u2029]")
"""The line breaks of libyaml."""

_ENDS = (MappingEndEvent, SequenceEndEvent)

_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")

Pointer = tuple[str | int, ...]
"""Leads to a value: number of the document, then keys and positions as in the source; ``THE_KEY`` may be the last."""

Place = tuple[int, int]
"""Line and column, from 1."""


@dataclass(frozen=True, slots=True)
class Written:
    """
    A value or key as its source has it.

    Attributes:
        place: Its first character.
        end: The place after its last character in its first line.
        text: Its text, if it is a scalar and was itself asked for; else None.
        raw: The same with its quotes; empty unless it is in one line, without anchor and tag.
    """

    place: Place
    end: Place = (0, 0)
    text: str | None = None
    raw: str = ""


NOWHERE = Written((0, 0))
"""Stands for a value that is not found."""


def places(text: str, pointers: Collection[Pointer]) -> dict[Pointer, Written]:
    """
    Find values and keys in a YAML stream, or in JSON, which libyaml can read in most cases.

    Returns:
        For each pointer its value; for a missing value, the key of the nearest enclosing value, or that value itself. A
        pointer has no entry if not even its document is found: libyaml cannot read all of JSON.
    """
    starts: dict[Pointer, Any] = {}
    ends: dict[Pointer, Any] = {}
    event: Any
    for pointer, event in _events_at(text, pointers, keys=True):
        if event.__class__ in _ENDS:
            ends[pointer] = event
        else:
            starts[pointer] = event
            # In JSON a key may occur twice; the last one counts.
            ends.pop(pointer, None)
    # libyaml counts characters without a byte order mark.
    marked = text.removeprefix("\ufeff")
    nearest: dict[Pointer, Written] = {}
    around: dict[Pointer, Written] = {}
    for pointer in pointers:
        if (event := starts.get(pointer)) is not None:
            nearest[pointer] = _written(marked, event, ends.get(pointer))
            continue
        for length in range(len(pointer) - 1, 0, -1):
            near = pointer[:length]
            if (event := starts.get(near)) is not None:
                if near not in around:
                    # For a scalar, the scalar itself is marked, not its key; an empty scalar cannot be marked.
                    is_empty = event.end_mark.index == event.start_mark.index
                    is_marked = isinstance(event, ScalarEvent) and not is_empty
                    key = None if is_marked else starts.get((*near, THE_KEY))
                    written = _written(marked, key or event, None if key else ends.get(near))
                    around[near] = Written(written.place, written.end)
                nearest[pointer] = around[near]
                break
    return nearest


def _written(text: str, event: Any, closing: Any) -> Written:
    """
    The key or value that begins with *event*.

    Args:
        text: The source.
        event: Its first event.
        closing: The event that closes it; None for a scalar or an alias, and for a value in block style.
    """
    start, end = event.start_mark, (closing or event).end_mark
    place = start.line + 1, start.column + 1
    is_flow = event.__class__ is ScalarEvent or event.__class__ is AliasEvent or closing is not None
    if is_flow and end.line == start.line:
        raw = ""
        if event.__class__ is ScalarEvent and event.anchor is None and event.tag is None:
            raw = text[start.index : end.index]
        return Written(place, (end.line + 1, end.column + 1), getattr(event, "value", None), raw)
    line_end = _LINE_BREAK.search(text, start.index)
    first_line = text[start.index : line_end.start() if line_end else len(text)].rstrip(" \t")
    return Written(place, (place[0], place[1] + len(first_line)), getattr(event, "value", None))


def source_texts(text: str, pointers: Collection[Pointer]) -> dict[Pointer, str]:
    """The texts of the scalars at the pointers, without aliases."""
    return {
        pointer: event.value
        for pointer, event in _events_at(text, pointers, keys=False)
        if isinstance(event, ScalarEvent)
    }


def place_of_repeated_key(text: str, mapping: Any, key: str) -> Place:
    """The place of the second *key* directly in the mapping that begins at the mark *mapping*; else of the mapping."""
    nodes = _nodes(text)
    if not any(_begins_at(event, mapping.index) for event in nodes):
        return mapping.line + 1, mapping.column + 1
    depth, index, count = 0, 0, 0
    for event in nodes:
        if isinstance(event, CollectionEndEvent):
            depth -= 1
            if depth < 0:
                break
            continue
        if depth == 0:
            count += index % 2 == 0 and isinstance(event, ScalarEvent) and event.value == key
            if count == 2:
                return event.start_mark.line + 1, event.start_mark.column + 1
            index += 1
        depth += isinstance(event, CollectionStartEvent)
    return mapping.line + 1, mapping.column + 1


def place_of_byte(text: str, offset: int) -> Place:
    """The place of the byte *offset* of the UTF-8 of *text*."""
    before = text.encode()[:offset].decode(errors="ignore").replace("\r\n", "\n").replace("\r", "\n")
    return before.count("\n") + 1, len(before) - before.rfind("\n")


def _events_at(text: str, pointers: Collection[Pointer], keys: bool) -> Iterator[tuple[Pointer, Any]]:
    """
    The values at the pointers and around them, each with the event that it begins with.

    Args:
        text: The source.
        pointers: The pointers.
        keys: Whether the result also has their keys, at pointers that end with ``THE_KEY``, and the ends of flow lists
            and mappings.
    """
    documents = _Open(_tree(pointers), (), False, -1)
    stack = [documents]
    # The number of open lists and mappings that no pointer leads into.
    skipped = 0
    for event in _nodes(text):
        cls = event.__class__
        if cls is DocumentStartEvent:
            stack, skipped = [documents], 0
        elif cls is MappingEndEvent or cls is SequenceEndEvent:
            if skipped:
                skipped -= 1
            else:
                closed = stack.pop()
                if closed.is_flow:
                    yield closed.pointer, event
        elif skipped:
            skipped += cls is MappingStartEvent or cls is SequenceStartEvent
        else:
            around = stack[-1]
            if around.is_mapping and around.step is None:
                # A key; its value comes next. A list is a key only in text after a JSON array, which JSON ignores.
                around.step = event.value if cls is ScalarEvent else ""
                skipped = int(cls is MappingStartEvent or cls is SequenceStartEvent)
                if keys and around.step in around.tree and not skipped:
                    yield (*around.pointer, around.step, THE_KEY), event
                continue
            step = around.step if around.is_mapping else around.step + 1
            around.step = None if around.is_mapping else step
            tree = around.tree.get(step)
            if tree is not None:
                yield (*around.pointer, step), event
            if cls is MappingStartEvent or cls is SequenceStartEvent:
                is_flow = keys and tree is not None and bool(event.flow_style)
                if tree or is_flow:
                    stack.append(_Open(tree or {}, (*around.pointer, step), cls is MappingStartEvent, is_flow=is_flow))
                else:
                    skipped = 1


class _Open:
    """An open list or mapping, with the tree of steps by which wanted pointers lead into it."""

    __slots__ = ("is_flow", "is_mapping", "pointer", "step", "tree")

    def __init__(
        self, tree: dict[Any, Any], pointer: Pointer, is_mapping: bool, step: Any = None, is_flow: bool = False
    ) -> None:
        self.is_flow = is_flow
        """Whether it is in flow style and its end is wanted."""
        self.tree = tree
        self.pointer = pointer
        self.is_mapping = is_mapping
        self.step = step if step is not None or is_mapping else -1
        """The last position of a list; the key of a mapping whose value comes next, None when a key comes next."""


def _tree(pointers: Collection[Pointer]) -> dict[Any, Any]:
    tree: dict[Any, Any] = {}
    for pointer in pointers:
        branch = tree
        for step in pointer:
            branch = branch.setdefault(step, {})
    return tree


def _begins_at(event: Any, index: int) -> bool:
    mark = event.start_mark
    return isinstance(event, MappingStartEvent) and mark.index == index


def _nodes(text: str) -> Iterator[Any]:
    """Starts of documents, values, and ends of lists and mappings, up to an error of libyaml."""
    # Escaped halves of surrogate pairs, which JSON allows, would stop libyaml; the substitute has the same length.
    pull = CParser(_SURROGATE_ESCAPE.sub(r"\\u0020", text)).get_event
    try:
        pull()
        while (event := pull()).__class__ is not StreamEndEvent:
            if event.__class__ is not DocumentEndEvent:
                yield event
    except YAMLError:
        return
