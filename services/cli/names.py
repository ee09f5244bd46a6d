"""Names and enum values as users write and read them."""

from typing import Any


def full_name(collection: str, name: str) -> str:
    """A name such as ``operations/0123456789abcdef``; users may write it without its *collection*."""
    return name if name.startswith(f"{collection}/") else f"{collection}/{name}"


def short_name(name: str) -> str:
    """The last part of a name such as ``operations/0123456789abcdef``."""
    return name.rpartition("/")[2]


def word(enum: Any, prefix: str, number: int) -> str:
    """A value of a protobuf enum as text: in lower case, without the *prefix* of its enum."""
    name: str = enum.Name(number)
    return name.removeprefix(f"{prefix}_").lower().replace("_", " ")
