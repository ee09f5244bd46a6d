"""Writes warnings into a header, as the bodies of InfluxDB's answers have no place for them."""

from collections.abc import Sequence

from services.core.text_lists import and_more

SHOWN = 10
"""Most warnings in the header."""

MOST_CHARACTERS = 4000


def warning_headers(warnings: Sequence[str]) -> dict[str, str]:
    """The header with the first warnings, in printable ASCII; empty without warnings."""
    if not warnings:
        return {}
    more = and_more(len(warnings) - SHOWN, "; ")
    text = "".join(each if " " <= each <= "~" else "?" for each in "; ".join(warnings[:SHOWN]))
    return {"X-Pkger-Warnings": text[: MOST_CHARACTERS - len(more)] + more}
