"""The charts of dashboards, which the server stores as cells with views."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import orjson

from services.drivers.influxdb.codecs.codec import Body, Refused, is_unset
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

_BUILDER = "builderConfig"
"""The property with the state of the query builder, which is named as a whole."""

_PROPERTY_NAMES = {"noteOnEmpty": "showNoteWhenEmpty", "xCol": "xColumn", "yCol": "yColumn", "shade": "shadeBelow"}
"""Fields of charts whose property of the view has another name."""


def normal_chart(chart: Chart) -> dict[str, Any] | None:
    """*chart* as the parser would normalise it; None: the parser would refuse it."""
    fields = Fields({"charts": [dict(chart)]}, "spec", ("spec",))
    kept = read_charts(fields, Scope("chart", "chart")).kept
    # JSON turns tuples into lists, so that equal charts compare equal.
    return orjson.loads(orjson.dumps(kept[0])) if kept else None


def problem_of(cell: Body) -> str:
    """Why ``read_cell`` returns no chart for a cell."""
    shown = cell.get("properties") or {}
    kind = _KINDS.get(shown.get("type", ""))
    if kind is None:
        return f"type {shown['type']}" if shown.get("type") else "without a view"
    fields = Fields({"charts": [_unchecked_chart(kind, cell)]}, "spec", ("spec",))
    return read_charts(fields, Scope("chart", "chart")).faults[0].reason


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


def written_cell(chart: Chart, live: Body | None = None) -> dict[str, Any]:
    """
    The cell of a chart, in the nested form in which the server takes cell and view in one request.

    It keeps the id of the *live* cell before an update, and the properties of its view that charts do not have.
    """
    shown = _properties(chart)
    place = {key: chart[field] for field, key in _LAYOUT.items()}
    cell = {"name": chart["name"], **place}
    if live is None:
        return {**cell, "properties": {"properties": shown}}
    before = read_cell(live)
    merged = _merged(live["properties"], _properties(before), shown) if before else shown
    # A property that is kept may change the meaning of one that is written; the chart matters more.
    kept = merged if read_cell({**cell, "properties": merged}) == chart else shown
    return {"id": live["id"], **cell, "properties": {"properties": kept}}


def unexpressed_in(cell: Body, chart: Chart) -> dict[str, Any]:
    """The properties of the view of a cell that its *chart* does not have, by path."""
    return dict(_beyond(cell.get("properties") or {}, _properties(chart), ""))


def _properties(chart: Chart) -> dict[str, Any]:
    shown = properties(chart)
    if "axes" in shown:
        bounds = {axis["name"]: [_bound(number) for number in axis["domain"]] for axis in chart["axes"]}
        shown["axes"] = {name: {**axis, "bounds": bounds[name]} for name, axis in shown["axes"].items()}
    return shown


def _beyond(live: Any, written: Any, path: str) -> Iterator[tuple[str, Any]]:
    """The content of the *live* properties that the *written* properties of their chart lack, by path."""
    if isinstance(live, Mapping) and not path.endswith(_BUILDER):
        for key, value in live.items():
            other = written.get(key) if isinstance(written, Mapping) else None
            yield from _beyond(value, other, f"{path}.{key}" if path else key)
    elif isinstance(live, list) and isinstance(written, list) and len(live) == len(written):
        for place, (value, other) in enumerate(zip(live, written, strict=True)):
            yield from _beyond(value, other, f"{path}[{place}]")
    elif live != written and not is_unset(live):
        yield path, live


def _merged(live: Any, before: Any, after: Any) -> Any:
    """The properties of a changed chart: *after*, with what *live* has beyond *before*, the properties of the chart."""
    if before == after:
        return live
    if isinstance(live, Mapping) and isinstance(before, Mapping) and isinstance(after, Mapping):
        if before.get("text") != after.get("text"):
            # The state of the query builder belongs to the text of its query.
            return after
        keys = [key for key in {**live, **after} if key in after or key not in before]
        return {key: _merged(live.get(key), before.get(key), after.get(key)) for key in keys}
    if isinstance(live, list) and isinstance(before, list) and isinstance(after, list) and len(live) == len(before):
        both = zip(live, before, after, strict=False)
        return [*(_merged(*each) for each in both), *after[len(live) :]]
    return after


def read_cell(cell: Body) -> dict[str, Any] | None:
    """The chart of a cell; None for a cell that packages cannot describe."""
    shown = cell.get("properties") or {}
    kind = _KINDS.get(shown.get("type", ""))
    if kind is None:
        return None
    return normal_chart(_unchecked_chart(kind, cell))


def _unchecked_chart(kind: ChartKind, cell: Body) -> dict[str, Any]:
    """The cell of a kind of chart as a package would have it, whether or not it breaks a rule of charts."""
    place = {field: cell.get(key) or 0 for field, key in _LAYOUT.items()}
    return {**_fields(kind, cell["properties"]), "kind": kind.name, "name": cell.get("name") or "", **place}


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
