"""Dashboards (packages.md 5), their charts kept as they are written."""

from collections.abc import Mapping
from typing import Any

from services.kinds.canonical import plain
from services.kinds.fields import Fields
from services.kinds.kind import Kind, Reading, short_name

_MIN_NAME_BYTES = 2


def _read(fields: Fields, name: str, _env: Mapping[str, Any]) -> Reading:
    spec = {
        "name": name,
        "description": fields.text("description"),
        "charts": [plain(chart.value) for chart in fields.mappings("charts")],
    }
    return Reading(spec, tuple(short_name(fields, name, _MIN_NAME_BYTES)))


def _summarise(spec: Mapping[str, Any], number: int) -> dict[str, Any]:
    return {
        "id": number,
        "orgID": 0,
        "name": spec["name"],
        "description": spec["description"],
        "charts": spec["charts"] or None,
    }


KIND = Kind(
    name="Dashboard",
    family="dashboard",
    resource_type="dashboards",
    summary_key="dashboards",
    unique_display_name=False,
    min_name_bytes=_MIN_NAME_BYTES,
    read=_read,
    summarise=_summarise,
    references_by_key=True,
)
