"""Remarks that stop nothing, in a header: the bodies of answers are those of InfluxDB."""

from collections.abc import Sequence

from services.core.listing import and_more

SHOWN = 10
"""So many warnings stand in the header."""

MOST_CHARACTERS = 4000


def warning_headers(warnings: Sequence[str]) -> dict[str, str]:
    """The header with the first warnings, in printable ASCII; none when there are no warnings."""
    if not warnings:
        return {}
    more = and_more(len(warnings) - SHOWN, "; ")
    told = "".join(each if " " <= each <= "~" else "?" for each in "; ".join(warnings[:SHOWN]))
    return {"X-Pkger-Warnings": told[: MOST_CHARACTERS - len(more)] + more}
