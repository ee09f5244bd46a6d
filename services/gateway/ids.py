"""Ids in requests: 16 hex digits, not all of them zero; those of resources are what their platform makes them."""

import re

from services.gateway.answers import Code
from services.gateway.errors import Problem

_ID = re.compile("[0-9a-fA-F]{16}")

_ZERO = "0" * 16

_LONGEST = 1000
"""Characters of the id of a resource."""


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


def resource_id_of(text: str, where: str) -> str:
    """
    The id of a resource that *text* is, in lower case where it is 16 hex digits.

    Whether any other text is an id, its platform knows: what it does not know is refused as none later (``id_of``).

    Raises:
        Problem: It is none for sure.
    """
    return text if 0 < len(text) <= _LONGEST and not _ID.fullmatch(text) else id_of(text, where)
