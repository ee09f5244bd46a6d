"""Escapes for characters that a terminal would interpret or not show."""

import re

from services.syntax.hidden_characters import HIDDEN_CHARACTER


def escaped(text: str) -> str:
    r"""
    *text* with ``\\uXXXX`` for each character that a terminal interprets or does not show; tabs and line breaks stay.

    JSON text stays JSON text of the same value.
    """
    return HIDDEN_CHARACTER.sub(_escape, text)


def one_line(text: str) -> str:
    """*text* as ``escaped``, with line breaks and tabs escaped, too: for text within a line."""
    return escaped(text).replace("\n", "\\n").replace("\t", "\\t")


def _escape(match: re.Match[str]) -> str:
    data = match.group().encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{data[at : at + 2].hex()}" for at in range(0, len(data), 2))
