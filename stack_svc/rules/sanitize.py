"""
Changes texts from clients so that every store can hold them: valid Unicode without NUL (docs/reference/engine.md,
"Store").
"""

import re
from hashlib import sha256

from services.core.errors import RequestInvalid

LONGEST_KEY = 1024
"""Largest size of a text in an index, in bytes; PostgreSQL indexes at most 2,704."""

LONGEST_AUTHOR = 200
"""Largest length of the name of an author, in characters (applier.proto)."""

_NO_TEXT = re.compile("[\0\ud800-\udfff]")


def clean(text: str) -> str:
    """*text* with U+FFFD in place of NUL and of surrogates, which are not valid Unicode text."""
    return _NO_TEXT.sub("\ufffd", text)


def checked_name(name: str, field: str) -> str:
    """
    Accept *name*, by which rows are found, unchanged.

    Raises:
        RequestInvalid: It is empty, longer than ``LONGEST_KEY``, or not a text that every store can hold.
    """
    if not name:
        raise RequestInvalid(field, "must not be empty")
    if key(name) != name:
        raise RequestInvalid(field, f"must be text without NUL, of at most {LONGEST_KEY:,} bytes")
    return name


def checked_author(author: str) -> str:
    """
    Accept the name of the author of an operation; it may be empty.

    Raises:
        RequestInvalid: It is longer than ``LONGEST_AUTHOR``, or has line breaks or other control characters.
    """
    if len(author) > LONGEST_AUTHOR or not author.isprintable():
        raise RequestInvalid("author", f"must be at most {LONGEST_AUTHOR} printable characters")
    return author


def key(text: str) -> str:
    """The text under which rows are found: *text* itself, or its digest when it is long."""
    cleaned = clean(text)
    encoded = cleaned.encode()
    return cleaned if len(encoded) <= LONGEST_KEY else f"sha256:{sha256(encoded).hexdigest()}"
