"""
JSON as the server decodes it.

Keys match in any case, unknown keys are dropped, and the last of repeated keys applies. null gives a field its zero
value, and a value of another type is an error. A shape is a function from the parsed value (None when absent) to the
decoded one.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

Shape = Callable[[Any], Any]


class BadJson(Exception):
    """The text is not JSON, or has a value of the wrong type."""


class BadId(BadJson):
    """A text is not a valid id. All handlers refuse it alike, unlike other invalid bodies."""


def parsed(body: bytes, whole: bool = False) -> Any:
    """
    The JSON value at the beginning of *body*.

    Args:
        whole: Whether text after the value is an error; most handlers ignore it.
    """
    text = body.decode("utf-8", "replace").lstrip(" \t\r\n")
    if not text:
        raise BadJson("EOF")
    try:
        value, end = _DECODER.raw_decode(text)
    except (ValueError, RecursionError) as error:
        raise BadJson(f"invalid JSON: {error}") from error
    if whole and text[end:].strip(" \t\r\n"):
        raise BadJson("invalid text after top-level value")
    return _without_surrogates(value) if "\\u" in text else value


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def _without_surrogates(value: Any) -> Any:
    """Unpaired surrogates become U+FFFD."""
    if isinstance(value, str):
        return "".join("\ufffd" if "\ud800" <= letter <= "\udfff" else letter for letter in value)
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    return value


def anything(value: Any) -> Any:
    return value


def text(value: Any) -> str:
    return _typed(value, str, "string") if value is not None else ""


def flag(value: Any) -> bool:
    return _typed(value, bool, "bool") if value is not None else False


def number(value: Any) -> float:
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadJson(f"cannot unmarshal {_word(value)} into a value of type float64")
    try:
        as_float = float(value)
    except OverflowError:
        as_float = float("inf")
    if as_float in {float("inf"), float("-inf")}:
        raise BadJson(f"cannot unmarshal number {value} into a value of type float64")
    return int(as_float) if as_float.is_integer() and abs(as_float) < 1e21 else as_float


def integer(bits: int = 64) -> Shape:
    """Whole numbers without fraction and exponent, of this number of bits."""

    def read(value: Any) -> int:
        if value is None:
            return 0
        limit = 1 << bits - 1
        if isinstance(value, bool) or not isinstance(value, int) or not -limit <= value < limit:
            raise BadJson(f"cannot unmarshal {_word(value)} into a value of type int{bits}")
        return value

    return read


def identifier(value: Any) -> str:
    """A resource id; "" when absent."""
    if value is None:
        return ""
    fault = id_fault(_typed(value, str, "ID"))
    if fault:
        raise BadId(fault)
    return str(value).lower()


def moment(value: Any) -> str:
    """A time as it was sent; the zero time when absent."""
    if value is None:
        return "0001-01-01T00:00:00Z"
    if not _TIME.fullmatch(_typed(value, str, "Time")):
        raise BadJson(f"cannot parse {value!r} as a time")
    return str(value)


_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")


def id_fault(value: str) -> str:
    """The problem of an invalid id; "" for a valid one."""
    if len(value.encode()) != 16:
        return "id must have a length of 16 bytes"
    if not set(value.lower()) <= set("0123456789abcdef") or value == "0" * 16:
        return "invalid ID"
    return ""


def optional(shape: Shape) -> Shape:
    """None when absent or null."""
    return lambda value: None if value is None else shape(value)


def listing(shape: Shape) -> Shape:
    """A list; None when absent or null."""
    return lambda value: None if value is None else [shape(item) for item in _typed(value, list, "slice")]


def mapping(shape: Shape) -> Shape:
    """An object with any keys, read back sorted; None when absent or null."""

    def read(value: Any) -> dict[str, Any] | None:
        if value is None:
            return None
        return {key: shape(item) for key, item in sorted(_typed(value, dict, "map").items())}

    return read


def struct(**fields: Shape) -> Shape:
    """An object with exactly these keys; the result has all of them."""
    return struct_of(fields)


def struct_of(fields: Mapping[str, Shape]) -> Shape:
    """Like :func:`struct`, from a table."""
    folded = {name.lower(): name for name in fields}

    def read(value: Any) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, item in _typed({} if value is None else value, dict, "struct").items():
            name = key if key in fields else folded.get(key.lower(), "")
            if name and (item is not None or name not in found):
                found[name] = fields[name](item)
        return {name: found[name] if name in found else shape(None) for name, shape in fields.items()}

    return read


def _typed(value: Any, wanted: type, name: str) -> Any:
    if not isinstance(value, wanted):
        raise BadJson(f"cannot unmarshal {_word(value)} into a value of type {name}")
    return value


def _word(value: Any) -> str:
    words = {bool: "bool", int: "number", float: "number", str: "string", list: "array", dict: "object"}
    return words.get(type(value), "null")
