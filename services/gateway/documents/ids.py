"""Ids of resources where a number, or 16 hex digits, are demanded."""

import hashlib
import re

_HEX = re.compile("[0-9a-f]{16}")


def hex_id(resource_id: str) -> str:
    """16 hex digits: the id itself where it is that, else some that follow from it; empty for none."""
    if not resource_id or _HEX.fullmatch(resource_id):
        return resource_id
    return hashlib.sha256(resource_id.encode()).hexdigest()[:16]


def number_id(resource_id: str) -> int:
    """The id as an unsigned number of 64 bits; 0 for none."""
    return int(hex_id(resource_id), 16) if resource_id else 0
