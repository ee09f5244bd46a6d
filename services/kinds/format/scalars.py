"""
The values of plain and tagged YAML scalars (docs/reference/package-format.md, "YAML"): YAML 1.2, with octals and
underscores as in Go.
"""

import base64
import binascii
import math
import re
from datetime import datetime
from typing import Any, Final

from services.kinds.format.floats import parse_float
from services.kinds.format.timestamp import Timestamp


class MergeKey:
    """The type of ``MERGE``."""


MERGE: Final = MergeKey()
"""The plain scalar ``<<``: merges mappings where it is a key, and is a text elsewhere."""

_WORDS: dict[str, Any] = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    "<<": MERGE,
}

_INTEGER = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|([1-9][0-9]*|0))")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_CLOCK = r"([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?:[.,][0-9]+)?"
_ZONE = r"(?:Z|[-+](?:[01][0-9]|2[0-4]):(?:[0-5][0-9]|60))"
_TIMESTAMP = re.compile(rf"([0-9]{{4}})-([0-9]{{1,2}})-([0-9]{{1,2}})(?:[Tt]{_CLOCK}{_ZONE}| +{_CLOCK})?")
_LARGEST = 2**64
_LONGEST_INTEGER = 400
"""Characters. Python refuses to convert longer integers, and no integer of 64 bits needs as many."""


class PlainScalars(dict[str, Any]):
    """
    A cache of the values of plain scalars by their text, for one source.

    Attributes:
        merges: Whether a ``<<`` was read.
    """

    merges = False

    def __missing__(self, text: str) -> Any:
        value = self[text] = plain_scalar(text)
        if value is MERGE:
            self.merges = True
        return value


def plain_scalar(text: str) -> Any:
    """
    The value of an untagged, unquoted scalar: None, a boolean, integer, float, text, ``Timestamp`` or ``MERGE``.

    Integers reach from -2^63 to 2^64-1; larger ones are floats, and numbers too large for a float are text.
    """
    if text in _WORDS:
        return _WORDS[text]
    # A text that does not start like a number is none (so `_1` is text).
    if text[0] not in "+-.0123456789":
        return text
    if text[0] == ".":
        value = parse_float(text)
        return text if value is None else value
    if _timestamp(text):
        return Timestamp(text)
    return _number(text)


def tagged_scalar(tag: str, text: str, quoted: bool) -> Any:
    """
    The value of a scalar with an explicit tag.

    ``!`` has no effect, and a tag of an application, such as ``!Ref``, makes it a text.

    Raises:
        ValueError: The text is not of that type; the message is one sentence.
    """
    match tag.removeprefix("tag:yaml.org,2002:"):
        case "!":
            return text if quoted else plain_scalar(text)
        case "binary":
            return _binary(text)
        case "float":
            value = plain_scalar(text)
            if isinstance(value, int) and not isinstance(value, bool):
                value = float(value)
            fits = isinstance(value, float)
        case "int":
            value = plain_scalar(text)
            fits = isinstance(value, int) and not isinstance(value, bool)
        case "bool":
            value = plain_scalar(text)
            fits = isinstance(value, bool)
        case "null":
            value = plain_scalar(text)
            fits = value is None
        case "timestamp":
            value = Timestamp(text)
            fits = _timestamp(text)
        case "merge" if text == "<<":
            return MERGE
        case _:
            return text
    if not fits:
        raise ValueError(
            f"{text[:40]!r} is no value of the type that its tag says; leave the tag out or correct the value"
        )
    return value


def _number(text: str) -> Any:
    digits = text.replace("_", "")
    if len(digits) <= _LONGEST_INTEGER and (match := _INTEGER.fullmatch(digits)):
        sign, hexadecimal, binary, octal, decimal = match.groups()
        if decimal:
            value = int(decimal)
        else:
            value = int(hexadecimal or binary or octal, 16 if hexadecimal else 2 if binary else 8)
        value = -value if sign == "-" else value
        if -(2**63) <= value < _LARGEST:
            return value
    return _float(digits, text)


def _float(digits: str, text: str) -> float | str:
    """The float that *digits* spell, else *text*."""
    if not _FLOAT.fullmatch(digits):
        return text
    value = float(digits)
    return text if math.isinf(value) else value


def _timestamp(text: str) -> bool:
    match = _TIMESTAMP.fullmatch(text)
    if not match:
        return False
    # At most one of the two clocks matched.
    numbers = [int(part) for part in match.groups() if part]
    year, month, day, hour, minute, second = (*numbers, 0, 0, 0)[:6]
    try:
        # The year 0 exists in Go's calendar; it is a leap year, as is 2000.
        datetime(year or 2000, month, day, hour, minute, second)
    except ValueError:
        return False
    return True


def _binary(text: str) -> str:
    try:
        return base64.b64decode("".join(text.split()), validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        raise ValueError("a !!binary value must be the base64 of UTF-8 text") from None
