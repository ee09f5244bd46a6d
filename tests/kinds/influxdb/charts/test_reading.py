"""Charts in their normal form (docs/reference/package-format.md, "Dashboards")."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.kinds.format.canonical import canonical_text
from services.kinds.format.timestamp import Timestamp
from services.kinds.influxdb.charts.kinds import CHART_KINDS
from services.kinds.influxdb.charts.properties import properties
from tests.kinds.influxdb.charts.examples import Chart, any_charts, chart, read, typed_charts


def kept(source: Chart) -> Chart:
    """The normal form of a chart that has no faults."""
    [found] = read(source).kept
    return found


def test_a_chart_has_the_fields_that_its_kind_uses_with_their_defaults() -> None:
    source = {"kind": "Markdown", "name": " Notes ", "note": " as is ", "prefix": "unused", "unknown": 1, "xPos": 2.9}
    assert kept(source) == {
        "kind": "markdown",
        "name": "Notes",
        **{"xPos": 2, "yPos": 0, "width": 0, "height": 0},
        "note": " as is ",
    }


@pytest.mark.parametrize(
    ("written", "same"),
    [
        ({"queries": None}, {}),
        (
            {"queries": [{"query": " buckets()\n"}]},
            {"queries": [5, {"query": "buckets()", "params": []}, {"query": ""}]},
        ),
        ({"colors": [{"hex": "#fff", "value": 1}]}, {"colors": [{"hex": "#fff", "value": 1.0, "name": "  "}]}),
        ({"axes": [{"name": "y", "base": 10}, {"name": "x"}]}, {"axes": [{"name": "x "}, {"name": "y", "base": "10"}]}),
        ({"staticLegend": {"opacity": 0}}, {"staticLegend": "no mapping"}),
        ({"tableOptions": {"wrapping": "wrap"}, "lat": 5}, {}),
    ],
)
def test_charts_that_look_the_same_are_equal(written: Chart, same: Chart) -> None:
    assert canonical_text(kept(chart("xy", **written))) == canonical_text(kept(chart("xy", **same)))


def test_a_color_that_is_shown_as_hex_has_only_its_hex_value() -> None:
    assert kept(chart("mosaic", colors=[{"hex": "#fff", "name": "white", "value": 5}]))["colors"] == [{"hex": "#fff"}]


@pytest.mark.parametrize(
    ("kind", "labels", "fields"),
    [
        ("histogram", {"x": "1"}, {"label", "domain"}),
        ("heatmap", {"x": "1", "y": "3"}, {"label", "domain", "prefix", "suffix"}),
        ("xy", {"": "4", "x": "2", "y": "3"}, {"label", "domain", "prefix", "suffix", "base", "scale"}),
    ],
)
def test_axes_have_only_the_parts_that_their_chart_uses(kind: str, labels: dict[str, str], fields: set[str]) -> None:
    """Where axes have properties of their own, the first axis with a name counts, elsewhere the last."""
    written = [{"name": name, "label": label} for label, name in enumerate(["x", "x", "y", ""], start=1)]
    axes = kept(chart(kind, axes=written))["axes"]
    assert [(axis["name"], axis["label"]) for axis in axes] == list(labels.items())
    assert all(axis.keys() == fields | {"name"} for axis in axes)


def test_the_axes_of_a_mosaic_that_has_none_are_empty_ones() -> None:
    named_only = kept(chart("mosaic", axes=[{"name": "y"}, {"name": "x"}]))
    assert canonical_text(kept(chart("mosaic"))) == canonical_text(named_only)


@pytest.mark.parametrize(
    ("written", "domain"),
    [
        ([0, 10.0, "2.50", "0x1p-2", "1e3"], [0, 10, 2.5, 0.25, 1000]),
        ([True, None, [], 5], [5]),
        ([2**53 + 1, 2**64], [2**53]),
        (["inf", -math.inf, "nan"], ["+Inf", "-Inf", "NaN"]),
        ("no list", []),
    ],
)
def test_the_domain_of_an_axis_is_normalised_to_numbers(written: Any, domain: list[Any]) -> None:
    """
    Also in charts that lose it (docs/reference/package-format.md, "Oddities"). JSON has no infinities, so they become
    texts.
    """
    source = chart("xy", axes=[{"name": "x", "domain": written}, {"name": "y"}])
    axis = kept(source)["axes"][0]
    assert list(axis["domain"]) == domain
    assert all(type(item) is type(wanted) for item, wanted in zip(axis["domain"], domain, strict=True))
    assert "domain" not in properties(kept(source))["axes"]["x"]


def test_decimal_places_that_are_left_out_are_not_zero() -> None:
    assert [kept(chart("gauge", decimalPlaces=places))["decimalPlaces"] for places in (None, "2", 0)] == [None, None, 0]


PARAMETERS = 'option params = {start: -1h, name: "n"}\n\nfrom(bucket: params.name) |> range(start: params.start)'


def test_parameters_of_queries_become_references() -> None:
    """
    Keys have positions in the source, fields positions in the normal form (docs/reference/package-format.md,
    "Oddities").
    """
    queries = [{"query": ""}, {"query": "buckets()"}, 5, {"query": PARAMETERS, "params": [{"key": "n", "default": 5}]}]
    found = read(chart("markdown"), chart("xy", geom=""), chart("xy", queries=queries))
    key, field = "dashboards[board].spec.charts[2].queries[2].params", "spec.charts[1].queries[1].params"
    assert [(use.reference.env_key, use.resource_field, use.value_type) for use in found.references] == [
        (f"{key}.start", f"{field}.start", ""),
        (f"{key}.name", f"{field}.name", "string"),
        (f"{key}.n", f"{field}.n", ""),
    ]
    assert found.written == {"/charts/1/queries": queries}


def test_a_supplied_value_is_written_into_the_query() -> None:
    source = chart("table", queries=[{"query": PARAMETERS}])
    key = "dashboards[board].spec.charts[0].queries[0].params.name"
    [supplied] = read(source, env={key: "other"}).kept
    assert '"other"' in supplied["queries"][0]["query"]
    assert '"n"' in kept(source)["queries"][0]["query"]


def test_the_parameters_of_a_chart_with_faults_do_not_count() -> None:
    found = read(chart("xy", geom="", queries=[{"query": PARAMETERS}]))
    assert (found.references, found.written) == ((), {})


def test_the_parameters_of_a_query_that_is_not_shown_count() -> None:
    found = read(chart("markdown", queries=[{"query": PARAMETERS}]))
    assert len(found.references) == 2
    assert found.written == {"/charts/0/queries": [{"query": PARAMETERS}]}
    assert "queries" not in found.kept[0]


def test_a_query_of_nothing_but_space_is_shown_empty() -> None:
    """
    It is not empty in the source (docs/reference/package-format.md, "Nested chart values"), but would be empty when
    read again from the normal form.
    """
    found = read(chart("xy", queries=[{"query": " \n"}]))
    assert found.kept[0]["queries"] == [{"query": ""}]
    assert found.written == {"/charts/0/queries": [{"query": " \n"}]}


def test_plain_queries_are_not_written_twice() -> None:
    assert read(chart("xy", queries=[{"query": " // option params = {a: 1}\nbuckets()\n"}])).written == {}


@given(st.lists(typed_charts | any_charts, max_size=3))
def test_a_normal_form_is_read_as_itself(charts: list[Chart]) -> None:
    found = read(*charts)
    again = read(*found.kept)
    assert canonical_text(again.kept) == canonical_text(found.kept)
    assert again.faults == []
    assert not again.written


def _as_json_has_it(value: Any) -> Any:
    """The same tree, in which every number is a float."""
    match value:
        case dict():
            return {key: _as_json_has_it(item) for key, item in value.items()}
        case list():
            return [_as_json_has_it(item) for item in value]
        case int() if not isinstance(value, bool):
            return float(value)
        case _:
            return value


@given(typed_charts | any_charts)
def test_a_source_in_json_is_read_like_one_in_yaml(chart: Chart) -> None:
    from_yaml, from_json = read(chart), read(_as_json_has_it(chart))
    assert canonical_text(from_yaml.kept) == canonical_text(from_json.kept)
    assert from_yaml.faults == from_json.faults


_odd = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from([Timestamp("2020-01-01"), "option params = {a: 1}", " "])
)
_trees = st.recursive(
    _odd,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["kind", "axes", "colors", "domain", "name", "queries", "query"]), inner)
    ),
    max_leaves=12,
)


@given(
    st.sampled_from(sorted(CHART_KINDS)),
    st.dictionaries(st.sampled_from(["axes", "colors", "queries"]), _trees),
    _trees,
)
def test_any_tree_can_be_read(kind: str, fields: Chart, tree: Any) -> None:
    found = read(chart(kind, **fields), tree)
    for item in found.kept:
        canonical_text(properties(item))
    canonical_text([found.kept, dict(found.written)])
