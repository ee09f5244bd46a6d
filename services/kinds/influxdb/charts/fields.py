"""
The fields of charts, one row each (docs/reference/package-format.md, "Chart fields"); ``kinds`` assigns them to kinds
of charts.
"""

from services.kinds.format.field_table import Field, Mappings, Nested
from services.kinds.format.shapes import Boolean, Fold, Integer, Number, Text, Texts
from services.kinds.influxdb.charts.nested import (
    AXIS,
    COLORS,
    FIELD_OPTION,
    LOOSE_LAYER,
    LOOSE_TABLE_OPTIONS,
    QUERY,
    STATIC_LEGEND,
)
from services.kinds.influxdb.charts.shapes import OptionalInteger

_ROWS = (
    Field("name", Text(fold=Fold.TRIM), "Title of the chart."),
    Field("xPos", Integer(), "First column that the chart takes, of 12, from 0."),
    Field("yPos", Integer(), "First row that the chart takes, from 0."),
    Field("width", Integer(), "Columns that the chart takes, of 12."),
    Field("height", Integer(), "Rows that the chart takes."),
    Field("note", Text(), "Note about the chart; of a markdown chart, all that it shows."),
    Field("noteOnEmpty", Boolean(), "Whether the note is shown instead of a chart without data."),
    Field("queries", Mappings(QUERY), "Where the data is from."),
    Field("colors", COLORS, "Colors of lines, values or cells."),
    Field("axes", Mappings(AXIS), "The axes of the chart: x, y and, beside lines, y2."),
    Field("prefix", Text(), "Text before the value."),
    Field("suffix", Text(), "Text behind the value."),
    Field("tickPrefix", Text(), "Text before the values at the ticks of a gauge."),
    Field("tickSuffix", Text(), "Text behind the values at the ticks of a gauge."),
    Field("decimalPlaces", OptionalInteger(), "Digits behind the decimal point; as many as there are when left out."),
    Field("xCol", Text(), "The column for the x axis."),
    Field("yCol", Text(), "The column for the y axis."),
    Field("generateXAxisTicks", Texts(), "Which of xTotalTicks, xTickStart and xTickStep take effect."),
    Field("xTotalTicks", Integer(), "Number of ticks of the x axis."),
    Field("xTickStart", Number(), "First tick of the x axis."),
    Field("xTickStep", Number(), "Distance between two ticks of the x axis."),
    Field("generateYAxisTicks", Texts(), "Which of yTotalTicks, yTickStart and yTickStep take effect."),
    Field("yTotalTicks", Integer(), "Number of ticks of the y axis."),
    Field("yTickStart", Number(), "First tick of the y axis."),
    Field("yTickStep", Number(), "Distance between two ticks of the y axis."),
    Field("timeFormat", Text(), "How times are shown, such as YYYY-MM-DD HH:mm:ss."),
    Field("hoverDimension", Text(), "What the pointer picks: x, y, xy or auto."),
    Field("legendColorizeRows", Boolean(), "Whether the rows of the legend have the colors of their lines."),
    Field("legendHide", Boolean(), "Whether there is no legend under the pointer."),
    Field("legendOpacity", Number(), "Opacity of the legend, from 0 to 1."),
    Field("legendOrientationThreshold", Integer(), "Number of columns from which on the legend stands upright."),
    Field("staticLegend", Nested(STATIC_LEGEND), "The legend that is always shown."),
    Field("shade", Boolean(), "Whether the area below the line is shaded."),
    Field("position", Text(), "Whether lines or bars lie over each other or on each other: overlaid or stacked."),
    Field("geom", Text(), "How points are drawn: line, step, stacked, monotoneX or bar."),
    Field("binSize", Integer(), "Size of a cell of the heat map, in pixels."),
    Field("binCount", Integer(), "Number of bars of the histogram."),
    Field("fillColumns", Texts(), "The columns whose values make the groups of the histogram."),
    Field("yLabelColumnSeparator", Text(), "Text between the values of the columns that label a row."),
    Field("yLabelColumns", Texts(), "The columns that label a row."),
    Field("ySeriesColumns", Texts(), "The columns whose values make the rows."),
    Field("upperColumn", Text(), "The column for the upper edge of the band."),
    Field("mainColumn", Text(), "The column for the line in the band."),
    Field("lowerColumn", Text(), "The column for the lower edge of the band."),
    Field("tableOptions", Nested(LOOSE_TABLE_OPTIONS), "How the table looks."),
    Field("fieldOptions", Mappings(FIELD_OPTION), "The columns of the table, in order."),
    Field("lat", Number(), "Latitude of the middle of the map, in degrees."),
    Field("lon", Number(), "Longitude of the middle of the map, in degrees."),
    Field("zoom", Number(), "Zoom of the map; larger is closer."),
    Field("mapStyle", Text(), "Style of the map."),
    Field("allowPanAndZoom", Boolean(), "Whether the map can be moved and zoomed."),
    Field("detectCoordinateFields", Boolean(), "Whether the columns with coordinates are found by their names."),
    Field("geoLayers", Mappings(LOOSE_LAYER), "What is drawn on the map."),
)

FIELDS = {field.key: field for field in _ROWS}
"""All fields but the kind, by key, in the form that any chart accepts: a kind does not check fields it does not use."""
