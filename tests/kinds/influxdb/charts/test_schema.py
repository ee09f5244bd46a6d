"""The JSON Schema of charts, and the remarks on probable mistakes."""

from typing import Any

import pytest
from hypothesis import assume, given
from jsonschema import Draft202012Validator

from services.kinds.format.fields import Fields
from services.kinds.influxdb.charts.fields import FIELDS
from services.kinds.influxdb.charts.kinds import CHART_KINDS
from services.kinds.influxdb.charts.table import CHART
from tests.kinds.influxdb.charts.examples import Chart, chart, read, typed_charts

SCHEMA = CHART.schema()


def remarks(source: Chart) -> dict[str, str]:
    """The remarks on a chart, by path."""
    return {remark.path: remark.text for remark in CHART.remarks(Fields(source, "chart", ()))}


def test_it_is_a_schema() -> None:
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("kind", CHART_KINDS)
def test_it_accepts_the_smallest_chart_of_each_kind(kind: str) -> None:
    for spelled in (kind, kind.title(), f" {kind.upper()}"):
        assert Draft202012Validator(SCHEMA).is_valid({**chart(kind), "kind": spelled})


def test_it_accepts_any_values_in_unused_fields() -> None:
    layer = {"viewColors": [{}], "radiusDimension": {"name": 5, "domain": ["ten"]}}
    notes = chart(
        "markdown", colors=[{}], geom="none", position="none", tableOptions={"wrapping": "x"}, geoLayers=[layer]
    )
    assert Draft202012Validator(SCHEMA).is_valid(notes)


@given(typed_charts)
def test_it_accepts_every_chart_without_faults(chart: Chart) -> None:
    """If its fields have the right types; the schema also rejects values that reading ignores."""
    assume(not read(chart).faults)
    assert [error.message for error in Draft202012Validator(SCHEMA).iter_errors(chart)] == []


def _described(schema: dict[str, Any]) -> list[str]:
    """The fields of a schema, at any depth, without a text to show in an editor."""
    silent = [
        key for key, field in schema.get("properties", {}).items() if not field.get("description", "").endswith(".")
    ]
    inner = [schema["items"]] if "items" in schema else list(schema.get("properties", {}).values())
    return silent + [key for field in inner for key in _described(field)]


def test_every_field_has_a_description() -> None:
    assert _described(SCHEMA) == []


def test_a_field_that_the_kind_does_not_use_gets_no_remark() -> None:
    everything = dict.fromkeys(FIELDS) | {
        "kind": "markdown",
        "geom": "line",
        "axes": [{"base": "2"}],
    }
    assert remarks(everything) == {}


def test_a_field_of_the_legend_that_is_repeated_beside_it_gets_no_remark() -> None:
    legend = {"opacity": 0.5, "show": False, "valueAxis": "x"}
    chart = {"kind": "xy", "staticLegend": legend, **legend}
    assert remarks(chart) == {}
    assert list(remarks({**chart, "show": True, "widthRatio": 1})) == ["chart.show", "chart.widthRatio"]
    assert list(remarks({**chart, "staticLegend": []})) == ["chart.staticLegend", *(f"chart.{key}" for key in legend)]


def test_the_remark_on_a_mistyped_field_names_the_probable_field() -> None:
    layer = {"colorDimension": {"name": "c", "domain": [], "Label": "C"}}
    texts = remarks(chart("geo", Queries=[], geoLayers=[layer], axes=[{"lable": "x"}]))
    assert {path: text.rpartition(" mean ")[2] for path, text in texts.items()} == {
        "chart.Queries": "'queries'?",
        "chart.geoLayers[0].colorDimension.Label": "'label'?",
        "chart.axes[0].lable": "'label'?",
    }


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"decimalPlaces": "2"}, "without quotes"),
        ({"decimalPlaces": 2.5}, "cut"),
        ({"position": True}, "a text"),
        ({"axes": [{"domain": "0,5"}]}, "a list"),
        ({"axes": [{"domain": [0, True]}]}, "1 of its items"),
        ({"noteOnEmpty": "true"}, "true or false"),
    ],
)
def test_a_value_that_will_be_ignored_or_changed_gets_a_remark(fields: Chart, words: str) -> None:
    [text] = remarks(chart("xy") | fields).values()
    assert words in text
