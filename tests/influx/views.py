"""Views: the fields of each chart type, decoded into fixed types with their zero values."""

from collections.abc import Iterable, Mapping
from typing import Any

from tests.influx import gojson
from tests.influx.queries import QUERY

Fields = Mapping[str, gojson.Shape]

EMPTY = {"shape": "empty"}
"""The properties of a view that was never written."""


def left_out_when_zero(shape: gojson.Shape, names: Iterable[str] | None = None) -> gojson.Shape:
    """An object without its zero fields: all of them, or only these."""
    checked = None if names is None else frozenset(names)

    def read(value: Any) -> Any:
        return {key: item for key, item in shape(value).items() if item or (checked is not None and key not in checked)}

    return read


_COLUMN = gojson.struct(internalName=gojson.text, displayName=gojson.text, visible=gojson.flag)
_COLORS = gojson.listing(
    gojson.struct(id=gojson.text, type=gojson.text, hex=gojson.text, name=gojson.text, value=gojson.number)
)
_AXIS = gojson.struct(
    bounds=gojson.listing(gojson.text),
    label=gojson.text,
    prefix=gojson.text,
    suffix=gojson.text,
    base=gojson.text,
    scale=gojson.text,
)
_STATIC_LEGEND = left_out_when_zero(
    gojson.struct(
        colorizeRows=gojson.flag,
        heightRatio=gojson.number,
        show=gojson.flag,
        opacity=gojson.number,
        orientationThreshold=gojson.integer(),
        valueAxis=gojson.text,
        widthRatio=gojson.number,
    )
)
_TEXTS = gojson.listing(gojson.text)

_QUERIES: Fields = {"queries": gojson.listing(QUERY)}
_NOTE: Fields = {"note": gojson.text, "showNoteWhenEmpty": gojson.flag}
_LEGEND: Fields = {
    "legendColorizeRows": gojson.flag,
    "legendHide": gojson.flag,
    "legendOpacity": gojson.number,
    "legendOrientationThreshold": gojson.integer(),
}
_X: Fields = {
    "xColumn": gojson.text,
    "generateXAxisTicks": _TEXTS,
    "xTotalTicks": gojson.integer(),
    "xTickStart": gojson.number,
    "xTickStep": gojson.number,
}
_Y: Fields = {
    "yColumn": gojson.text,
    "generateYAxisTicks": _TEXTS,
    "yTotalTicks": gojson.integer(),
    "yTickStart": gojson.number,
    "yTickStep": gojson.number,
}
_AXES: Fields = {"axes": gojson.mapping(_AXIS), "staticLegend": _STATIC_LEGEND}
_DOMAINS: Fields = {"xDomain": gojson.listing(gojson.number), "yDomain": gojson.listing(gojson.number)}
_LABELS: Fields = {
    **_DOMAINS,
    **dict.fromkeys(("xAxisLabel", "yAxisLabel", "xPrefix", "xSuffix", "yPrefix", "ySuffix"), gojson.text),
}
_DECIMALS: Fields = {"decimalPlaces": gojson.struct(isEnforced=gojson.flag, digits=gojson.integer(32))}
_COLOR_LIST: Fields = {"colors": _COLORS}
_COLOR_NAMES: Fields = {"colors": _TEXTS}
_LINE: Fields = {
    **_QUERIES,
    **_NOTE,
    **_LEGEND,
    **_X,
    **_Y,
    **_AXES,
    **_COLOR_LIST,
    "shadeBelow": gojson.flag,
    "position": gojson.text,
    "timeFormat": gojson.text,
    "hoverDimension": gojson.text,
}
_NUMBER: Fields = {
    **_QUERIES,
    **_NOTE,
    **_COLOR_LIST,
    **_DECIMALS,
    **dict.fromkeys(("prefix", "tickPrefix", "suffix", "tickSuffix"), gojson.text),
}
_LAYER = gojson.struct(
    type=gojson.text,
    radiusField=gojson.text,
    colorField=gojson.text,
    intensityField=gojson.text,
    colors=_COLORS,
    radius=gojson.integer(32),
    blur=gojson.integer(32),
    radiusDimension=_AXIS,
    colorDimension=_AXIS,
    intensityDimension=_AXIS,
    interpolateColors=gojson.flag,
    trackWidth=gojson.integer(32),
    speed=gojson.integer(32),
    randomColors=gojson.flag,
    isClustered=gojson.flag,
)
_SETTING = left_out_when_zero(gojson.struct(type=gojson.text, value=gojson.text, name=gojson.text), {"name"})

TYPES: Mapping[str, Fields] = {
    "xy": {**_LINE, "geom": gojson.text},
    "line-plus-single-stat": {**_LINE, **_DECIMALS, "prefix": gojson.text, "suffix": gojson.text},
    "band": {
        **{name: shape for name, shape in _LINE.items() if name not in {"shadeBelow", "position"}},
        **dict.fromkeys(("geom", "upperColumn", "mainColumn", "lowerColumn"), gojson.text),
    },
    "single-stat": _NUMBER,
    "gauge": _NUMBER,
    "table": {
        **_QUERIES,
        **_NOTE,
        **_COLOR_LIST,
        **_DECIMALS,
        "timeFormat": gojson.text,
        "tableOptions": gojson.struct(
            verticalTimeAxis=gojson.flag, sortBy=_COLUMN, wrapping=gojson.text, fixFirstColumn=gojson.flag
        ),
        "fieldOptions": gojson.listing(_COLUMN),
    },
    "histogram": {
        **_QUERIES,
        **_NOTE,
        **_LEGEND,
        **_COLOR_LIST,
        "xColumn": gojson.text,
        "fillColumns": _TEXTS,
        "xDomain": gojson.listing(gojson.number),
        "xAxisLabel": gojson.text,
        "position": gojson.text,
        "binCount": gojson.integer(),
    },
    "heatmap": {
        **_QUERIES,
        **_NOTE,
        **_LEGEND,
        **_COLOR_NAMES,
        **_X,
        **_Y,
        **_LABELS,
        "binSize": gojson.integer(32),
        "timeFormat": gojson.text,
    },
    "scatter": {
        **_QUERIES,
        **_NOTE,
        **_LEGEND,
        **_COLOR_NAMES,
        **_X,
        **_Y,
        **_LABELS,
        "fillColumns": _TEXTS,
        "symbolColumns": _TEXTS,
        "timeFormat": gojson.text,
    },
    "mosaic": {
        **_QUERIES,
        **_NOTE,
        **_LEGEND,
        **_COLOR_NAMES,
        **_X,
        **_LABELS,
        "fillColumns": _TEXTS,
        "yLabelColumnSeparator": gojson.text,
        "yLabelColumns": _TEXTS,
        "ySeriesColumns": _TEXTS,
        "timeFormat": gojson.text,
        "hoverDimension": gojson.text,
    },
    "geo": {
        **_QUERIES,
        **_NOTE,
        **_COLOR_LIST,
        "center": gojson.struct(lat=gojson.number, lon=gojson.number),
        "zoom": gojson.number,
        "mapStyle": gojson.text,
        "allowPanAndZoom": gojson.flag,
        "detectCoordinateFields": gojson.flag,
        "layers": gojson.listing(_LAYER),
    },
    "check": {**_QUERIES, **_COLOR_NAMES, **_LEGEND, "checkID": gojson.text},
    "markdown": {"note": gojson.text},
    "log-viewer": {
        "columns": gojson.listing(
            gojson.struct(name=gojson.text, position=gojson.integer(32), settings=gojson.listing(_SETTING))
        )
    },
}
"""The fields of each chart type, without ``shape`` and ``type``."""

_READ = {
    name: left_out_when_zero(
        gojson.struct_of({"shape": gojson.text, "type": gojson.text, **fields}), ("xDomain", "yDomain")
    )
    for name, fields in TYPES.items()
}
_KIND = gojson.struct(shape=gojson.text, type=gojson.text)
_HOLDER = gojson.struct(properties=gojson.anything)


def decoded(value: Any) -> dict[str, Any] | None:
    """
    The properties of a view as the server stores them; None for an unknown type.

    Raises:
        gojson.BadJson: The shape is unknown, or a field has the wrong type.
    """
    kind = _KIND(value)
    if kind["shape"] == "empty":
        return dict(EMPTY)
    if kind["shape"] != "chronograf-v2":
        raise gojson.BadJson(f"unknown shape {kind['shape']}")
    read = _READ.get(kind["type"])
    return None if read is None else read(value)


def nested(value: Any) -> dict[str, Any]:
    """
    The properties in a cell of the body of a dashboard.

    They are expected one level deeper than in reads; if they cannot be decoded, the view is empty.
    """
    try:
        inner = _HOLDER(value)["properties"]
        return dict(EMPTY) if inner is None else decoded(inner) or dict(EMPTY)
    except gojson.BadJson:
        return dict(EMPTY)
