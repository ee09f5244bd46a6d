"""Ids in requests: 16 hex digits, not all of them zero."""

import re

from services.gateway.answers import Code
from services.gateway.errors import Problem

_ID = re.compile("[0-9a-fA-F]{16}")

_ZERO = "0" * 16


def is_id(text: str) -> bool:
    """Whether *text* is an id, in letters of either case."""
    return _ID.fullmatch(text) is not None and text != _ZERO


def id_of(text: str, where: str) -> str:
    """
    The id that *text* is, in lower case.

    Args:
        text: What somebody sent.
        where: The member or parameter that it stands in.

    Raises:
        Problem: It is none.
    """
    if not is_id(text):
        raise Problem(Code.INVALID, f"{where}: {text[:60]!r} is no id; an id has 16 hex digits, not all of them zero")
    return text.lower()
