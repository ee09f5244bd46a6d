"""Attachments of plans: texts that are identified by their digest, cut into parts and compressed (journal.proto)."""

import hashlib
import zlib

_LEVEL = 6
"""Compression level: texts are written once and retained for long."""


def text_digest(text: str) -> str:
    """The digest that identifies *text*."""
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def compressed(text: str) -> bytes:
    """A part of a text as it is sent and stored."""
    return zlib.compress(text.encode(), _LEVEL)


def decompressed(body: bytes) -> str:
    """
    The text that ``compressed`` was given.

    Raises:
        ValueError: *body* is not compressed text.
    """
    try:
        return zlib.decompress(body).decode()
    except zlib.error as error:
        raise ValueError(f"not compressed: {error}") from None
