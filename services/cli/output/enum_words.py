"""Enum values as users read them."""

from typing import Any


def word(enum: Any, prefix: str, number: int) -> str:
    """A value of a protobuf enum as text: in lower case, without the *prefix* of its enum."""
    name: str = enum.Name(number)
    return name.removeprefix(f"{prefix}_").lower().replace("_", " ")
