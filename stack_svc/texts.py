"""Texts from outside, as every store can hold them (docs/reference/engine.md, "Store", S9)."""

import re
from hashlib import sha256

from services.core.errors import RequestInvalid

LONGEST_KEY = 1024
"""Bytes of a text that rows are found by; more than 2,704 do not fit into an index of PostgreSQL."""

LONGEST_AUTHOR = 200
"""Characters of the name of who asks for an operation (applier.proto)."""

_NO_TEXT = re.compile("[\0\ud800-\udfff]")


def clean(text: str) -> str:
    """*text* with U+FFFD in place of NUL and of what is no Unicode text."""
    return _NO_TEXT.sub("\ufffd", text)


def checked_name(name: str, field: str) -> str:
    """
    Accept *name*, which rows are found by and others call a thing, as it is.

    Raises:
        RequestInvalid: It is empty, longer than ``LONGEST_KEY``, or no text that every store can hold.
    """
    if not name:
        raise RequestInvalid(field, "must not be empty")
    if key(name) != name:
        raise RequestInvalid(field, f"must be text without NUL, of at most {LONGEST_KEY:,} bytes")
    return name


def checked_author(author: str) -> str:
    """
    Accept the name of who asks for an operation; it may be empty.

    Raises:
        RequestInvalid: It is longer than ``LONGEST_AUTHOR``, or has line breaks or other control characters.
    """
    if len(author) > LONGEST_AUTHOR or not author.isprintable():
        raise RequestInvalid("author", f"must be at most {LONGEST_AUTHOR} printable characters")
    return author


def key(text: str) -> str:
    """What rows are found by: *text* itself, or its digest when it is long."""
    cleaned = clean(text)
    encoded = cleaned.encode()
    return cleaned if len(encoded) <= LONGEST_KEY else f"sha256:{sha256(encoded).hexdigest()}"
