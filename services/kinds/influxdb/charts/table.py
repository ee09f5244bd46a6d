"""The table of all fields of charts of any kind, for remarks and for the JSON Schema."""

from collections.abc import Iterator, Sequence

from services.kinds.format.canonical import canonical_text
from services.kinds.format.field_table import Field, Table, Variants
from services.kinds.format.shapes import Fold, Schema, Text
from services.kinds.influxdb.charts.fields import FIELDS
from services.kinds.influxdb.charts.kinds import CHART_KINDS, KIND_NAME, ChartKind


def _conditions() -> list[Schema]:
    """The rules of the kinds of charts, each once for all kinds that have it."""
    demands = {canonical_text(demand): demand for kind in CHART_KINDS.values() for demand in _demands(kind)}
    by_names: dict[tuple[str, ...], list[Schema]] = {}
    for text, demand in demands.items():
        names = [kind.name for kind in CHART_KINDS.values() if text in map(canonical_text, _demands(kind))]
        by_names.setdefault(tuple(names), []).append(demand)
    return [{"if": _is_one_of(names), "then": {"allOf": schemas}} for names, schemas in by_names.items()]


def _demands(kind: ChartKind) -> Iterator[Schema]:
    for key in ("width", "height", "colors", "geom", "position", "tableOptions"):
        if shape := kind.own.get(key):
            needed = {"required": [key]} if shape.problem(shape.absent) else {}
            yield {"properties": {key: _without_descriptions(shape.schema())}, **needed}
    for name in kind.needed_axes:
        yield _has_one("axes", "name", {"type": "string", "pattern": rf"^\s*{name}\s*$"})
    for type_ in kind.needed_colors:
        yield _has_one("colors", "type", {"const": type_})


def _is_one_of(names: Sequence[str]) -> Schema:
    kind = Text(words=tuple(names), fold=Fold.LOWER, required=True)
    return {"properties": {"kind": kind.schema()}, "required": ["kind"]}


def _has_one(key: str, of: str, schema: Schema) -> Schema:
    """Requires that the list *key* has a mapping whose field *of* matches *schema*."""
    item = {"type": "object", "properties": {of: schema}, "required": [of]}
    return {"properties": {key: {"type": "array", "contains": item}}, "required": [key]}


def _without_descriptions(schema: Schema) -> Schema:
    """*schema* without descriptions, which the fields of the table have already."""
    return {
        key: _without_descriptions(value) if isinstance(value, dict) else value
        for key, value in schema.items()
        if key != "description"
    }


_KIND = Field("kind", KIND_NAME, f"Kind of chart: {', '.join(CHART_KINDS)}.")

CHART = Table(
    _KIND,
    *FIELDS.values(),
    required=["kind"],
    more={"allOf": _conditions()},
    variants=Variants(
        _KIND.key,
        {name: Table(_KIND, *{**FIELDS, **kind.fields.fields}.values()) for name, kind in CHART_KINDS.items()},
    ),
    # InfluxDB writes the fields of the legend twice into its exports, and ignores the second ones.
    repeated="staticLegend",
)
"""A chart, for remarks and the schema; each kind of chart reads and checks its own fields."""
