"""Ids and times in the summary entries of several kinds (docs/reference/package-format.md, "Summary entries")."""


def owned_ids(number: int) -> dict[str, int]:
    """``id`` of buckets and variables: left out while unknown, as ``orgID`` always is."""
    return {"id": number} if number else {}


def embedded_id(number: int) -> dict[str, str]:
    """``id`` of objects embedded in summary entries: 16 hexadecimal digits, left out while unknown."""
    return {"id": f"{number:016x}"} if number else {}


UNKNOWN_TIMES = dict.fromkeys(("createdAt", "updatedAt"), "0001-01-01T00:00:00Z")
"""The times of embedded objects before they are applied."""
