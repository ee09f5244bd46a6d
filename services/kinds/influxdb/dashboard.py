"""Dashboards (docs/reference/package-format.md, "Dashboards")."""

from collections.abc import Mapping
from typing import Any

from services.kinds.format.field_table import DESCRIPTION, Field, Mappings, Table
from services.kinds.format.fields import Fields
from services.kinds.format.kind import Kind, ReadResult, Scope, short_name
from services.kinds.influxdb.charts.kinds import LAYOUT
from services.kinds.influxdb.charts.properties import properties
from services.kinds.influxdb.charts.reading import read_charts
from services.kinds.influxdb.charts.table import CHART
from services.kinds.influxdb.charts.writing import written_chart

_MIN_NAME_BYTES = 2


def _read(fields: Fields, scope: Scope) -> ReadResult:
    charts = read_charts(fields, scope)
    spec = {"name": scope.display_name, "description": fields.text("description"), "charts": charts.kept}
    faults = (*charts.faults, *short_name(fields, scope.display_name, _MIN_NAME_BYTES))
    return ReadResult(spec, faults, charts.references, charts.written)


def _write(spec: Mapping[str, Any]) -> dict[str, Any]:
    charts = spec.get("charts")
    written = [written_chart(chart) for chart in charts if isinstance(chart, dict)] if isinstance(charts, list) else []
    return _FIELDS.written({**spec, "charts": []}) | ({"charts": written} if written else {})


def _summarise(spec: Mapping[str, Any], number: int) -> dict[str, Any]:
    charts = [{"properties": properties(chart), **{key: chart[key] for key in LAYOUT}} for chart in spec["charts"]]
    return {
        "id": number,
        "orgID": 0,
        "name": spec["name"],
        "description": spec["description"],
        "charts": charts or None,
    }


_FIELDS = Table(DESCRIPTION, Field("charts", Mappings(CHART), "The charts, each with its place on the page."))

KIND = Kind(
    name="Dashboard",
    family="dashboard",
    resource_type="dashboards",
    summary_key="dashboards",
    unique_display_name=False,
    min_name_bytes=_MIN_NAME_BYTES,
    about="A page of charts.",
    fields=_FIELDS,
    read=_read,
    summarise=_summarise,
    references_by_key=True,
    write=_write,
)
