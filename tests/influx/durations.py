"""Durations as scripts and resources write them."""

import re

_PART = re.compile(r"(\d+)(mo|ms|us|µs|ns|[ywdhms])")
_NANOSECONDS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
    "d": 86400 * 10**9,
    "w": 7 * 86400 * 10**9,
    "mo": 30 * 86400 * 10**9,
    "y": 365 * 86400 * 10**9,
}
SECOND = 10**9


def nanoseconds(text: str) -> int | None:
    """
    The length of a duration such as ``1h30m``; None if it is invalid.

    Months and years have no fixed length; 30 and 365 days are enough for comparisons.
    """
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    return sum(int(number) * _NANOSECONDS[unit] for number, unit in parts)


def has_calendar_units(text: str) -> bool:
    """Whether a unit is longer than an hour."""
    return any(unit in {"d", "w", "mo", "y"} for _, unit in _PART.findall(text))


def normal(seconds: int) -> str:
    """``1h1m1s`` without the parts that are zero; "" for zero."""
    left = abs(seconds)
    parts = ((left // 3600, "h"), (left // 60 % 60, "m"), (left % 60, "s"))
    return ("-" if seconds < 0 else "") + "".join(f"{number}{unit}" for number, unit in parts if number)
