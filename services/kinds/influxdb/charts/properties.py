"""
The properties of a chart on platforms and in summaries (docs/reference/package-format.md, "Chart fields", "Nested chart
values").
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from services.kinds.influxdb.builder import builder_config
from services.kinds.influxdb.charts.kinds import CHART_KINDS, LAYOUT

_OUTSIDE = frozenset(("kind", "name", *LAYOUT))
"""The fields of a chart that are no properties."""

_NULL_WHEN_EMPTY = frozenset(
    ("generateXAxisTicks", "generateYAxisTicks", "fillColumns", "yLabelColumns", "ySeriesColumns")
)

_NAMES = {"noteOnEmpty": "showNoteWhenEmpty", "xCol": "xColumn", "yCol": "yColumn", "shade": "shadeBelow"}
"""Names of properties that differ from the name of their field."""


def properties(chart: Mapping[str, Any]) -> dict[str, Any]:
    """
    The properties of a chart.

    Args:
        chart: A chart as the spec of a dashboard holds it.
    """
    kind = CHART_KINDS[chart["kind"]]
    shown: dict[str, Any] = {"shape": "chronograf-v2", "type": kind.type, **kind.fixed}
    for key, value in chart.items():
        match key:
            case _ if key in _OUTSIDE:
                pass
            case "queries":
                shown["queries"] = [_query(query["query"]) for query in value] or None
            case "colors" if kind.hex_colors:
                shown["colors"] = [color["hex"] for color in value]
            case "colors":
                shown["colors"] = _or_null(value)
            case "axes" if kind.flat_axes:
                shown |= _flat(value)
            case "axes":
                # Where axes are a map, the domain is lost (docs/reference/package-format.md, "Oddities").
                shown["axes"] = {axis["name"]: {"bounds": [], **_axis(axis)} for axis in value}
            case "decimalPlaces":
                shown["decimalPlaces"] = {"isEnforced": value is not None, "digits": value or 0}
            case "staticLegend":
                shown["staticLegend"] = {name: item for name, item in value.items() if item}
            case "tableOptions":
                shown["tableOptions"] = {**value, "sortBy": _column(value["sortBy"], "", visible=False)}
            case "fieldOptions":
                shown["fieldOptions"] = [
                    _column(option["fieldName"], option["displayName"], option["visible"]) for option in value
                ]
            case "lat" | "lon":
                shown.setdefault("center", {})[key] = value
            case "geoLayers":
                shown["layers"] = [_layer(layer) for layer in value] or None
            case _ if key in _NULL_WHEN_EMPTY:
                shown[key] = _or_null(value)
            case _:
                shown[_NAMES.get(key, key)] = value
    return shown


def _query(text: str) -> dict[str, Any]:
    return {"text": text, "editMode": "advanced", "name": "", "builderConfig": builder_config()}


def _or_null(items: Sequence[Any]) -> list[Any] | None:
    return list(items) or None


def _axis(axis: Mapping[str, str]) -> dict[str, str]:
    return {key: axis[key] for key in ("label", "prefix", "suffix", "base", "scale")}


def _flat(axes: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    shown = {}
    for axis in axes:
        name = axis["name"]
        shown[f"{name}AxisLabel"] = axis["label"]
        shown |= {f"{name}{key.capitalize()}": axis[key] for key in ("prefix", "suffix") if key in axis}
        if axis["domain"]:
            shown[f"{name}Domain"] = axis["domain"]
    return shown


def _column(name: str, title: str, visible: bool) -> dict[str, Any]:
    return {"internalName": name, "displayName": title, "visible": visible}


def _layer(layer: Mapping[str, Any]) -> dict[str, Any]:
    dimensions = ("radiusDimension", "colorDimension", "intensityDimension")
    rest = {key: value for key, value in layer.items() if key not in {"layerType", "viewColors"}}
    return {
        **rest,
        "type": layer["layerType"],
        "colors": _or_null(layer["viewColors"]),
        **{key: {"bounds": None, **_axis(layer[key])} for key in dimensions},
    }
