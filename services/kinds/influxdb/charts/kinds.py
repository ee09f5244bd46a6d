"""
The kinds of charts: the fields that each uses, and its rules for them (docs/reference/package-format.md, "Chart
fields", "Chart rules").
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from services.kinds.format.field_table import Mappings, Nested, Table
from services.kinds.format.shapes import Fold, Integer, Shape, Text
from services.kinds.influxdb.charts.fields import FIELDS
from services.kinds.influxdb.charts.nested import (
    AXIS,
    COLOR,
    HEX_COLOR,
    LAYER,
    PLAIN_AXIS,
    TABLE_OPTIONS,
    UNSCALED_AXIS,
)
from services.kinds.influxdb.charts.shapes import AnyCase

LAYOUT = ("xPos", "yPos", "width", "height")
"""The position and size of a chart on its dashboard, in cells."""

Shapes = Mapping[str, Shape]


@dataclass(frozen=True, slots=True)
class ChartKind:
    """
    One kind of chart.

    Attributes:
        name: As packages spell it, lower-case.
        type: As platforms and summaries spell it.
        uses: The fields that it uses in their general form, besides the fields of all charts.
        own: The fields that it uses in a form of its own, with stricter rules or fewer parts.
        has_queries: Whether it shows data.
        flat_axes: Its axes by name, each with default values, if it has properties for each axis. Empty: it keeps all
            axes of the source, or uses none.
        hex_colors: Whether it uses only the hex value of its colors.
        needed_axes: Names of the axes that it requires.
        needed_colors: Types of the colors that it requires.
        fixed: Properties with a fixed value.
        fields: All fields that it uses, but for its kind and its queries.
    """

    name: str
    type: str
    uses: tuple[str, ...]
    own: Shapes
    has_queries: bool = True
    flat_axes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    hex_colors: bool = False
    needed_axes: tuple[str, ...] = ()
    needed_colors: tuple[str, ...] = ()
    fixed: Mapping[str, Any] = field(default_factory=dict)
    fields: Table = field(init=False)

    def __post_init__(self) -> None:
        usual = [FIELDS[key] for key in ("name", *LAYOUT, "note", *self.uses)]
        own = [replace(FIELDS[key], shape=shape) for key, shape in self.own.items()]
        object.__setattr__(self, "fields", Table(*usual, *own))


_SIZE = Integer(minimum=1, what="a whole number from 1, without quotes")
_SIZED: Shapes = {"width": _SIZE, "height": _SIZE}
_COLORED: Shapes = {**_SIZED, "colors": Mappings(COLOR)}
_HEX_COLORED: Shapes = {**_SIZED, "colors": Mappings(HEX_COLOR), "axes": Mappings(UNSCALED_AXIS)}
_LINED: Shapes = {**_COLORED, "axes": Mappings(AXIS)}

_GEOM = Text(words=("line", "step", "stacked", "monotoneX", "bar"), required=True)
_POSITION = AnyCase(("overlaid", "stacked", ""))

_X_AND_Y = {name: UNSCALED_AXIS.read({"name": name}) for name in ("x", "y")}
_ONLY_X = {"x": PLAIN_AXIS.read({"name": "x"})}

_X_TICKS = ("generateXAxisTicks", "xTotalTicks", "xTickStart", "xTickStep")
_Y_TICKS = ("generateYAxisTicks", "yTotalTicks", "yTickStart", "yTickStep")
_COLUMNS = ("xCol", *_X_TICKS, "yCol", *_Y_TICKS)
_LEGEND = ("legendColorizeRows", "legendHide", "legendOpacity", "legendOrientationThreshold")
_LINES = ("noteOnEmpty", *_COLUMNS, *_LEGEND, "hoverDimension", "staticLegend")
_VALUE = ("noteOnEmpty", "prefix", "suffix", "decimalPlaces")

_ALL = (
    ChartKind(
        name="gauge",
        type="gauge",
        uses=(*_VALUE, "tickPrefix", "tickSuffix"),
        own=_COLORED,
        needed_colors=("min", "max"),
    ),
    ChartKind(
        name="geo",
        type="geo",
        uses=("noteOnEmpty", "lat", "lon", "zoom", "mapStyle", "allowPanAndZoom", "detectCoordinateFields"),
        own={**_COLORED, "geoLayers": Mappings(LAYER)},
    ),
    ChartKind(
        name="heatmap",
        type="heatmap",
        uses=("noteOnEmpty", *_COLUMNS, *_LEGEND, "timeFormat", "binSize"),
        own=_HEX_COLORED,
        flat_axes=_X_AND_Y,
        hex_colors=True,
        needed_axes=("x", "y"),
    ),
    ChartKind(
        name="histogram",
        type="histogram",
        uses=("noteOnEmpty", "xCol", *_LEGEND, "position", "binCount", "fillColumns"),
        own={**_COLORED, "axes": Mappings(PLAIN_AXIS)},
        flat_axes=_ONLY_X,
        needed_axes=("x",),
    ),
    ChartKind(name="markdown", type="markdown", uses=(), own={}, has_queries=False),
    ChartKind(
        name="mosaic",
        type="mosaic",
        uses=(
            *("noteOnEmpty", "xCol", *_X_TICKS, *_LEGEND, "timeFormat", "hoverDimension"),
            *("yLabelColumnSeparator", "yLabelColumns", "ySeriesColumns"),
        ),
        own=_HEX_COLORED,
        flat_axes=_X_AND_Y,
        hex_colors=True,
        fixed={"fillColumns": None},
    ),
    ChartKind(
        name="scatter",
        type="scatter",
        uses=("noteOnEmpty", *_COLUMNS, *_LEGEND, "timeFormat"),
        own=_HEX_COLORED,
        flat_axes=_X_AND_Y,
        hex_colors=True,
        needed_axes=("x", "y"),
        fixed={"fillColumns": None, "symbolColumns": None},
    ),
    ChartKind(
        name="single_stat",
        type="single-stat",
        uses=(*_VALUE, "tickPrefix", "tickSuffix"),
        own=_COLORED,
    ),
    ChartKind(
        name="single_stat_plus_line",
        type="line-plus-single-stat",
        uses=(*_LINES, *_VALUE, "shade"),
        own={**_LINED, "position": _POSITION},
        needed_axes=("x", "y"),
        # This kind ignores its field timeFormat (docs/reference/package-format.md, "Oddities").
        fixed={"timeFormat": ""},
    ),
    ChartKind(
        name="table",
        type="table",
        uses=("noteOnEmpty", "timeFormat", "decimalPlaces", "fieldOptions"),
        own={**_COLORED, "tableOptions": Nested(TABLE_OPTIONS)},
    ),
    ChartKind(
        name="xy",
        type="xy",
        uses=(*_LINES, "timeFormat", "shade"),
        own={**_LINED, "geom": _GEOM, "position": _POSITION},
        needed_axes=("x", "y"),
    ),
    ChartKind(
        name="band",
        type="band",
        uses=(*_LINES, "timeFormat", "geom", "upperColumn", "mainColumn", "lowerColumn"),
        own=_LINED,
    ),
)

CHART_KINDS: Mapping[str, ChartKind] = MappingProxyType({kind.name: kind for kind in _ALL})
"""Every kind of chart by its name."""

KIND_NAME = Text(words=tuple(CHART_KINDS), fold=Fold.LOWER, required=True)
"""The shape of the field ``kind`` of a chart."""
