"""Texts from outside, as every store can hold them (scale.md 2, S9)."""

import re
from hashlib import sha256

LONGEST_KEY = 1024
"""Bytes of a text that rows are found by; more than 2,704 do not fit into an index of PostgreSQL."""

_NO_TEXT = re.compile("[\0\ud800-\udfff]")


def clean(text: str) -> str:
    """*text* with U+FFFD in place of NUL and of what is no Unicode text."""
    return _NO_TEXT.sub("\ufffd", text)


def key(text: str) -> str:
    """What rows are found by: *text* itself, or its digest when it is long."""
    cleaned = clean(text)
    encoded = cleaned.encode()
    return cleaned if len(encoded) <= LONGEST_KEY else f"sha256:{sha256(encoded).hexdigest()}"
