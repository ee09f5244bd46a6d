"""Tokens that tell where the next page of a list starts."""

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode

import orjson

from services.core.errors import RequestInvalid

DEFAULT_SIZE, LARGEST_SIZE = 100, 1000
"""Entries on a page (stack.proto)."""

Place = tuple[str, str]
"""Name and id of the last stack of a page."""

START: Place = ("", "")
"""Before every stack: ids are never empty."""


def size_of(asked: int) -> int:
    """
    The number of entries on a page when the caller asked for *asked*.

    Raises:
        RequestInvalid: It is negative.
    """
    if asked < 0:
        raise RequestInvalid("page_size", "must not be negative; 0 means the default")
    return min(asked or DEFAULT_SIZE, LARGEST_SIZE)


def token_of(place: Place) -> str:
    """The token of the page after *place*."""
    return urlsafe_b64encode(orjson.dumps(place)).decode()


def place_of(token: str) -> Place:
    """
    Where the page of *token* starts; ``START`` for an empty token.

    Raises:
        RequestInvalid: No call of ``token_of`` made it.
    """
    if not token:
        return START
    try:
        match orjson.loads(urlsafe_b64decode(token)):
            case [str(name), str(stack)]:
                if token_of((name, stack)) == token:
                    return name, stack
    except (ValueError, binascii.Error):
        pass
    raise RequestInvalid("page_token", "is no next_page_token of this service")
