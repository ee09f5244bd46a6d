"""
The properties of charts on platforms and in summaries (docs/reference/package-format.md, "Chart fields", "Nested chart
values").
"""

import math
from typing import Any

import pytest

from services.kinds.influxdb.charts.kinds import CHART_KINDS
from services.kinds.influxdb.charts.properties import properties
from tests.kinds.influxdb.charts.examples import Chart, chart, read


def shown(source: Chart) -> dict[str, Any]:
    """The properties of a chart that has no faults."""
    [kept] = read(source).kept
    return properties(kept)


# The fields of a chart that has every field.
FULL: Chart = {
    "name": " Title ",
    **{"xPos": 1, "yPos": 2, "width": 3, "height": 4},
    **{"note": "a note", "noteOnEmpty": True},
    "queries": [{"query": ' from(bucket: "b")\n'}, {"query": ""}, {}, {"query": "buckets()"}],
    "colors": [
        {"id": "c0", "name": " blue ", "type": "min", "hex": "#00f"},
        {"name": "red", "type": "max", "hex": "#f00", "value": 1.5},
    ],
    "axes": [
        {"name": " x ", "label": "X", "prefix": "a", "suffix": "b", "base": 10, "scale": "log", "domain": [0, "2.5"]},
        {"name": "y", "label": "Y", "prefix": "c", "suffix": "d", "base": "2", "scale": "linear", "domain": ["1e3"]},
        {"name": "x", "label": "second"},
        {"name": "y2", "label": "Y2"},
    ],
    **{"prefix": "<", "suffix": ">", "tickPrefix": "(", "tickSuffix": ")", "decimalPlaces": 2},
    **{"xCol": "_time", "generateXAxisTicks": ["xTickStep"], "xTotalTicks": 5, "xTickStart": 0.5, "xTickStep": 1},
    **{"yCol": "_value", "generateYAxisTicks": ["yTickStep"], "yTotalTicks": 6, "yTickStart": 1.5, "yTickStep": 2},
    **{"timeFormat": "HH:mm", "hoverDimension": "xy"},
    **{"legendColorizeRows": True, "legendHide": True, "legendOpacity": 0.5, "legendOrientationThreshold": 1e8},
    "staticLegend": {
        **{"colorizeRows": True, "heightRatio": 0.2, "opacity": 1, "orientationThreshold": 7.5, "show": True},
        **{"valueAxis": "y", "widthRatio": 1.0},
    },
    **{"shade": True, "position": "Stacked", "geom": "bar", "binSize": 8, "binCount": 30, "fillColumns": ["host"]},
    **{"yLabelColumnSeparator": ", ", "yLabelColumns": ["cpu"], "ySeriesColumns": ["host", 5]},
    **{"upperColumn": "max", "mainColumn": "mean", "lowerColumn": "min"},
    "tableOptions": {"verticalTimeAxis": True, "sortBy": "_time", "wrapping": "wrap", "fixFirstColumn": True},
    "fieldOptions": [
        {"fieldName": "_time", "displayName": "time", "visible": True},
        {"fieldName": "_value"},
    ],
    **{"lat": 51.5, "lon": -0.25, "zoom": 6, "mapStyle": "dark"},
    **{"allowPanAndZoom": True, "detectCoordinateFields": True},
    "geoLayers": [
        {
            **{"layerType": "circleMap", "radiusField": "r", "colorField": "c", "intensityField": "i"},
            "viewColors": [{"type": "min", "name": " a "}],
            **{"radius": 9, "blur": 10, "trackWidth": 4, "speed": 200},
            "radiusDimension": {"name": "r", "label": "R", "domain": [1]},
            "colorDimension": {"prefix": "p", "suffix": "s", "base": "10", "scale": "log"},
            **{"interpolateColors": True, "randomColors": True, "isClustered": True},
        },
        {},
    ],
}

BUILDER = {"buckets": [], "tags": [], "functions": [], "aggregateWindow": {"period": "", "fillValues": False}}
QUERY = {"editMode": "advanced", "name": "", "builderConfig": BUILDER}
NOTE = {"shape": "chronograf-v2", "note": "a note"}
DATA = {
    **NOTE,
    "showNoteWhenEmpty": True,
    "queries": [{"text": 'from(bucket: "b")', **QUERY}, {"text": "buckets()", **QUERY}],
}
COLORS = {
    "colors": [
        {"id": "c0", "name": "blue", "type": "min", "hex": "#00f", "value": 0},
        {"id": "", "name": "red", "type": "max", "hex": "#f00", "value": 1.5},
    ]
}
HEX_COLORS = {"colors": ["#00f", "#f00"]}
X = {"xAxisLabel": "X", "xDomain": [0, 2.5]}
X_AND_Y = {**X, "xPrefix": "a", "xSuffix": "b", "yAxisLabel": "Y", "yDomain": [1000], "yPrefix": "c", "ySuffix": "d"}
UNITS = {"prefix": "", "suffix": "", "base": "", "scale": ""}
AXES = {
    "axes": {
        "x": {"bounds": [], "label": "second", **UNITS},
        "y": {"bounds": [], "label": "Y", "prefix": "c", "suffix": "d", "base": "2", "scale": "linear"},
        "y2": {"bounds": [], "label": "Y2", **UNITS},
    }
}
VALUE = {"prefix": "<", "suffix": ">", "decimalPlaces": {"isEnforced": True, "digits": 2}}
TICKS = {"tickPrefix": "(", "tickSuffix": ")"}
X_TICKS = {"generateXAxisTicks": ["xTickStep"], "xTotalTicks": 5, "xTickStart": 0.5, "xTickStep": 1}
Y_TICKS = {"generateYAxisTicks": ["yTickStep"], "yTotalTicks": 6, "yTickStart": 1.5, "yTickStep": 2}
X_COLUMN = {"xColumn": "_time", **X_TICKS}
COLUMNS = {**X_COLUMN, "yColumn": "_value", **Y_TICKS}
LEGEND = {
    **{"legendColorizeRows": True, "legendHide": True},
    **{"legendOpacity": 0.5, "legendOrientationThreshold": 100_000_000},
}
LINES = {
    **DATA,
    **COLORS,
    **AXES,
    **COLUMNS,
    **LEGEND,
    "hoverDimension": "xy",
    "staticLegend": {
        **{"colorizeRows": True, "heightRatio": 0.2, "opacity": 1, "orientationThreshold": 7, "show": True},
        **{"valueAxis": "y", "widthRatio": 1},
    },
}

EXPECTED = {
    "gauge": {"type": "gauge", **DATA, **COLORS, **VALUE, **TICKS},
    "geo": {
        **{"type": "geo", **DATA, **COLORS, "center": {"lat": 51.5, "lon": -0.25}, "zoom": 6, "mapStyle": "dark"},
        **{"allowPanAndZoom": True, "detectCoordinateFields": True},
        "layers": [
            {
                **{"type": "circleMap", "radiusField": "r", "colorField": "c", "intensityField": "i"},
                "colors": [{"id": "", "type": "min", "hex": "", "name": "a", "value": 0}],
                **{"radius": 9, "blur": 10, "trackWidth": 4, "speed": 200},
                "radiusDimension": {"bounds": None, "label": "R", **UNITS},
                "colorDimension": {
                    **{"bounds": None, "label": "", "prefix": "p", "suffix": "s", "base": "10", "scale": "log"}
                },
                "intensityDimension": {"bounds": None, "label": "", **UNITS},
                **{"interpolateColors": True, "randomColors": True, "isClustered": True},
            },
            {
                **{"type": "", "radiusField": "", "colorField": "", "intensityField": "", "colors": None},
                **{"radius": 0, "blur": 0, "trackWidth": 0, "speed": 0},
                "radiusDimension": {"bounds": None, "label": "", **UNITS},
                "colorDimension": {"bounds": None, "label": "", **UNITS},
                "intensityDimension": {"bounds": None, "label": "", **UNITS},
                **{"interpolateColors": False, "randomColors": False, "isClustered": False},
            },
        ],
    },
    "heatmap": {
        **{"type": "heatmap", **DATA, **HEX_COLORS, **X_AND_Y, **COLUMNS, **LEGEND},
        **{"timeFormat": "HH:mm", "binSize": 8},
    },
    "histogram": {
        **{"type": "histogram", **DATA, **COLORS, **X, "xColumn": "_time", **LEGEND},
        **{"position": "Stacked", "binCount": 30, "fillColumns": ["host"]},
    },
    "markdown": {"type": "markdown", **NOTE},
    "mosaic": {
        **{"type": "mosaic", **DATA, **HEX_COLORS, **X_AND_Y, **X_COLUMN, **LEGEND},
        **{"timeFormat": "HH:mm", "hoverDimension": "xy", "fillColumns": None},
        **{"yLabelColumnSeparator": ", ", "yLabelColumns": ["cpu"], "ySeriesColumns": ["host", "5"]},
    },
    "scatter": {
        **{"type": "scatter", **DATA, **HEX_COLORS, **X_AND_Y, **COLUMNS, **LEGEND},
        **{"timeFormat": "HH:mm", "fillColumns": None, "symbolColumns": None},
    },
    "single_stat": {"type": "single-stat", **DATA, **COLORS, **VALUE, **TICKS},
    "single_stat_plus_line": {
        **{"type": "line-plus-single-stat", **LINES, **VALUE},
        **{"timeFormat": "", "shadeBelow": True, "position": "Stacked"},
    },
    "table": {
        **{"type": "table", **DATA, **COLORS, "timeFormat": "HH:mm", "decimalPlaces": VALUE["decimalPlaces"]},
        "tableOptions": {
            **{"verticalTimeAxis": True, "wrapping": "wrap", "fixFirstColumn": True},
            "sortBy": {"internalName": "_time", "displayName": "", "visible": False},
        },
        "fieldOptions": [
            {"internalName": "_time", "displayName": "time", "visible": True},
            {"internalName": "_value", "displayName": "", "visible": False},
        ],
    },
    "xy": {
        **{"type": "xy", **LINES, "timeFormat": "HH:mm"},
        **{"shadeBelow": True, "position": "Stacked", "geom": "bar"},
    },
    "band": {
        **{"type": "band", **LINES, "timeFormat": "HH:mm", "geom": "bar"},
        **{"upperColumn": "max", "mainColumn": "mean", "lowerColumn": "min"},
    },
}


@pytest.mark.parametrize("kind", CHART_KINDS)
def test_each_kind_shows_its_fields_and_no_others(kind: str) -> None:
    assert shown({"kind": kind, **FULL}) == EXPECTED[kind]


EMPTY_DATA = {"shape": "chronograf-v2", "note": "", "showNoteWhenEmpty": False, "queries": None, "colors": None}
EMPTY_UNITS = {"xPrefix": "", "xSuffix": "", "yPrefix": "", "ySuffix": ""}
EMPTY_LABELS = {"xAxisLabel": "", "yAxisLabel": "", **EMPTY_UNITS}
EMPTY_VALUE = {"prefix": "", "suffix": "", "decimalPlaces": {"isEnforced": False, "digits": 0}}
EMPTY_TICKS = {"tickPrefix": "", "tickSuffix": ""}
EMPTY_X_COLUMN = {"xColumn": "", "generateXAxisTicks": None, "xTotalTicks": 0, "xTickStart": 0, "xTickStep": 0}
EMPTY_COLUMNS = {
    **EMPTY_X_COLUMN,
    **{"yColumn": "", "generateYAxisTicks": None, "yTotalTicks": 0, "yTickStart": 0, "yTickStep": 0},
}
EMPTY_LEGEND = dict.fromkeys(("legendColorizeRows", "legendHide"), False) | dict.fromkeys(
    ("legendOpacity", "legendOrientationThreshold"), 0
)
EMPTY_LINES = {
    **{**EMPTY_DATA, **EMPTY_COLUMNS, **EMPTY_LEGEND},
    **{"hoverDimension": "", "timeFormat": "", "staticLegend": {}},
}
EMPTY_X_AND_Y = {name: {"bounds": [], "label": "", **UNITS} for name in ("x", "y")}

SMALLEST_SHOWN: dict[str, dict[str, Any]] = {
    "gauge": {
        **{"type": "gauge", **EMPTY_DATA, **EMPTY_VALUE, **EMPTY_TICKS},
        "colors": [
            {"id": "", "name": "", "type": "min", "hex": "#00f", "value": 0},
            {"id": "", "name": "", "type": "max", "hex": "#f00", "value": 0},
        ],
    },
    "geo": {
        **{"type": "geo", **EMPTY_DATA, "center": {"lat": 0, "lon": 0}, "zoom": 0, "mapStyle": "", "layers": None},
        **{"allowPanAndZoom": False, "detectCoordinateFields": False},
    },
    "heatmap": {
        **{"type": "heatmap", **EMPTY_DATA, "colors": [], **EMPTY_LABELS, **EMPTY_COLUMNS, **EMPTY_LEGEND},
        **{"timeFormat": "", "binSize": 0},
    },
    "histogram": {
        **{"type": "histogram", **EMPTY_DATA, "xAxisLabel": "", "xColumn": "", **EMPTY_LEGEND},
        **{"position": "", "binCount": 0, "fillColumns": None},
    },
    "markdown": {"shape": "chronograf-v2", "type": "markdown", "note": ""},
    "mosaic": {
        **{"type": "mosaic", **EMPTY_DATA, "colors": [], **EMPTY_LABELS, **EMPTY_X_COLUMN, **EMPTY_LEGEND},
        **{"timeFormat": "", "hoverDimension": "", "fillColumns": None},
        **{"yLabelColumnSeparator": "", "yLabelColumns": None, "ySeriesColumns": None},
    },
    "scatter": {
        **{"type": "scatter", **EMPTY_DATA, "colors": [], **EMPTY_LABELS, **EMPTY_COLUMNS, **EMPTY_LEGEND},
        **{"timeFormat": "", "fillColumns": None, "symbolColumns": None},
    },
    "single_stat": {"type": "single-stat", **EMPTY_DATA, **EMPTY_VALUE, **EMPTY_TICKS},
    "single_stat_plus_line": {
        **{"type": "line-plus-single-stat", **EMPTY_LINES, **EMPTY_VALUE, "axes": EMPTY_X_AND_Y},
        **{"shadeBelow": False, "position": ""},
    },
    "table": {
        **{"type": "table", **EMPTY_DATA, "timeFormat": "", "decimalPlaces": EMPTY_VALUE["decimalPlaces"]},
        "tableOptions": {
            **{"verticalTimeAxis": False, "wrapping": "", "fixFirstColumn": False},
            "sortBy": {"internalName": "", "displayName": "", "visible": False},
        },
        "fieldOptions": [],
    },
    "xy": {
        **{"type": "xy", **EMPTY_LINES, "axes": EMPTY_X_AND_Y},
        **{"shadeBelow": False, "position": "", "geom": "line"},
    },
    "band": {
        **{"type": "band", **EMPTY_LINES, "axes": {}, "geom": ""},
        **{"upperColumn": "", "mainColumn": "", "lowerColumn": ""},
    },
}

EMPTY_LISTS: Chart = {
    key: []
    for key in ("queries", "generateXAxisTicks", "generateYAxisTicks", "fillColumns", "yLabelColumns", "ySeriesColumns")
} | {"fieldOptions": [], "geoLayers": []}


@pytest.mark.parametrize("kind", CHART_KINDS)
@pytest.mark.parametrize("more", [{}, EMPTY_LISTS, dict.fromkeys(EMPTY_LISTS)], ids=["absent", "empty", "null"])
def test_each_kind_shows_empty_fields_in_its_own_way(kind: str, more: Chart) -> None:
    assert shown(chart(kind, **more)) == SMALLEST_SHOWN[kind]


@pytest.mark.parametrize(
    ("written", "digits"),
    [(0, 0), (2, 2), (2.9, 2), (-1, -1), (None, None), ("2", None), (True, None), (2**63, None), (math.inf, 0)],
)
def test_decimal_places_are_enforced_when_they_are_a_number(written: Any, digits: int | None) -> None:
    enforced = {"isEnforced": digits is not None, "digits": digits or 0}
    assert shown(chart("single_stat", decimalPlaces=written))["decimalPlaces"] == enforced


def test_a_static_legend_shows_no_zero_values() -> None:
    legend = {"opacity": 0, "colorizeRows": False, "valueAxis": "", "orientationThreshold": 0.5, "widthRatio": 0.5}
    assert shown(chart("xy", staticLegend=legend))["staticLegend"] == {"widthRatio": 0.5}


def test_numbers_serve_as_texts() -> None:
    colors = [{"type": "min", "hex": 123}, {"type": "max", "hex": 4.50}]
    assert [color["hex"] for color in shown(chart("gauge", colors=colors))["colors"]] == ["123", "4.5"]
