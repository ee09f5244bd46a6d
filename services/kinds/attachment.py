"""Texts that travel beside plans: known by their digest, cut into pieces, compressed (journal.proto)."""

import hashlib
import zlib

_LEVEL = 6
"""Of the compression: texts are written once and kept for long."""


def text_digest(text: str) -> str:
    """The digest by which *text* is known."""
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def compressed(text: str) -> bytes:
    """A piece of a text as it is sent and stored."""
    return zlib.compress(text.encode(), _LEVEL)


def decompressed(body: bytes) -> str:
    """
    What ``compressed`` was given.

    Raises:
        ValueError: *body* is nothing that it returned.
    """
    try:
        return zlib.decompress(body).decode()
    except zlib.error as error:
        raise ValueError(f"not compressed: {error}") from None
