"""Cuts responses that grow with a package into parts of at most 1 MiB, unless a single item is larger."""

from collections.abc import Callable, Iterable, Iterator
from typing import AnyStr, TypeVar

from google.protobuf.message import Message

Item = TypeVar("Item")

Lists = TypeVar("Lists", bound=Message)
"""A message whose fields are all lists of messages or texts."""

MAX_PART_BYTES = 1024 * 1024
"""
Largest message of a stream, and largest page, in bytes, unless a single item is larger (docs/architecture.md,
"Contracts").
"""

_CUT_BYTES = MAX_PART_BYTES // 2
"""Size at which a part ends: half of the limit, as sizes are estimated."""

FRAME_BYTES = 6
"""Most bytes of the tag and the length of an item."""


def text_bytes(text: str) -> int:
    """An upper bound of the bytes of *text* in UTF-8, without encoding it."""
    return len(text) if text.isascii() else 4 * len(text)


def parts(items: Iterable[Item], size: Callable[[Item], int], most: int = _CUT_BYTES) -> Iterator[list[Item]]:
    """
    Cut *items* into lists, keeping their order; no items make no part.

    Args:
        items: The items to send.
        size: Estimates the bytes of an item in a message.
        most: Most bytes of a part, unless a single item is larger.
    """
    part: list[Item] = []
    taken = 0
    for item in items:
        estimated = size(item)
        if part and taken + estimated > most:
            yield part
            part, taken = [], 0
        part.append(item)
        taken += estimated
    if part:
        yield part


def cut(message: Lists) -> Iterator[Lists]:
    """Cut *message* into messages of its type, keeping the order of its lists; a message without items gives none."""
    items = ((field.name, item) for field, listed in message.ListFields() for item in listed)
    for part in parts(items, _size):
        piece = type(message)()
        for name, item in part:
            getattr(piece, name).append(item)
        yield piece


def pieces(text: AnyStr) -> Iterator[AnyStr]:
    """Cut a long *text*, or bytes, into pieces; joined, they are the text."""
    length = _CUT_BYTES if isinstance(text, bytes) or text.isascii() else _CUT_BYTES // 4
    return (text[start : start + length] for start in range(0, len(text), length))


def _size(item: tuple[str, str | Message]) -> int:
    _, value = item
    return FRAME_BYTES + (text_bytes(value) if isinstance(value, str) else value.ByteSize())
