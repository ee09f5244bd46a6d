"""The values inside charts (docs/reference/package-format.md, "Nested chart values")."""

from services.kinds.format.field_table import Field, Mappings, Nested, Table
from services.kinds.format.shapes import Boolean, Fold, Integer, Number, Text, Texts
from services.kinds.influxdb.charts.shapes import Domain
from services.kinds.influxdb.flux.settings import PARAMETER

_HEX = Field("hex", Text(required=True, what="a color such as #00C9FF"), "The color, such as #00C9FF.")
_COLOR_FIELDS = (
    Field("id", Text(), "Id of the color; needs no value."),
    Field("name", Text(fold=Fold.TRIM), "Name of the color, or of the palette that it is from."),
    Field("type", Text(), "What it colors: min and max the ends of a gauge, threshold, text, background, or scale."),
)
_COLOR_VALUE = Field("value", Number(), "The value from which on it applies.")

COLOR = Table(*_COLOR_FIELDS, _HEX, _COLOR_VALUE, required=["hex"])
"""A color."""

HEX_COLOR = Table(_HEX, required=["hex"])
"""A color, for the chart kinds that use only its hex value."""

_LOOSE_COLOR = Table(*_COLOR_FIELDS, Field("hex", Text(), _HEX.about), _COLOR_VALUE)
"""A color that is not checked: in layers, and on markdown charts."""

COLORS = Mappings(_LOOSE_COLOR)
"""Colors in the form that any chart accepts."""

_AXIS_NAME = Field("name", Text(fold=Fold.TRIM), "Which axis: x, y or y2.")
_AXIS_LABEL = Field("label", Text(), "Text beside the axis.")
_AXIS_UNITS = (
    Field("prefix", Text(), "Text before the numbers of the axis."),
    Field("suffix", Text(), "Text behind the numbers of the axis."),
)
_AXIS_SCALE = (
    Field("base", Text(), 'Base of the unit prefixes: "10", or "2" for bytes.'),
    Field("scale", Text(), "linear or log."),
)
_AXIS_DOMAIN = Field("domain", Domain(), "Its range: two numbers, the least and the greatest value shown.")

AXIS = Table(_AXIS_NAME, _AXIS_LABEL, *_AXIS_UNITS, *_AXIS_SCALE, _AXIS_DOMAIN)
"""An axis."""

UNSCALED_AXIS = Table(_AXIS_NAME, _AXIS_LABEL, *_AXIS_UNITS, _AXIS_DOMAIN)
"""An axis of the chart kinds without a scale."""

PLAIN_AXIS = Table(_AXIS_NAME, _AXIS_LABEL, _AXIS_DOMAIN)
"""An axis of the chart kinds with neither scale nor units."""

_DIMENSION = Table(_AXIS_LABEL, *_AXIS_UNITS, *_AXIS_SCALE)
"""The parts of an axis that a layer uses."""

_LOOSE_DIMENSION = Table(
    Field("name", Text(), "Means nothing here."),
    _AXIS_LABEL,
    *_AXIS_UNITS,
    *_AXIS_SCALE,
    Field("domain", Texts(), "Means nothing here."),
)

STATIC_LEGEND = Table(
    Field("show", Boolean(), "Whether the legend is always shown, and not only under the pointer."),
    Field("colorizeRows", Boolean(), "Whether the rows have the colors of their lines."),
    Field("heightRatio", Number(), "Height, as a part of the chart's, from 0 to 1."),
    Field("widthRatio", Number(), "Width, as a part of the chart's, from 0 to 1."),
    Field("opacity", Number(), "Opacity, from 0 to 1."),
    Field("orientationThreshold", Integer(), "Number of columns from which on the legend stands upright."),
    Field("valueAxis", Text(), "The axis whose values are listed: x or y."),
)

_TABLE_FLAGS = (
    Field("verticalTimeAxis", Boolean(), "Whether times run down; otherwise they run across."),
    Field("fixFirstColumn", Boolean(), "Whether the first column stays when the table is scrolled."),
    Field("sortBy", Text(), "The column that the rows are sorted by."),
)
_WRAPPING_ABOUT = "What happens to text that is too wide for its cell: single-line, truncate or wrap."

TABLE_OPTIONS = Table(
    *_TABLE_FLAGS, Field("wrapping", Text(words=("single-line", "truncate", "wrap", "")), _WRAPPING_ABOUT)
)

LOOSE_TABLE_OPTIONS = Table(*_TABLE_FLAGS, Field("wrapping", Text(), _WRAPPING_ABOUT))
"""The options of a chart that is no table; they are not checked."""

FIELD_OPTION = Table(
    Field("fieldName", Text(), "The column."),
    Field("displayName", Text(), "The title that is shown instead of its name."),
    Field("visible", Boolean(), "Whether it is shown; it is not when this is left out."),
)

QUERY = Table(
    Field("query", Text(), "The Flux script; an empty one is skipped."),
    Field("params", Mappings(PARAMETER), "Types and defaults for the option params = {...} of the script."),
)


def _layer(dimension: Table) -> Table:
    return Table(
        Field("layerType", Text(), "heatmap, circleMap, pointMap or trackMap."),
        Field("radiusField", Text(), "The column that decides the radius of a circle."),
        Field("colorField", Text(), "The column that decides the color."),
        Field("intensityField", Text(), "The column that decides the intensity of a heat map."),
        Field("viewColors", COLORS, "The colors of the layer."),
        Field("radius", Integer(), "Radius of a point of a heat map, in pixels."),
        Field("blur", Integer(), "Blur of a point of a heat map, in pixels."),
        Field("radiusDimension", Nested(dimension), "How the radius is labelled."),
        Field("colorDimension", Nested(dimension), "How the color is labelled."),
        Field("intensityDimension", Nested(dimension), "How the intensity is labelled."),
        Field("interpolateColors", Boolean(), "Whether colors between the given ones are used."),
        Field("trackWidth", Integer(), "Width of a track, in pixels."),
        Field("speed", Integer(), "Speed at which a track is drawn."),
        Field("randomColors", Boolean(), "Whether every track gets a color of its own."),
        Field("isClustered", Boolean(), "Whether points that are close together are drawn as one."),
    )


LAYER = _layer(_DIMENSION)
"""A layer of a map, with the fields that are used."""

LOOSE_LAYER = _layer(_LOOSE_DIMENSION)
"""A layer of a map, with all fields that packages may write."""
