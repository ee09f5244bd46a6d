"""Fills the ids that an operation found into the summary that its plan was shown with."""

from collections.abc import Mapping
from typing import Any

import orjson

from services.core.model import LABEL, Key
from services.kinds.canonical import canonical_text
from services.kinds.kind import embedded_id
from services.kinds.summary import id_numbers
from services.kinds.table import KINDS

_EMBEDDED = ("check", "notificationEndpoint", "telegrafConfig")
"""The objects inside entries that carry the id instead of the entry (packages.md 10.2)."""


def with_ids(summary: str, ids: Mapping[Key, str]) -> str:
    """
    Complete a summary document.

    Args:
        summary: The document as JSON text.
        ids: Hexadecimal ids of all resources that exist now.

    Returns:
        The document as canonical JSON text.
    """
    document = orjson.loads(summary)
    numbers = id_numbers(ids)
    by_type = {(KINDS[key.kind].resource_type, key.name): key for key in ids}
    for name, entries in document.items():
        for entry in entries:
            if name == "labelMappings":
                resource = by_type.get((entry["resourceType"], entry["resourceTemplateMetaName"]))
                entry["resourceID"] = numbers.get(resource, 0) if resource else 0
                entry["labelID"] = numbers.get((LABEL, entry["labelTemplateMetaName"]), 0)
            elif isinstance(entry, dict):
                _fill(entry, numbers)
                for label in entry.get("labelAssociations", ()):
                    _fill(label, numbers)
                if "endpointID" in entry:
                    used = by_type.get(("notificationEndpoints", entry["endpointTemplateMetaName"]))
                    # One that is skipped may belong to no stack: what the plan knew of it still holds.
                    entry["endpointID"] = numbers.get(used, 0) if used else entry["endpointID"]
    return canonical_text(document)


def _fill(entry: dict[str, Any], numbers: Mapping[tuple[str, str], int]) -> None:
    if not (number := numbers.get((entry["kind"], entry["templateMetaName"]))):
        return
    for embedded in _EMBEDDED:
        if embedded in entry:
            entry[embedded] |= embedded_id(number)
            return
    entry["id"] = number
