"""Specs and charts of every kind, minimal and complete, that every platform holds unchanged."""

import json
from typing import Any

from services.kinds.format.canonical import canonical_text
from services.kinds.format.fields import Fields
from services.kinds.format.kind import Scope
from services.kinds.influxdb.charts.kinds import CHART_KINDS
from services.kinds.registry import KINDS
from tests.kinds.influxdb.charts.examples import SMALLEST

QUERY = 'from(bucket: "b")\n  |> range(start: -1h)\n  |> filter(fn: (r) => r._field == "usage")'

_SCRIPT = """\
// option task = {name: "no"}
import "strings" // import "no"

option location = {zone: "x"}

from(bucket: "b")
  |> filter(fn: (r) => r.text =~ /option task = \\{/ and r.other == "a \\"${r.x}\\"")"""


def _secret(key: str) -> dict[str, Any]:
    return {"secretRef": {"key": key}}


_CHECK_SMALL = {"every": "1m", "query": QUERY, "statusMessageTemplate": "m"}
_CHECK_FULL = {
    "every": "1h30m",
    "offset": "90s",
    "query": 'import "strings"\n\n' + QUERY.replace("usage", "ü ☂"),
    "status": "inactive",
    "statusMessageTemplate": '${ r._check_name } is "${ r._level }"\n\\ ☂',
    "tags": [{"key": "z_1", "value": 'a "b" \\ ☂'}, {"key": "a", "value": " "}],
}
_RULE_SMALL = {"every": "1m", "messageTemplate": "m", "statusRules": [{"currentLevel": "ANY"}]}

SMALL: dict[str, dict[str, Any]] = {
    "Label": {},
    "Bucket": {},
    "Variable": {"type": "constant", "values": ["a"]},
    "CheckThreshold": {**_CHECK_SMALL, "thresholds": [{"type": "greater", "value": 0, "level": "OK"}]},
    "CheckDeadman": {**_CHECK_SMALL, "level": "OK"},
    "NotificationEndpointHTTP": {"url": "http://x", "method": "GET", "type": "none"},
    "NotificationEndpointSlack": {"url": "http://x"},
    "NotificationEndpointPagerDuty": {"url": "", "routingKey": _secret("k")},
    "NotificationRule": _RULE_SMALL,
    "Task": {"every": "1h", "query": "x()"},
    "Telegraf": {"config": "[agent]"},
    "Dashboard": {},
}
"""Of each kind, the required fields."""

FULL: dict[str, dict[str, Any]] = {
    "Label": {"color": "#00C9FF"},
    "Bucket": {"retentionRules": [{"type": "expire", "everySeconds": 86_400}]},
    "Variable": {"type": "map", "values": {"b": "1 ☂", "a": ""}, "selected": ["b", "a"]},
    "CheckThreshold": {
        **_CHECK_FULL,
        "thresholds": [
            {"type": "lesser", "value": -2.5, "level": "CRIT", "allValues": True},
            {"type": "greater", "value": 1e21, "level": "WARN"},
            {"type": "inside_range", "min": 0, "max": 0.1, "level": "INFO", "allValues": True},
            {"type": "outside_range", "min": -1, "max": 0, "level": "OK"},
        ],
    },
    "CheckDeadman": {**_CHECK_FULL, "level": "CRIT", "staleTime": "10m", "timeSince": "1m30s", "reportZero": True},
    "NotificationEndpointHTTP": {
        "url": "https://example.com/a?b=c",
        "status": "inactive",
        "method": "PUT",
        "type": "basic",
        "token": _secret("a token"),
        "username": _secret("user"),
        "password": _secret("pass/word ☂"),
    },
    "NotificationEndpointSlack": {"url": "https://example.com/a", "status": "inactive", "token": _secret("t")},
    "NotificationEndpointPagerDuty": {
        "url": "https://example.com",
        "status": "inactive",
        "routingKey": _secret("another"),
    },
    "NotificationRule": {
        "every": "2h",
        "offset": "1m",
        "status": "inactive",
        "channel": "#alerts",
        "messageTemplate": '"${ r._message }"\n☂',
        "statusRules": [
            {"currentLevel": "CRIT", "previousLevel": "OK"},
            {"currentLevel": "WARN"},
            {"currentLevel": "CRIT"},
        ],
        "tagRules": [
            {"key": "b", "value": 'x "y"', "operator": "notequal"},
            {"key": "a", "value": "r.*", "operator": "equalregex"},
            {"key": "a", "value": "r", "operator": "equal"},
        ],
    },
    "Task": {"cron": "0 8 * * 1", "offset": "5m", "query": _SCRIPT, "status": "inactive"},
    "Telegraf": {"config": "# ☂\n[[outputs.influxdb_v2]]\n  bucket = 'raw'\r\n\n[[not toml\n"},
    "Dashboard": {},
}
"""Of each kind, all fields except names of schemas, the name of an endpoint, and charts."""

_COLORS = [
    {"id": "1", "name": "laser", "type": "min", "hex": "#00C9FF", "value": 0},
    {"id": "2", "name": "☂", "type": "max", "hex": "#f00", "value": -99.5},
]
_UNITS = {"label": "unit ☂", "prefix": "<", "suffix": ">"}
_DIMENSION = {**_UNITS, "base": "2", "scale": "log"}
_LAYER = {
    "radiusField": "a",
    "colorField": "b",
    "intensityField": "c",
    "viewColors": _COLORS,
    "radius": 3,
    "blur": 4,
    "radiusDimension": _DIMENSION,
    "colorDimension": {},
    "intensityDimension": _DIMENSION,
    "interpolateColors": True,
    "trackWidth": 5,
    "speed": 6,
    "randomColors": True,
    "isClustered": True,
}
_VALUES: dict[str, Any] = {
    "name": "chart ☂",
    "xPos": 3,
    "yPos": 40,
    "width": 5,
    "height": 6,
    "note": "*note*\n☂",
    "noteOnEmpty": True,
    "queries": [{"query": QUERY}, {"query": "buckets()"}],
    "colors": _COLORS,
    "axes": [
        {"name": "x", **_DIMENSION, "domain": [0, 100.5]},
        {"name": "y", "label": "y", "base": "10", "domain": [-1e21, 1e-7]},
    ],
    "prefix": " p",
    "suffix": "s ",
    "tickPrefix": "tp",
    "tickSuffix": "ts",
    "decimalPlaces": 3,
    "xCol": "_time",
    "yCol": "_value",
    "generateXAxisTicks": ["xTotalTicks", "xTickStart"],
    "xTotalTicks": 7,
    "xTickStart": -0.5,
    "xTickStep": 1e9,
    "generateYAxisTicks": ["yTickStep"],
    "yTotalTicks": 8,
    "yTickStart": 2**53,
    "yTickStep": 0.25,
    "timeFormat": "YYYY-MM-DD",
    "hoverDimension": "xy",
    "legendColorizeRows": True,
    "legendHide": True,
    "legendOpacity": 0.5,
    "legendOrientationThreshold": 100_000_000,
    "staticLegend": {
        "show": True,
        "colorizeRows": True,
        "heightRatio": 0.25,
        "widthRatio": 0.75,
        "opacity": 1,
        "orientationThreshold": 9,
        "valueAxis": "y",
    },
    "shade": True,
    "position": "stacked",
    "geom": "step",
    "binSize": 12,
    "binCount": 30,
    "fillColumns": ["a", "b"],
    "yLabelColumnSeparator": ", ",
    "yLabelColumns": ["c", "d"],
    "ySeriesColumns": ["e"],
    "upperColumn": "max",
    "mainColumn": "mean",
    "lowerColumn": "min",
    "tableOptions": {"verticalTimeAxis": True, "fixFirstColumn": True, "sortBy": "_time", "wrapping": "wrap"},
    "fieldOptions": [{"fieldName": "_time", "displayName": "time", "visible": True}, {"fieldName": "b"}],
    "lat": 51.5,
    "lon": -0.125,
    "zoom": 6,
    "mapStyle": "dark",
    "allowPanAndZoom": True,
    "detectCoordinateFields": True,
    "geoLayers": [{"layerType": type_, **_LAYER} for type_ in ("heatmap", "circleMap", "pointMap", "trackMap")],
}
"""For every field of charts, a value that is not its default."""


def small_chart(kind: str) -> dict[str, Any]:
    """A chart with the required fields of its kind."""
    return {"kind": kind, **SMALLEST[kind]}


def full_chart(kind: str) -> dict[str, Any]:
    """A chart with all fields of its kind."""
    definition = CHART_KINDS[kind]
    keys = [*definition.fields.fields, *(["queries"] if definition.has_queries else [])]
    return {"kind": kind, **{key: _VALUES[key] for key in keys}}


def normal(kind: str, name: str, content: dict[str, Any]) -> dict[str, Any]:
    """The normalised spec of *content*; that of a rule leaves out its endpoint."""
    read = KINDS[kind].read(Fields(content, "spec", ("spec",)), Scope(name, name))
    spec: dict[str, Any] = json.loads(canonical_text(read.spec))
    return spec | ({"endpointName": ""} if kind == "NotificationRule" else {})


def small(kind: str, name: str = "it") -> dict[str, Any]:
    """The minimal spec of a kind."""
    return normal(kind, name, SMALL[kind])


def full(kind: str, name: str = "it") -> dict[str, Any]:
    """A spec of a kind with all its fields."""
    charts = {"charts": [full_chart(each) for each in CHART_KINDS]} if kind == "Dashboard" else {}
    return normal(kind, name, {**FULL[kind], **charts, "description": 'what it is ☂\n"for"'})
