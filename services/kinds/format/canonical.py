"""Canonical JSON: sorted keys, no insignificant space, so that equal content has equal text."""

import math
from typing import Any

import orjson

from services.core.model import DEEPEST_SPEC, Spec
from services.kinds.format.fields import LARGEST_EXACT
from services.kinds.format.timestamp import Timestamp


def canonical_text(value: Any) -> str:
    """
    Write *value* as canonical JSON.

    Raises:
        TypeError: *value* holds something that JSON cannot, such as an integer beyond 64 bits.
    """
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def spec_of(value: dict[str, Any]) -> Spec:
    """The spec with the content *value*, which has a name. The caller must not change *value* afterwards."""
    return Spec(canonical_text(value), value["name"], value)


def checked_spec(text: str) -> Spec:
    """
    Read a spec from text that the caller knows to be canonical; that is not checked.

    Raises:
        ValueError: *text* is not a JSON object with a text under "name".
        TypeError: It is nested deeper than canonical text can be written.
    """
    value = orjson.loads(text)
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        raise ValueError("a spec is a JSON object with a name")
    # Only a text with more brackets can be nested deeper; writing it raises the TypeError.
    if text.count("{") + text.count("[") > DEEPEST_SPEC:
        canonical_text(value)
    return Spec(text, value["name"], value)


def spec_from_text(text: str) -> Spec:
    """
    Read a spec from JSON text, canonical or not.

    Raises:
        ValueError: *text* is not a JSON object with a text under "name".
        TypeError: It is nested deeper than canonical text can be written.
    """
    return spec_of(dict(checked_spec(text).value))


def plain(value: Any) -> Any:
    """
    Reduce an untyped tree to JSON values, so that YAML and JSON sources of one object are equal
    (docs/reference/package-format.md, "Equal sources").

    Floats with an integral value become integers, as JSON sources do not distinguish them. Timestamps become their
    RFC 3339 text. Infinities, NaN and anything that is no JSON value become null.
    """
    match value:
        case bool() | None | str():
            return value
        case int():
            return value if -(2**63) <= value < 2**64 else float(value)
        case float():
            if not math.isfinite(value):
                return None
            return int(value) if value.is_integer() and abs(value) <= LARGEST_EXACT else value
        case dict():
            return {key: plain(item) for key, item in value.items() if isinstance(key, str)}
        case list() | tuple():
            return [plain(item) for item in value]
        case Timestamp():
            return value.rfc3339()
        case _:
            return None
