"""Durations of definitions, such as ``1m30s``: whole numbers, each with ``h``, ``m``, ``s`` or ``ms``."""

import re

Milliseconds = int

SECOND: Milliseconds = 1_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR

_UNITS = {"h": HOUR, "m": MINUTE, "s": SECOND, "ms": 1}
_PART = r"([0-9]{1,12})(ms|[hms])"
_DURATION = re.compile(f"(?:{_PART})+")
_PARTS = re.compile(_PART)


def parse_duration(text: str) -> Milliseconds | None:
    """The length of a duration; None if *text* is none."""
    if not _DURATION.fullmatch(text):
        return None
    return sum(int(count) * _UNITS[unit] for count, unit in _PARTS.findall(text))


def duration_text(length: Milliseconds) -> str:
    """The one text of a length, in its largest units: ``1m30s``, ``0s``."""
    parts = []
    for unit, size in _UNITS.items():
        count, length = divmod(length, size)
        parts += [f"{count}{unit}"] if count else []
    return "".join(parts) or "0s"
