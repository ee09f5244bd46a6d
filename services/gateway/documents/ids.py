"""Ids of resources in the forms that InfluxDB's clients need: 16 hex digits, or a number."""

import hashlib
import re

_HEX = re.compile("[0-9a-f]{16}")


def hex_id(resource_id: str) -> str:
    """The id itself if it has 16 hex digits, else 16 hex digits of its SHA-256; empty for no id."""
    if not resource_id or _HEX.fullmatch(resource_id):
        return resource_id
    return hashlib.sha256(resource_id.encode()).hexdigest()[:16]


def number_id(resource_id: str) -> int:
    """The id as an unsigned 64-bit number; 0 for no id."""
    return int(hex_id(resource_id), 16) if resource_id else 0
