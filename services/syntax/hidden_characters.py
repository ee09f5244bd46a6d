"""The characters that a terminal or an editor interprets, or does not show."""

import re

HIDDEN_CHARACTER = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters, except tabs and line breaks
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # bidirectional controls: they make one text look like another
    "\u200b-\u200d\u2060-\u2064\ufeff"  # zero-width characters, joiners, and operators that look like nothing
    "\u034f\u115f\u1160\u3164\uffa0"  # a joiner and fillers, which look like nothing or like a space
    "\u2028\u2029"  # separators that terminals do not show
    "\ud800-\udfff"  # surrogates
    "\U000e0000-\U000e007f"  # tags, which have no glyph
    "]"
)
"""One such character. Tabs and line breaks are none of them."""
