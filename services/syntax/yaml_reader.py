"""
Reads a YAML stream into plain trees: a constructor over libyaml's events, by the rules of
docs/reference/package-format.md, "YAML".
"""

from itertools import pairwise
from typing import Any, NamedTuple

from yaml import MarkedYAMLError
from yaml._yaml import CParser
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)
from yaml.reader import ReaderError

from services.core.errors import SourceTooLarge, SourceUndecodable
from services.kinds.format.scalars import MERGE, PlainScalars, plain_scalar, tagged_scalar
from services.syntax.anchors import Anchors
from services.syntax.places import Place, place_of_byte, place_of_repeated_key
from services.syntax.usage import Usage

_ONLY_TEXT = frozenset((str,))

_EVENTS = 4096
"""The number of events between two checks of the bounds: about a millisecond."""

_TOO_DEEP_FOR_LIBYAML = "exceeded maximum nesting depth"
"""
The problem that libyaml reports, from version 0.2.6 on, beyond its own bound of 1,000. The bound of pkger is lower, but
libyaml reads up to 1,024 characters ahead of its events, to find out whether they are a key.
"""


class Stream(NamedTuple):
    """
    A stream that was read.

    Attributes:
        documents: The root of each document: a dict, a list or a scalar (``plain_scalar``).
        starts: The places of roots that are mappings or lists, by position of the document.
        nodes: The number of values of each document.
        has_anchors: Whether it has an anchor, so that documents may depend on earlier ones.
    """

    documents: list[Any]
    starts: dict[int, Place]
    nodes: list[int]
    has_anchors: bool


def read_documents(source: str, text: str, usage: Usage | None = None) -> list[Any]:
    """
    Read all documents of a stream.

    Mappings become dicts that hold only the entries with text keys, as no field can use the others.

    Args:
        source: Name for errors.
        text: The stream.
        usage: How much of its bounds the package has used; None: nothing.

    Returns:
        The root of each document: a dict, a list or a scalar (``plain_scalar``).

    Raises:
        SourceUndecodable: The text is no YAML, repeats a key, merges a value that is no mapping, or misuses an alias.
        SourceTooLarge: The text exceeds a bound.
    """
    return read_stream(source, text, usage).documents


def read_stream(source: str, text: str, usage: Usage | None = None) -> Stream:
    """Read all documents of a stream; arguments and errors as for ``read_documents``."""
    try:
        return _construct(source, text, usage or Usage())
    except ReaderError as error:
        problem = (
            f"the character U+{error.character:04X} is not allowed in YAML; write it as an escape in double quotes"
        )
        raise SourceUndecodable(source, problem, *place_of_byte(text, error.position)) from None
    except MarkedYAMLError as error:
        if error.problem == _TOO_DEEP_FOR_LIBYAML:
            raise SourceTooLarge(source, "nesting depth", (usage or Usage()).bounds.depth) from None
        raise _undecodable(source, text, error) from None


def _construct(source: str, text: str, usage: Usage) -> Stream:  # noqa: PLR0915
    """The one pass over all events: iterative, and flat because most of the time that parsing takes is spent here."""
    # Bounds are checked while events are pulled: libyaml neither recurses nor reads far ahead.
    pull = CParser(text).get_event
    plain = PlainScalars()
    anchors = Anchors(source, usage)
    max_depth = usage.bounds.depth
    documents: list[Any] = []
    starts: dict[int, Place] = {}
    items = documents
    # The open lists and mappings: the items of the enclosing one, the event, the anchor.
    stack: list[tuple[list[Any], Any, str | None]] = []
    # The number of events that are no values, beginning with the start of the stream.
    others = 1
    # The number of values up to the last check of the bounds, and before each document.
    counted = 0
    before: list[int] = []
    # The number of documents up to the last check of the bounds: one without content has no value, but takes memory.
    documents_counted = 0
    while True:
        for pulled in range(_EVENTS):
            event: Any = pull()
            cls = event.__class__
            value: Any
            if cls is ScalarEvent:
                if event.tag is not None:
                    value = _tagged(source, event)
                    plain.merges |= value is MERGE
                elif event.style:
                    value = event.value
                else:
                    value = plain[event.value]
                items.append(value)
                if event.anchor is not None:
                    anchors.close(event.anchor, value)
            elif cls is MappingStartEvent or cls is SequenceStartEvent:
                if not stack:
                    starts[len(documents)] = event.start_mark.line + 1, event.start_mark.column + 1
                elif len(stack) >= max_depth:
                    usage.check_depth(source, len(stack) + 1)
                if event.anchor is not None:
                    anchors.open(event.anchor)
                stack.append((items, event, event.anchor))
                items = []
            elif cls is MappingEndEvent or cls is SequenceEndEvent:
                others += 1
                outer, start, anchor = stack.pop()
                if plain.merges:
                    _unmerge(items, stride=2 if cls is MappingEndEvent else 1)
                value = items
                if cls is MappingEndEvent:
                    others += len(items) // 2
                    value = _mapping(source, text, start, items)
                outer.append(value)
                items = outer
                if anchor is not None:
                    anchors.close(anchor, value)
            elif cls is AliasEvent:
                others += 1
                items.append(anchors.value(event.anchor, event.start_mark, len(stack)))
            elif cls is DocumentStartEvent:
                before.append(counted + pulled - others)
                others += 2
            elif cls is StreamEndEvent:
                usage.take_objects(source, len(before) - documents_counted)
                usage.take_nodes(source, pulled - others)
                before.append(counted + pulled - others)
                nodes = [end - start for start, end in pairwise(before)]
                return Stream(documents, starts, nodes, anchors.are_used)
        usage.take_objects(source, len(before) - documents_counted)
        documents_counted = len(before)
        usage.take_nodes(source, _EVENTS - others)
        counted += _EVENTS - others
        usage.check_time(source)
        others = 0


def _unmerge(items: list[Any], stride: int) -> None:
    """Replace ``<<`` that is no key: there it is a text like any other."""
    items[stride - 1 :: stride] = ["<<" if item is MERGE else item for item in items[stride - 1 :: stride]]


def _mapping(source: str, text: str, start: Any, items: list[Any]) -> dict[str, Any]:
    """The mapping whose keys and values alternate in *items*."""
    pairs = iter(items)
    try:
        mapping = dict(zip(pairs, pairs, strict=True))
    except TypeError:
        problem = "a key of this mapping is a list or a mapping; keys are texts"
        raise _error_at(source, start.start_mark, problem) from None
    if 2 * len(mapping) == len(items) and _ONLY_TEXT.issuperset(map(type, mapping)):
        return mapping
    keys, values = items[::2], items[1::2]
    seen = set()
    for key in keys:
        # In Python True == 1 == 1.0, in YAML these are three keys. The keys 1 and "1" are equal, however.
        value = plain_scalar(key) if isinstance(key, str) else key
        if (identity := (type(value), value)) in seen:
            line, column = place_of_repeated_key(text, start.start_mark, "<<" if key is MERGE else str(key))
            raise SourceUndecodable(source, f"the key {_shown(key)} stands twice in one mapping", line, column)
        seen.add(identity)
    texts = {key: value for key, value in zip(keys, values, strict=True) if isinstance(key, str)}
    if MERGE not in mapping:
        return texts
    return _merged(source, start, mapping[MERGE]) | texts


def _merged(source: str, start: Any, value: Any) -> dict[str, Any]:
    """The entries of a YAML merge key, ``<<: value``. If several mappings define a key, the first one wins."""
    merged: dict[str, Any] = {}
    for mapping in value if isinstance(value, list) else [value]:
        if not isinstance(mapping, dict):
            raise _error_at(source, start.start_mark, "`<<` merges a mapping or a list of mappings, nothing else")
        for key, item in mapping.items():
            merged.setdefault(key, item)
    return merged


def _tagged(source: str, event: Any) -> Any:
    try:
        return tagged_scalar(event.tag, event.value, bool(event.style))
    except ValueError as error:
        raise _error_at(source, event.start_mark, str(error)) from None


def _shown(key: Any) -> str:
    if key is None or isinstance(key, bool):
        return {None: "null", True: "true", False: "false"}[key]
    return "`<<`" if key is MERGE else repr(key)


def _error_at(source: str, mark: Any, problem: str) -> SourceUndecodable:
    return SourceUndecodable(source, problem, mark.line + 1, mark.column + 1)


def _undecodable(source: str, text: str, error: MarkedYAMLError) -> SourceUndecodable:
    """The error of libyaml in one sentence: its problem, and where the value that it was reading began."""
    mark: Any = error.problem_mark or error.context_mark
    problem = str(error.problem or error.context or "this is no YAML")
    if mark is None:
        return SourceUndecodable(source, problem)
    at = text.lstrip("\ufeff")[mark.index : mark.index + 1]
    if at == "\t":
        problem = "a tab cannot indent; use spaces"
    elif at and at in "@`%" and "cannot start any token" in problem:
        problem = f"a text cannot begin with {at!r} unless it is quoted"
    elif error.context and error.context_mark:
        problem = f"{problem} ({error.context} that begins in line {error.context_mark.line + 1})"
    return _error_at(source, mark, problem)
