"""Dates and times that YAML reads without quotes (docs/reference/package-format.md, "YAML")."""

import re
from dataclasses import dataclass

_PARTS = re.compile(
    r"(\d+)-(\d+)-(\d+)(?:[Tt ]+(\d+):(\d+):(\d+)(?:[.,](\d+))?)?(Z|[-+]\d\d:\d\d)?",
)

_NANOSECOND_DIGITS = 9


@dataclass(frozen=True, slots=True)
class Timestamp:
    """A plain date or time, with its source text. No field uses one as text."""

    text: str

    def rfc3339(self) -> str:
        """The time in full: ``2020-1-1`` is ``2020-01-01T00:00:00Z``."""
        match = _PARTS.fullmatch(self.text)
        assert match is not None  # noqa: S101 - the reader creates no others
        year, month, day, hour, minute, second, fraction, offset = match.groups()
        clock = ":".join((part or "0").zfill(2) for part in (hour, minute, second))
        digits = (fraction or "")[:_NANOSECOND_DIGITS].rstrip("0")
        zone = "Z" if offset in (None, "+00:00", "-00:00") else offset
        return f"{year}-{month.zfill(2)}-{day.zfill(2)}T{clock}{'.' if digits else ''}{digits}{zone}"
