"""Fills the ids that an operation found into the summary that its plan was shown with."""

from collections.abc import Mapping
from typing import Any

import orjson

from services.core.model import LABEL, Key
from services.kinds.canonical import canonical_text
from services.kinds.summary import id_number
from services.kinds.table import KINDS

_KINDS_OF_TYPE = {kind.resource_type: kind.name for kind in KINDS.values()}


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
    for name, entries in document.items():
        for entry in entries:
            if name == "labelMappings":
                resource = Key(_KINDS_OF_TYPE[entry["resourceType"]], entry["resourceTemplateMetaName"])
                entry["resourceID"] = id_number(ids, resource)
                entry["labelID"] = id_number(ids, Key(LABEL, entry["labelTemplateMetaName"]))
            elif isinstance(entry, dict):
                _fill(entry, ids)
                for label in entry.get("labelAssociations", ()):
                    _fill(label, ids)
    return canonical_text(document)


def _fill(entry: dict[str, Any], ids: Mapping[Key, str]) -> None:
    if number := id_number(ids, Key(entry["kind"], entry["templateMetaName"])):
        entry["id"] = number
