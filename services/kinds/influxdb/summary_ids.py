"""
Ids and times as the summary entries of several kinds have them (docs/reference/package-format.md, "Summary entries").
"""


def owned_ids(number: int) -> dict[str, int]:
    """``id`` as buckets and variables have it: left out while unknown, as ``orgID`` always is."""
    return {"id": number} if number else {}


def embedded_id(number: int) -> dict[str, str]:
    """``id`` as the objects embedded in summary entries have it: 16 hexadecimal digits, left out while unknown."""
    return {"id": f"{number:016x}"} if number else {}


UNKNOWN_TIMES = dict.fromkeys(("createdAt", "updatedAt"), "0001-01-01T00:00:00Z")
"""The times of embedded objects before they are applied."""
