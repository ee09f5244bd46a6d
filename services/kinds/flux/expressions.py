"""Values as Flux expressions (packages.md 7.4): whatever the value, one literal or ``now()``, and nothing else."""

import math
import re
from typing import Any

from services.kinds.durations import canonical_duration, flux_duration
from services.kinds.fields import text_of
from services.kinds.flux.literals import NOW, full_time


def expression(value_type: str, value: Any) -> str:
    """
    The literal of a value of a known type; what stands in for one that the type cannot use is ``0``, ``""`` and so on.

    Args:
        value_type: ``bool``, ``duration``, ``float``, ``integer``, ``string`` or ``time``.
        value: As JSON.
    """
    match value_type:
        case "bool":
            return "true" if value is True else "false"
        case "duration":
            return (flux_duration(value) if isinstance(value, str) else None) or "0m"
        case "float":
            return _float(value) if _is_number(value) else "0.0"
        case "integer":
            return str(int(value)) if _is_number(value) and abs(value) < 2**63 else "0"
        case "string":
            return quoted(value) if isinstance(value, str) else '""'
        case _:
            # Not the current time, as the reference has it: that would give another text with each parse.
            return (full_time(value) if isinstance(value, str) else None) or NOW


def duration_expression(nanoseconds: int) -> str:
    """The literal of a length of time, in hours and below."""
    return canonical_duration(nanoseconds) or "0s"


def untyped_expression(value: Any) -> str | None:
    """The literal that a JSON value suggests by itself; None for lists, mappings and null."""
    match value:
        case bool():
            return expression("bool", value)
        case int() if abs(value) < 2**63:
            return expression("integer", value)
        case int() | float():
            return expression("float", value)
        case str():
            return quoted(value)
        case _:
            return None


def quoted(text: str) -> str:
    """
    The string literal of any text.

    Besides the usual escapes, a dollar is escaped where Flux would see an interpolation, or take the escape of the
    character after it for two characters of text.
    """
    return f'"{_SPECIAL.sub(lambda found: _escaped(found.group()), text)}"'


# Line feeds and tabs stand in literals as they are, as the reference writes them.
_SPECIAL = re.compile(r'\$\{|\$(?=[$"\\\x00-\x1f\x7f])|["\\\x00-\x08\x0b-\x1f\x7f]')
_ESCAPES = {"${": "\\${", '"': '\\"', "\\": "\\\\", "\r": "\\r"}


def _escaped(special: str) -> str:
    return _ESCAPES.get(special) or f"\\x{ord(special):02x}"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _float(value: int | float) -> str:
    text = text_of(float(value)) or ""
    return text if "." in text else f"{text}.0"
