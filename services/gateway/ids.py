"""
Ids in requests and answers: 16 hex digits, not all of them zero, or a number.

The id of a resource may have another form, which its platform defines.
"""

import hashlib
import re

from services.gateway.answers import Code
from services.gateway.errors import Problem

_ID = re.compile("[0-9a-fA-F]{16}")

_HEX = re.compile("[0-9a-f]{16}")

_ZERO = "0" * 16

_LONGEST = 1000
"""Most characters of the id of a resource."""


def is_id(text: str) -> bool:
    """Whether *text* is an id, in upper or lower case."""
    return _ID.fullmatch(text) is not None and text != _ZERO


def id_of(text: str, where: str) -> str:
    """
    Check an id and return it in lower case.

    Args:
        text: The text that a client sent.
        where: The member or parameter that has it.

    Raises:
        Problem: *text* is not an id.
    """
    if not is_id(text):
        raise Problem(Code.INVALID, f"{where}: {text[:60]!r} is no id; an id has 16 hex digits, not all of them zero")
    return text.lower()


def resource_id_of(text: str, where: str) -> str:
    """
    Check the id of a resource and return it, in lower case if it has 16 hex digits.

    Only the platform can check an id of another form. If the platform does not find it, the caller refuses it with
    ``id_of``.

    Raises:
        Problem: *text* is empty, too long, or all zeros.
    """
    return text if 0 < len(text) <= _LONGEST and not _ID.fullmatch(text) else id_of(text, where)


def hex_id(resource_id: str) -> str:
    """The id itself if it has 16 hex digits, else 16 hex digits of its SHA-256; empty for no id."""
    if not resource_id or _HEX.fullmatch(resource_id):
        return resource_id
    return hashlib.sha256(resource_id.encode()).hexdigest()[:16]


def number_id(resource_id: str) -> int:
    """The id as an unsigned 64-bit number; 0 for no id."""
    return int(hex_id(resource_id), 16) if resource_id else 0
