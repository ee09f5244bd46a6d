"""Escapes for characters that a terminal would interpret or not show."""

import re

_HIDDEN = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters, except tabs and line breaks
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # bidirectional controls: they make one text look like another
    "\u200b\u2028\u2029\u2060\ufeff"  # zero-width characters, and separators that terminals do not show
    "\ud800-\udfff"  # surrogates
    "\U000e0000-\U000e007f"  # tags, which have no glyph
    "]"
)


def escaped(text: str) -> str:
    r"""
    *text* with ``\\uXXXX`` for each character that a terminal interprets or does not show; tabs and line breaks stay.

    JSON text stays JSON text of the same value.
    """
    return _HIDDEN.sub(_escape, text)


def one_line(text: str) -> str:
    """*text* as ``escaped``, with line breaks and tabs escaped, too: for text within a line."""
    return escaped(text).replace("\n", "\\n").replace("\t", "\\t")


def _escape(match: re.Match[str]) -> str:
    data = match.group().encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{data[at : at + 2].hex()}" for at in range(0, len(data), 2))
