"""Dashboards (docs/reference/package-format.md, "Dashboards")."""

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from services.kinds.format.fields import Fields
from services.kinds.format.kind import ReadResult, Scope
from services.kinds.influxdb.dashboard import KIND
from tests.kinds.influxdb.charts.examples import chart


def read(name: str = "Board", **spec: Any) -> ReadResult:
    """Read the spec of a dashboard."""
    return KIND.read(Fields(spec, "spec", ("spec",)), Scope("board", name))


def test_a_dashboard_has_a_name_a_description_and_charts() -> None:
    assert read(description=" as is ", unknown=5).spec == {"name": "Board", "description": " as is ", "charts": []}


@pytest.mark.parametrize("charts", [None, [], "no list", ["no mapping"]])
def test_a_dashboard_without_charts_is_right(charts: Any) -> None:
    reading = read(charts=charts)
    assert list(reading.faults) == []
    assert KIND.summarise(reading.spec, 0)["charts"] is None


def test_charts_come_before_the_name() -> None:
    faults = read("B", charts=[chart("xy", geom=""), chart("geo"), chart("table", width=0)]).faults
    assert [fault.path for fault in faults] == ["spec.charts[0].geom", "spec.charts[2].width", "spec.name"]


def test_a_name_needs_two_bytes_not_two_letters() -> None:
    assert list(read("é").faults) == []


def test_the_summary_has_every_chart_with_its_place() -> None:
    notes = chart("markdown", note="hi", xPos=1, yPos=2, width=3, height=4, name="left out")
    entry = KIND.summarise(read(description="d", charts=[notes, chart("xy", geom="")]).spec, 5)
    properties = {"shape": "chronograf-v2", "type": "markdown", "note": "hi"}
    assert entry == {
        "id": 5,
        "orgID": 0,
        "name": "Board",
        "description": "d",
        "charts": [{"properties": properties, "xPos": 1, "yPos": 2, "width": 3, "height": 4}],
    }


def test_references_and_written_queries_are_those_of_the_charts() -> None:
    query = {"query": "option params = {a: 1}"}
    reading = read(charts=[chart("xy", queries=[query])])
    assert [use.resource_field for use in reading.references] == ["spec.charts[0].queries[0].params.a"]
    assert reading.written == {"/charts/0/queries": [query]}


def test_the_schema_is_a_schema() -> None:
    Draft202012Validator.check_schema(KIND.fields.schema())
