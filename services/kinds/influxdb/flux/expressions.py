"""
Values as Flux expressions (docs/reference/package-format.md, "Parameter values"): each value is one literal, ``now()``,
or has none.
"""

import math
import re
from typing import Any

from services.kinds.format.canonical import canonical_text, plain
from services.kinds.format.durations import flux_duration
from services.kinds.format.fields import text_of
from services.kinds.format.timestamp import Timestamp
from services.kinds.influxdb.flux.literals import NOW, full_time

TYPE_WORDS = {
    "bool": "true or false",
    "duration": "a duration such as 1h30m",
    "float": "a finite number",
    "integer": f"a whole number from {1 - 2**63} to {2**63 - 1}",
    "string": "a text, a number, true or false",
    "time": "now(), a date such as 2020-01-01, or a time such as 2020-01-01T00:00:00Z",
    "": "a text, a number, true or false",
}
"""The values that become a literal of each type, as part of a reason; the empty type means no type."""


def expression(value_type: str, value: Any) -> str | None:
    """
    The literal of a value in a known type.

    Texts of the type are converted, since the command line sends texts only.

    Args:
        value_type: ``bool``, ``duration``, ``float``, ``integer``, ``string`` or ``time``.
        value: Any tree but None.

    Returns:
        None when the value is not of the type and does not convert to it.
    """
    match value_type:
        case "bool":
            return _bool(value)
        case "duration":
            return flux_duration(value) if isinstance(value, str) else None
        case "float":
            return _float(value)
        case "integer":
            return _integer(value)
        case "string":
            return _string(value)
        case _:
            return _time(value)


def untyped_expression(value: Any) -> str | None:
    """The literal of a value by its JSON type; None for null, lists and mappings."""
    match plain(value):
        case bool(boolean):
            return _bool(boolean)
        case int(integer) if abs(integer) < 2**63:
            return _integer(integer)
        case int(number) | float(number):
            return _float(number)
        case str(text):
            return quoted(text)
        case _:
            return None


def quoted(text: str) -> str:
    """
    The string literal of any text.

    Besides the usual escapes, a dollar is escaped where Flux would read an interpolation, or would read the escape
    after it as two characters of text.
    """
    return f'"{_SPECIAL.sub(lambda match: _escaped(match.group()), text)}"'


# Line feeds and tabs are not escaped, as in the reference implementation.
_SPECIAL = re.compile(r'\$\{|\$(?=[$"\\\x00-\x1f\x7f])|["\\\x00-\x08\x0b-\x1f\x7f]')
_ESCAPES = {"${": "\\${", '"': '\\"', "\\": "\\\\", "\r": "\\r"}


def _escaped(special: str) -> str:
    return _ESCAPES.get(special) or f"\\x{ord(special):02x}"


_INTEGER_TEXT = re.compile(r"([-+]?)0*([0-9]{1,19})(?:\.0+)?")
_FLOAT_TEXT = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")


def _bool(value: Any) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if value in ("true", "false") else None


def _integer(value: Any) -> str | None:
    if isinstance(value, str):
        match = _INTEGER_TEXT.fullmatch(value)
        value = int("".join(match.groups())) if match else None
    elif not _is_number(value) or value != int(value):
        return None
    # Flux reads a minus sign and a number, so the least integer of 64 bits has no literal.
    return str(int(value)) if value is not None and abs(value) < 2**63 else None


def _float(value: Any) -> str | None:
    if isinstance(value, str):
        match = _FLOAT_TEXT.fullmatch(value)
        if not match:
            return None
        value = float(value)
        if value == 0 and match.group(1).strip("0."):
            # Too small for a float, and not zero.
            return None
    if not _is_number(value):
        return None
    text = text_of(float(value)) or ""
    return text if "." in text else f"{text}.0"


def _string(value: Any) -> str | None:
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, bool):
        return quoted("true" if value else "false")
    if not _is_number(value):
        return None
    # A number of 64 bits has one text, whether its source has it as integer or as float.
    whole = value == int(value) and -(2**63) <= value < 2**64
    return quoted(str(int(value)) if whole else canonical_text(plain(value)))


def _time(value: Any) -> str | None:
    text = value.rfc3339() if isinstance(value, Timestamp) else value
    return text if text == NOW else full_time(text) if isinstance(text, str) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
