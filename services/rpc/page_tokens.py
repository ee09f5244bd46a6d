"""Pages of a list that a service returns: their size, and the tokens of the pages that follow."""

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import orjson
from google.protobuf.message import Message

from services.core.errors import RequestInvalid
from services.rpc.parts import FRAME_BYTES, MAX_PART_BYTES

Entry = TypeVar("Entry")
EntryMessage = TypeVar("EntryMessage", bound=Message)

Place = TypeVar("Place", bound=tuple[Any, ...])
"""The values that a list is sorted by: texts, and numbers that SQLite can hold."""


MOST_BYTES = MAX_PART_BYTES * 15 // 16
"""Largest size of the entries of a page, unless there is only one; the rest is for tags, lengths and the token."""


def size_of(requested: int, default: int, largest: int) -> int:
    """
    The number of entries on a page when the caller asked for *requested*.

    Raises:
        RequestInvalid: It is negative, or above *largest*.
    """
    if requested < 0:
        raise RequestInvalid("page_size", "must not be negative; 0 means the default")
    if requested > largest:
        raise RequestInvalid(
            "page_size", f"{requested:,} is more than a page may have; at most {largest:,} are accepted"
        )
    return requested or default


def page_of(
    entries: Sequence[Entry],
    size: int,
    message_of: Callable[[Entry], EntryMessage],
    place: Callable[[Entry], tuple[Any, ...]],
) -> tuple[list[EntryMessage], str]:
    """
    Make a page of the first entries: at most *size*, and at most 1 MiB unless a single entry is larger.

    Args:
        entries: The entries; more than *size* when more follow.
        size: Entries on the page.
        message_of: Translates an entry.
        place: Returns the values that an entry is sorted by, for the token.

    Returns:
        The entries, and the token of the next page; empty when there is none.
    """
    messages: list[EntryMessage] = []
    left = MOST_BYTES
    for entry in entries[:size]:
        message = message_of(entry)
        left -= message.ByteSize() + FRAME_BYTES
        if messages and left < 0:
            break
        messages.append(message)
    return messages, "" if len(messages) == len(entries) else token_of(place(entries[len(messages) - 1]))


def token_of(last: tuple[Any, ...]) -> str:
    """The token of the next page; *last* is the sort key of the last item of this page."""
    return urlsafe_b64encode(orjson.dumps(last)).decode()


def place_of(token: str, start: Place, field: str = "page_token", origin: str = "next_page_token") -> Place:
    """
    Decode a page token into the sort key of the last item of the previous page; for an empty token, return *start*,
    which sorts before every entry.

    Raises:
        RequestInvalid: ``token_of`` did not make the token for a list with sort keys like *start*. The error names the
            field *field*, and *origin*, the field of a response that has valid tokens.
    """
    if not token:
        return start
    try:
        parts = orjson.loads(urlsafe_b64decode(token))
        if isinstance(parts, list) and [*map(_type, parts)] == [*map(_type, start)] and token_of(tuple(parts)) == token:
            return type(start)(parts)
    except (ValueError, binascii.Error):
        pass
    raise RequestInvalid(field, f"is not a {origin} of this service")


def _type(part: Any) -> type | None:
    """The type of one part of a sort key; None for a number that is too large for a sort key."""
    return None if isinstance(part, int) and part >= 2**63 else type(part)
