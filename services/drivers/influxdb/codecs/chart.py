"""The charts of dashboards, which the server stores as cells with views."""

from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from services.drivers.influxdb.codecs.codec import Body, Refused
from services.kinds.format.fields import Fields, text_of
from services.kinds.format.floats import parse_float
from services.kinds.format.kind import Scope
from services.kinds.influxdb.charts.kinds import CHART_KINDS, ChartKind
from services.kinds.influxdb.charts.properties import properties
from services.kinds.influxdb.charts.reading import read_charts

Chart = Mapping[str, Any]

_KINDS = {kind.type: kind for kind in CHART_KINDS.values()}

_LAYOUT = {"xPos": "x", "yPos": "y", "width": "w", "height": "h"}
_SHORT = (*_LAYOUT, "decimalPlaces", "binSize")
_SHORT_IN_LAYERS = ("radius", "blur", "trackWidth", "speed")
"""Integers that the server stores in 32 bits; for a larger one it would store an empty view."""

_PROPERTY_NAMES = {"noteOnEmpty": "showNoteWhenEmpty", "xCol": "xColumn", "yCol": "yColumn", "shade": "shadeBelow"}
"""Fields of charts whose property of the view has another name."""


def normal_chart(chart: Chart) -> dict[str, Any] | None:
    """*chart* as the parser would normalise it; None: the parser would refuse it."""
    fields = Fields({"charts": [dict(chart)]}, "spec", ("spec",))
    kept = read_charts(fields, Scope("chart", "chart")).kept
    # JSON turns tuples into lists, so that equal charts compare equal.
    return orjson.loads(orjson.dumps(kept[0])) if kept else None


def refuse_chart(chart: Chart, position: int) -> None:
    """
    Refuse a chart that the server would store as an empty view.

    Raises:
        Refused: The server would.
    """
    short = [(key, chart.get(key)) for key in _SHORT]
    for layer in chart.get("geoLayers", ()):
        short += [(f"geoLayers.{key}", layer.get(key)) for key in _SHORT_IN_LAYERS]
    for key, number in short:
        if number is not None and not -(2**31) <= number < 2**31:
            raise Refused(f"charts[{position}].{key} must fit into 32 bits; found {number}")
    if CHART_KINDS[chart["kind"]].flat_axes:
        for axis in chart["axes"]:
            if any(isinstance(number, str) for number in axis["domain"]):
                raise Refused(
                    f"the domain of axis {axis['name']!r} of charts[{position}] must have finite numbers;"
                    f" found {axis['domain']}"
                )


def written_cell(chart: Chart) -> dict[str, Any]:
    """The cell of a chart, in the nested form in which the server takes cell and view in one request."""
    shown = properties(chart)
    if "axes" in shown:
        bounds = {axis["name"]: [_bound(number) for number in axis["domain"]] for axis in chart["axes"]}
        shown["axes"] = {name: {**axis, "bounds": bounds[name]} for name, axis in shown["axes"].items()}
    place = {key: chart[field] for field, key in _LAYOUT.items()}
    return {"name": chart["name"], **place, "properties": {"properties": shown}}


def read_cell(cell: Body) -> dict[str, Any] | None:
    """The chart of a cell; None for a cell that packages cannot describe."""
    shown = cell.get("properties") or {}
    kind = _KINDS.get(shown.get("type", ""))
    if kind is None:
        return None
    place = {field: cell.get(key) or 0 for field, key in _LAYOUT.items()}
    return normal_chart({**_fields(kind, shown), "kind": kind.name, "name": cell.get("name") or "", **place})


def _fields(kind: ChartKind, shown: Mapping[str, Any]) -> dict[str, Any]:
    """The properties of a view as the fields of its chart."""
    fields = {key: shown.get(_PROPERTY_NAMES.get(key, key)) for key in kind.fields.fields}
    fields["queries"] = [{"query": query.get("text") or ""} for query in shown.get("queries") or ()]
    if "colors" in fields:
        colors = shown.get("colors") or ()
        fields["colors"] = [{"hex": color} for color in colors] if kind.hex_colors else list(colors)
    if kind.flat_axes:
        fields["axes"] = [_flat_axis(name, shown) for name in kind.flat_axes]
    elif "axes" in fields:
        fields["axes"] = [_axis(name, axis) for name, axis in sorted((shown.get("axes") or {}).items())]
    if "decimalPlaces" in fields:
        places = shown.get("decimalPlaces") or {}
        fields["decimalPlaces"] = places.get("digits") or 0 if places.get("isEnforced") else None
    for key in ("lat", "lon"):
        if key in fields:
            fields[key] = (shown.get("center") or {}).get(key)
    if "tableOptions" in fields:
        options = shown.get("tableOptions") or {}
        fields["tableOptions"] = {**options, "sortBy": (options.get("sortBy") or {}).get("internalName") or ""}
    if "fieldOptions" in fields:
        fields["fieldOptions"] = [
            {**option, "fieldName": option.get("internalName")} for option in shown.get("fieldOptions") or ()
        ]
    if "geoLayers" in fields:
        fields["geoLayers"] = [
            {**layer, "layerType": layer.get("type"), "viewColors": layer.get("colors")}
            for layer in shown.get("layers") or ()
        ]
    return {key: value for key, value in fields.items() if value is not None}


def _axis(name: str, axis: Mapping[str, Any]) -> dict[str, Any]:
    return {**axis, "name": name, "domain": _numbers(axis.get("bounds") or ())}


def _flat_axis(name: str, shown: Mapping[str, Any]) -> dict[str, Any]:
    axis = {key: shown.get(f"{name}{key.capitalize()}") or "" for key in ("prefix", "suffix")}
    return {**axis, "name": name, "label": shown.get(f"{name}AxisLabel") or "", "domain": shown.get(f"{name}Domain")}


def _numbers(bounds: Iterable[str]) -> list[str]:
    """The bounds that are numbers; the web interface writes empty texts for missing ones."""
    return [bound for bound in bounds if parse_float(bound) is not None]


def _bound(number: float | str) -> str:
    return text_of(number) or "0"
