"""Labels (packages.md 4.1)."""

from collections.abc import Mapping
from typing import Any

from services.core.model import LABEL
from services.kinds.fields import Fields
from services.kinds.kind import Kind, Reading, short_name

_MIN_NAME_BYTES = 2


def _read(fields: Fields, name: str, _env: Mapping[str, Any]) -> Reading:
    spec = {"name": name, "description": fields.text("description"), "color": fields.text("color")}
    return Reading(spec, tuple(short_name(fields, name, _MIN_NAME_BYTES)))


def _summarise(spec: Mapping[str, Any], number: int) -> dict[str, Any]:
    properties = {"color": spec["color"], "description": spec["description"]}
    return {"id": number, "orgID": 0, "name": spec["name"], "properties": properties}


KIND = Kind(
    name=LABEL,
    family="label",
    resource_type="labels",
    summary_key="labels",
    unique_display_name=True,
    min_name_bytes=_MIN_NAME_BYTES,
    read=_read,
    summarise=_summarise,
    labelled=False,
)
