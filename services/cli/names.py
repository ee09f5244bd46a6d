"""Names and words as people write and read them."""

from typing import Any


def full_name(collection: str, name: str) -> str:
    """A name such as ``operations/0123456789abcdef``, which people may give without its *collection*."""
    return name if name.startswith(f"{collection}/") else f"{collection}/{name}"


def short_name(name: str) -> str:
    """The part of a name such as ``operations/0123456789abcdef`` that people type."""
    return name.rpartition("/")[2]


def word(enum: Any, prefix: str, number: int) -> str:
    """A value of a protobuf enum in plain words: without the *prefix* of its kind."""
    name: str = enum.Name(number)
    return name.removeprefix(f"{prefix}_").lower().replace("_", " ")
