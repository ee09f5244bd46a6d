"""Strategies for packages that resemble real ones, with every field in the tables of the kinds."""

from typing import Any

from hypothesis import strategies as st

from services.core.model import LABEL
from services.kinds.format.field_table import Mappings, Nested, Table
from services.kinds.format.references import Referable
from services.kinds.format.shapes import Boolean, Duration, Free, Integer, Number, Shape, Text, Texts
from services.kinds.influxdb.charts.shapes import AnyCase, Domain, OptionalInteger
from services.kinds.registry import KINDS
from services.kinds.schema import API_VERSIONS, spec_table

texts = st.sampled_from(["", "a", "b b", "é", "5", "1e3", "on", "~", " x ", "a\nb\n", "a: b # c", "\t", "2020-01-01"])
numbers = st.integers(-5, 10_000) | st.sampled_from([0.5, 3600.0, 1e9, 1e21, -2.25, 2**53 + 1, 2**62])
scalars = texts | numbers | st.booleans() | st.none()
trees = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2), max_leaves=4
)
keys = st.sampled_from(["k", "stage", "other-key"])
references = st.fixed_dictionaries({"envRef": st.fixed_dictionaries({"key": keys}, optional={"default": scalars})})
secrets = st.fixed_dictionaries({"secretRef": st.fixed_dictionaries({"key": keys})})
durations = st.sampled_from(["1h", "90m", "1500ms", "1d1h", "-5m", "1us", "nonsense", "", "1mo"])
environments = st.dictionaries(keys, scalars, max_size=2)

SCRIPTS = st.sampled_from(
    [
        "from(bucket: x)",
        'option params = {a: 1, b: "x", c: -1d, d: now(), e: true}\nfrom(bucket: params.b)',
        'option task = {name: "named", every: 1h, offset: 90s}\n\nfrom(bucket: "b")',
        'import "x"\noption params = {a: 2.5}\noption task = {cron: "* * * * *"}\nx()',
    ]
)
PARAMETERS = st.fixed_dictionaries(
    {"key": st.sampled_from(["a", "b", "every", "name", "new"])},
    optional={"default": scalars, "type": st.sampled_from(["int", "Float", "string", "bool", "time", "odd"])},
)


def values(key: str, shape: Shape) -> st.SearchStrategy[Any]:
    """Values of a field, mostly of its type."""
    match shape:
        case _ if key == "query":
            return SCRIPTS
        case _ if key in ("params", "task"):
            return st.lists(PARAMETERS, max_size=2)
        case Text(words=words) | AnyCase(words=words) if words:
            return st.sampled_from([*words, *(word.title() for word in words)])
        case Text() | AnyCase():
            return texts | numbers
        case Integer() | OptionalInteger() | Number():
            return numbers
        case Boolean():
            return st.booleans()
        case Duration():
            return durations
        case Texts():
            return st.lists(texts | numbers, max_size=3)
        case Domain():
            return st.lists(numbers | st.just("1.5"), max_size=2)
        case Referable(secret=secret):
            return texts | references | (secrets if secret else st.nothing())
        case Mappings(table=table):
            return st.lists(mappings(table), max_size=2)
        case Nested():
            return mappings(shape.table)
        case Free() if key == "selected":
            return st.lists(texts | references, max_size=2)
        case _:
            return trees


def mappings(table: Table, odd: st.SearchStrategy[Any] | None = None) -> st.SearchStrategy[dict[str, Any]]:
    """Mappings with any of the fields of a table, and *odd* values in them."""
    return st.fixed_dictionaries(
        {},
        optional={key: values(key, field.shape) | (odd or st.nothing()) for key, field in table.fields.items()},
    )


_ENOUGH: dict[str, dict[str, Any]] = {
    "CheckThreshold": {
        "every": "1m",
        "query": "x",
        "statusMessageTemplate": "m",
        "thresholds": [{"type": "Greater", "level": "crit", "value": 1.0}, {"type": "inside_range", "level": "ok"}],
    },
    "CheckDeadman": {"every": "1m", "query": "x", "statusMessageTemplate": "m"},
    "NotificationEndpointHTTP": {
        "url": "http://x",
        "method": "post",
        "type": "basic",
        "username": "u",
        "password": {"secretRef": {"key": "pw"}},
    },
    "NotificationEndpointPagerDuty": {"url": "x", "routingKey": {"envRef": {"key": "k", "default": "r"}}},
    "NotificationEndpointSlack": {"url": "x"},
    "NotificationRule": {"endpointName": "hook", "every": "1m", "statusRules": [{"currentLevel": "ok"}]},
    "Task": {"every": "1h", "query": "x"},
    "Telegraf": {"config": "[a]\n  b = 1\n"},
    "Variable": {"type": "map", "values": {"a": 1}},
}
"""The fields that make a spec of a kind valid."""

_CHART: dict[str, Any] = {
    "width": 3,
    "height": 2,
    "geom": "line",
    "axes": [{"name": "x", "domain": [0, "10"]}, {"name": "y", "base": 10}],
    "colors": [{"type": "min", "hex": "#fff"}, {"type": "max", "hex": "#000", "value": 5}],
    "position": "overlaid",
}
CHART_KINDS = (
    *("gauge", "geo", "Heatmap", "histogram", "Markdown", "mosaic", "scatter", "Single_Stat"),
    *("single_stat_plus_line", "table", "Xy", "band"),
)


@st.composite
def charts(draw: st.DrawFn) -> dict[str, Any]:
    """Charts, mostly valid."""
    table = spec_table("Dashboard").fields["charts"].shape
    assert isinstance(table, Mappings)
    fields = draw(mappings(table.table))
    spared = {key: fields[key] for key in fields if key not in _CHART and key not in ("kind", "tableOptions")}
    return {"kind": draw(st.sampled_from(CHART_KINDS)), **_CHART, **spared}


@st.composite
def specs(draw: st.DrawFn, kind: str) -> dict[str, Any]:
    """Specs of a kind, mostly valid."""
    fields = draw(mappings(spec_table(kind)))
    enough = _ENOUGH.get(kind, {})
    # Most specs keep the fields that make them valid; the other fields are random.
    spec = {**fields, **{key: value for key, value in enough.items() if draw(st.integers(0, 9)) or key not in fields}}
    spec.pop("associations", None)
    if kind == "Dashboard":
        spec["charts"] = draw(st.lists(charts(), max_size=3))
    if kind == "Bucket":
        spec["retentionRules"] = draw(
            st.lists(st.just({"type": "expire", "everySeconds": 3.6e3}), max_size=2)
            if draw(st.integers(0, 4))
            else trees
        )
        spec["measurementSchemas"] = draw(st.sampled_from([[], [_SCHEMA], None]))
    if kind != LABEL and draw(st.booleans()):
        spec["associations"] = draw(st.sampled_from(ASSOCIATIONS))
    return spec


_SCHEMA = {
    "name": "cpu",
    "columns": [
        {"name": "time", "type": "timestamp"},
        {"name": "b", "type": "field", "dataType": "float"},
        {"name": "a", "type": "tag"},
    ],
}
ASSOCIATIONS: list[Any] = [
    [{"kind": LABEL, "name": "red"}],
    [{"kind": LABEL, "name": {"envRef": {"key": "team", "default": "blue"}}}, {"kind": LABEL, "name": "red"}],
    [],
]
RED = {"apiVersion": API_VERSIONS[0], "kind": LABEL, "metadata": {"name": "red"}, "spec": {"color": "#f00"}}
BLUE = {
    "apiVersion": API_VERSIONS[0],
    "kind": LABEL,
    "metadata": {"name": {"envRef": {"key": "team", "default": "blue"}}},
}
HOOK = {
    "apiVersion": API_VERSIONS[1],
    "kind": "NotificationEndpointSlack",
    "metadata": {"name": "hook"},
    "spec": {"url": "x"},
}


@st.composite
def objects(draw: st.DrawFn) -> dict[str, Any]:
    """Objects of all kinds, mostly valid."""
    kind = draw(st.sampled_from(sorted(KINDS)))
    name = draw(
        st.sampled_from(["thing", "a-b", "a_b", "12", {"envRef": {"key": "stage", "default": "dev"}}])
        | st.just("Not A Name")
    )
    return {
        "apiVersion": draw(st.sampled_from(API_VERSIONS)),
        "kind": kind,
        "metadata": {"name": name},
        "spec": draw(specs(kind)),
    }


FOUND = (RED, BLUE, HOOK)
packages = st.lists(objects(), max_size=3).map(lambda found: [*FOUND, *found])
"""Packages with two labels and an endpoint for their objects, mostly valid."""
