"""Charts for tests in the form of packages, and a function that reads them."""

from typing import Any, cast

from hypothesis import strategies as st

from services.kinds.format.fields import Fields
from services.kinds.format.kind import Scope
from services.kinds.influxdb.charts.kinds import CHART_KINDS
from services.kinds.influxdb.charts.reading import Charts, read_charts
from services.kinds.influxdb.charts.table import CHART

Chart = dict[str, Any]

_SIZE = {"width": 4, "height": 3}
_X_AND_Y = [{"name": "x"}, {"name": "y"}]

SMALLEST: dict[str, Chart] = {
    "gauge": {**_SIZE, "colors": [{"type": "min", "hex": "#00f"}, {"type": "max", "hex": "#f00"}]},
    "geo": _SIZE,
    "heatmap": {**_SIZE, "axes": _X_AND_Y},
    "histogram": {**_SIZE, "axes": [{"name": "x"}]},
    "markdown": {},
    "mosaic": _SIZE,
    "scatter": {**_SIZE, "axes": _X_AND_Y},
    "single_stat": _SIZE,
    "single_stat_plus_line": {**_SIZE, "axes": _X_AND_Y},
    "table": _SIZE,
    "xy": {**_SIZE, "axes": _X_AND_Y, "geom": "line"},
    "band": _SIZE,
}
"""The required fields of each kind of chart."""


def chart(kind: str, **changes: Any) -> Chart:
    """The smallest chart of a kind, with *changes*."""
    return {"kind": kind, **SMALLEST[kind], **changes}


def read(*charts: Any, env: dict[str, Any] | None = None) -> Charts:
    """Read the charts of a dashboard named ``board``."""
    return read_charts(Fields({"charts": list(charts)}, "spec", ("spec",)), Scope("board", "Board", env=env or {}))


_texts = st.sampled_from(["", "x", "y", " x ", "#fff", "line", "Stacked", "wrap", "min", "max", "10", "é", "0x1p3"])
_numbers = st.integers(-3, 9) | st.sampled_from([0.5, -1.5, 1e-7, 2**53])
_any_values = st.recursive(
    _texts | _numbers | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_texts, inner, max_size=3),
    max_leaves=5,
)


@st.composite
def _mappings(draw: st.DrawFn, schema: dict[str, Any]) -> dict[str, Any]:
    """Mappings with some of the fields of a schema."""
    keys = draw(st.lists(st.sampled_from(sorted(schema["properties"])), max_size=6, unique=True))
    return {key: draw(_of_schema(schema["properties"][key])) for key in keys}


def _of_schema(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values of the type that a schema names."""
    match schema.get("type"):
        case ["object", "null"] | "object":
            return _mappings(schema)
        case ["array", "null"]:
            return st.lists(_of_schema(schema["items"]), max_size=3)
        case ["boolean", "null"]:
            return st.booleans()
        case ["number", "null"]:
            return _numbers
        case _:
            return _texts | _numbers


@st.composite
def _charts(draw: st.DrawFn, *, typed: bool) -> Chart:
    kind = draw(st.sampled_from(sorted(CHART_KINDS)))
    fields = CHART.schema()["properties"]
    keys = draw(st.lists(st.sampled_from(sorted(fields.keys() - {"kind"})), max_size=8, unique=True))
    values = {key: draw(_of_schema(fields[key]) if typed else _of_schema(fields[key]) | _any_values) for key in keys}
    spelled = draw(st.sampled_from([kind, kind.upper(), f" {kind}"]))
    if not typed:
        return {"kind": spelled, **SMALLEST[kind], **values}
    needed: Chart = SMALLEST[kind]
    for key in ("axes", "colors"):
        if key in needed and key in values:
            needed = {**needed, key: [*cast(list[Any], values[key]), *needed[key]]}
    return {"kind": spelled, **values, **needed}


typed_charts = _charts(typed=True)
"""Charts whose fields all have their types; most of them have no faults."""

any_charts = _charts(typed=False)
"""Charts with values of any type in their fields."""
