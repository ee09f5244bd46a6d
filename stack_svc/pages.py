"""Tokens that tell where the next page of a list starts."""

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any, TypeVar

import orjson

from services.core.errors import RequestInvalid

Place = TypeVar("Place", bound=tuple[Any, ...])
"""What the entries of a list are sorted by: texts, and numbers that SQLite can hold."""


def size_of(asked: int, default: int, largest: int) -> int:
    """
    The number of entries on a page when the caller asked for *asked*.

    Raises:
        RequestInvalid: It is negative.
    """
    if asked < 0:
        raise RequestInvalid("page_size", "must not be negative; 0 means the default")
    return min(asked or default, largest)


def token_of(last: tuple[Any, ...] | None) -> str:
    """The token of the page after the one that ends with *last*; empty when it is None, for there is no such page."""
    return "" if last is None else urlsafe_b64encode(orjson.dumps(last)).decode()


def place_of(token: str, start: Place) -> Place:
    """
    Where the page of *token* starts; *start*, which is before every entry, for an empty token.

    Raises:
        RequestInvalid: No call of ``token_of`` made it for such a list.
    """
    if not token:
        return start
    try:
        parts = orjson.loads(urlsafe_b64decode(token))
        if isinstance(parts, list) and [*map(_type, parts)] == [*map(_type, start)] and token_of(tuple(parts)) == token:
            return type(start)(parts)
    except (ValueError, binascii.Error):
        pass
    raise RequestInvalid("page_token", "is no next_page_token of this service")


def _type(part: Any) -> type | None:
    """The type of a part of a place; None for a number that is too large to be one."""
    return None if isinstance(part, int) and part >= 2**63 else type(part)
