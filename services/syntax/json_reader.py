"""Reads one JSON array into plain trees, by the rules of docs/reference/package-format.md, "JSON"."""

import json
import math
import re
from typing import Any, NoReturn

from services.core.errors import SourceTooLarge, SourceUndecodable
from services.kinds.format.fields import LARGEST_EXACT, fits
from services.kinds.other_formats import other_format
from services.syntax.places import Place
from services.syntax.usage import Usage

_SPACE = re.compile(r"[ \t\n\r]*")
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_STRUCTURE = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],]', re.DOTALL)
"""Texts, and the delimiters of objects and arrays."""

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|-?Infinity|NaN|-?[0-9][-+.eE0-9]*')
_SURROGATE = re.compile("[\ud800-\udfff]")


def read_array(source: str, text: str, usage: Usage | None = None) -> tuple[list[Any], list[Place]]:
    """
    Read the JSON array at the beginning of *text*, with the places of its elements; text after the array is ignored.

    A byte order mark before it is ignored, too. Numbers are floats, except integers of 64 bits that a float may not
    represent exactly.

    Args:
        source: Name for errors.
        text: The array, or ``null`` for an empty one.
        usage: How much of its bounds the package has used; None: nothing.

    Raises:
        SourceUndecodable: The text does not begin with a JSON array, or repeats a key of an object.
        SourceTooLarge: The array exceeds a bound.
    """
    usage = usage or Usage()
    text = text.removeprefix("\ufeff")
    start = _after_space(text, 0)
    value: Any
    try:
        value, starts = _elements(source, text, start, usage) or (_DECODER.raw_decode(text, start)[0], [])
    except json.JSONDecodeError as error:
        problem = error.msg[:1].lower() + error.msg[1:].removesuffix(" at").removesuffix(" starting")
        raise SourceUndecodable(source, f"this is no JSON: {problem}", error.lineno, error.colno) from None
    except RecursionError:
        raise SourceTooLarge(source, "nesting depth", usage.bounds.depth) from None
    except _RepeatedKey as error:
        problem = f"the key {error.key[:60]!r} stands twice in one object; remove one of the two"
        raise SourceUndecodable(source, problem, *_place(text, _index_of_repeated_key(text, start))) from None
    except _BadNumber as error:
        raise SourceUndecodable(source, error.problem, *_place(text, _index_of_number(text, error.text))) from None
    if value is None:
        return [], []
    if not isinstance(value, list):
        problem = other_format(value) or "a package in JSON is an array of objects; put the object into [ ]"
        raise SourceUndecodable(source, problem, *_place(text, start))
    # The decoder takes time in proportion to the text, which is bounded, so the time is checked only once.
    usage.check_time(source)
    _check_bounds(source, value, usage)
    return (_without_surrogates(value) if _SURROGATE_ESCAPE.search(text) else value), _places(text, starts)


def read_value(text: str) -> Any:
    """
    Read one JSON value, such as an environment value, with the numbers and characters of ``read_array``.

    Raises:
        ValueError: The text is not one JSON value, or exceeds a bound; the error does not quote it.
    """
    try:
        value = _DECODER.decode(text)
        _check_bounds("", [value], Usage())
    except json.JSONDecodeError as error:
        problem = error.msg[:1].lower() + error.msg[1:].removesuffix(" at").removesuffix(" starting")
        raise ValueError(f"is no JSON: {problem} at character {error.pos + 1}") from None
    except _RepeatedKey:
        raise ValueError("has a key twice in one object; remove one of the two") from None
    except _BadNumber:
        raise ValueError("has a number that is no JSON, or does not have 64 bits") from None
    except (RecursionError, SourceTooLarge):
        bounds = Usage().bounds
        problem = f"is nested {bounds.depth} levels deep or more, or has more than {bounds.nodes:,} values"
        raise ValueError(problem) from None
    return _without_surrogates(value) if _SURROGATE_ESCAPE.search(text) else value


def _elements(source: str, text: str, start: int, usage: Usage) -> tuple[list[Any], list[int]] | None:
    """
    The elements of the array at *start* and their positions; None if there is no valid array: the decoder reports why.

    Elements are counted while they are read.

    Raises:
        RecursionError: An element is nested too deeply.
        SourceTooLarge: There are too many elements.
        _BadNumber: A number is invalid or too large.
    """
    values: list[Any] = []
    starts: list[int] = []
    if text[start : start + 1] != "[":
        return None
    index = _after_space(text, start + 1)
    if text[index : index + 1] == "]":
        return values, starts
    while True:
        usage.take_objects(source, 1)
        starts.append(index)
        try:
            value, index = _DECODER.raw_decode(text, index)
        except json.JSONDecodeError:
            return None
        values.append(value)
        index = _after_space(text, index)
        if text[index : index + 1] == "]":
            return values, starts
        if text[index : index + 1] != ",":
            return None
        index = _after_space(text, index + 1)


def _after_space(text: str, index: int) -> int:
    return _SPACE.match(text, index).end()  # type: ignore[union-attr]


def _places(text: str, indexes: list[int]) -> list[Place]:
    """The places of *indexes*, which are sorted."""
    places: list[Place] = []
    line, passed = 1, 0
    for index in indexes:
        line += text.count("\n", passed, index)
        passed = index
        places.append((line, index - text.rfind("\n", 0, index)))
    return places


class _BadNumber(Exception):
    def __init__(self, text: str, problem: str) -> None:
        super().__init__(problem)
        self.text = text
        self.problem = problem


def _number(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise _BadNumber(text, f"the number {text[:40]} is too large; numbers have 64 bits")
    return value


def _integer(text: str) -> float:
    value = _number(text)
    # A float would silently change the last digits, which YAML sources keep (docs/reference/package-format.md, "Equal
    # sources").
    return int(text) if LARGEST_EXACT <= abs(value) <= 2**63 and fits(int(text)) else value


def _refuse_constant(text: str) -> NoReturn:
    raise _BadNumber(text, f"{text} is no JSON value; write null or a number")


class _RepeatedKey(Exception):
    """An object has a key twice: JSON readers do not agree which of the values counts."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        seen: set[str] = set()
        raise _RepeatedKey(next(key for key, _ in pairs if key in seen or seen.add(key)))  # type: ignore[func-returns-value]
    return mapping


_DECODER = json.JSONDecoder(
    parse_int=_integer, parse_float=_number, parse_constant=_refuse_constant, object_pairs_hook=_object
)


def _check_bounds(source: str, root: list[Any], usage: Usage) -> None:
    depth, level = 0, [root]
    while level:
        depth += 1
        usage.check_depth(source, depth)
        usage.take_nodes(source, sum(map(len, level)))
        below: list[Any] = []
        for value in level:
            items = value.values() if isinstance(value, dict) else value
            below.extend(item for item in items if isinstance(item, dict | list))
        level = below


def _without_surrogates(value: Any) -> Any:
    """The tree with U+FFFD for halves of surrogate pairs, which are no characters and cannot be written as UTF-8."""
    match value:
        case str():
            return _SURROGATE.sub("\ufffd", value)
        case list():
            return [_without_surrogates(item) for item in value]
        case dict():
            return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
        case _:
            return value


def _index_of_repeated_key(text: str, start: int) -> int:
    """The position of the second occurrence of a key in one object; *start* when there is none."""
    open_: list[set[str] | None] = []
    before = ""
    for token in _STRUCTURE.finditer(text, start):
        symbol = token.group()
        if symbol in "{[":
            open_.append(set() if symbol == "{" else None)
        elif symbol in "}]":
            open_.pop()
        elif symbol[0] == '"' and before in ("{", ",") and open_ and (keys := open_[-1]) is not None:
            key = json.loads(symbol, strict=False)
            if key in keys:
                return token.start()
            keys.add(key)
        before = symbol
    return start


def _index_of_number(text: str, number: str) -> int:
    """The position of the first *number* outside of texts."""
    return next(token.start() for token in _TOKEN.finditer(text) if token.group().startswith(number))


def _place(text: str, index: int) -> tuple[int, int]:
    return text.count("\n", 0, index) + 1, index - text.rfind("\n", 0, index)
