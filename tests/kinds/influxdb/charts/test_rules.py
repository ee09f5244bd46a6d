"""The faults of charts: CH1 to CH10 of docs/reference/package-format.md, "Chart rules"."""

from typing import Any

import pytest
from hypothesis import given
from jsonschema import Draft202012Validator

from services.kinds.format.fields import Fault
from services.kinds.influxdb.charts.kinds import CHART_KINDS
from services.kinds.influxdb.charts.table import CHART
from tests.kinds.influxdb.charts.examples import Chart, any_charts, chart, read

SIZED = sorted(CHART_KINDS.keys() - {"markdown"})


def paths(*charts: Any) -> list[str]:
    """The paths of all faults, without their common prefix."""
    return [fault.path.removeprefix("spec.charts") for fault in read(*charts).faults]


@pytest.mark.parametrize("kind", CHART_KINDS)
def test_the_smallest_chart_of_each_kind_is_right(kind: str) -> None:
    assert read(chart(kind)).faults == []


@pytest.mark.parametrize("spelled", ["XY", " xy\t", "Xy"])
def test_the_case_of_a_kind_and_space_around_it_do_not_matter(spelled: str) -> None:
    [kept] = read({**chart("xy"), "kind": spelled}).kept
    assert kept["kind"] == "xy"


def x_and_y(**more: Any) -> list[dict[str, Any]]:
    """Axes, the first of them with more fields."""
    return [{"name": "x", **more}, {"name": " y "}]


FAULTY = [
    ({}, ["kind"]),
    ({"kind": "single-stat", "width": "x", "axes": [{"domain": ["ten"]}]}, ["kind"]),
    ({"kind": True}, ["kind"]),
    ({"kind": 5}, ["kind"]),
    # CH2
    (chart("xy", axes=x_and_y(domain=["ten"])), ["axes"]),
    (chart("xy", axes=x_and_y(domain=[1, "2", "1 ", "", "0x1p-2"])), ["axes", "axes"]),
    (chart("gauge", axes=[{"domain": ["ten"]}]), ["axes"]),
    (chart("markdown", axes=[{"domain": ["ten"]}]), ["axes"]),
    # CH3, CH4
    *((chart(kind, width=0), ["width"]) for kind in SIZED),
    *((chart(kind, height="3"), ["height"]) for kind in SIZED),
    (chart("geo", width=0.5, height=-1), ["width", "height"]),
    ({"kind": "band"}, ["width", "height"]),
    # CH5
    *(
        (
            chart(kind, colors=[*chart(kind).get("colors", ()), {"hex": ""}]),
            [f"colors[{2 if kind == 'gauge' else 0}].hex"],
        )
        for kind in SIZED
    ),
    (chart("xy", colors=[{"hex": "#fff"}, {"hex": None}, {"hex": 5}, {}]), ["colors[1].hex", "colors[3].hex"]),
    # CH6
    (chart("gauge", colors=[{"type": "max", "hex": "#fff"}]), ["colors"]),
    (chart("gauge", colors=[{"type": "min", "hex": "#fff"}, {"type": "MAX", "hex": "#fff"}]), ["colors"]),
    (chart("gauge", colors=[]), ["colors", "colors"]),
    (chart("gauge", colors=[{"type": "min"}]), ["colors[0].hex", "colors"]),
    # CH7
    (chart("xy", geom="Line"), ["geom"]),
    (chart("xy", geom=""), ["geom"]),
    (chart("xy", geom=None), ["geom"]),
    # CH8
    *(
        (chart(kind, axes=[{"name": "y"}, {"name": "X"}]), ["axes"])
        for kind in ("heatmap", "scatter", "single_stat_plus_line", "xy", "histogram")
    ),
    *((chart(kind, axes="x"), ["axes", "axes"]) for kind in ("heatmap", "scatter", "single_stat_plus_line", "xy")),
    (chart("histogram", axes=[]), ["axes"]),
    # CH9
    (chart("xy", position="over laid"), ["position"]),
    (chart("xy", position=" stacked"), ["position"]),
    (chart("single_stat_plus_line", position=5), ["position"]),
    # CH10
    (chart("table", tableOptions={"wrapping": "Wrap"}), ["tableOptions.wrapping"]),
    # A chart that breaks several rules has all violations, in order, each with its own path
    # (docs/reference/package-format.md, "Oddities").
    (
        {"kind": "xy", "axes": [{"name": "y2", "domain": ["ten"]}], "colors": [{}], "position": "x"},
        ["axes", "width", "height", "colors[0].hex", "geom", "axes", "axes", "position"],
    ),
]


@pytest.mark.parametrize(("faulty", "expected"), FAULTY)
def test_a_faulty_chart_is_reported_and_dropped(faulty: Chart, expected: list[str]) -> None:
    found = read("no mapping", chart("markdown"), faulty, chart("table"))
    assert [fault.path for fault in found.faults] == [f"spec.charts[1].{path}" for path in expected]
    assert [kept["kind"] for kept in found.kept] == ["markdown", "table"]
    assert len({(fault.path, fault.reason) for fault in found.faults}) == len(expected), "all faults differ"


@pytest.mark.parametrize("faulty", [faulty for faulty, _ in FAULTY])
def test_the_schema_refuses_what_the_rules_refuse(faulty: Chart) -> None:
    assert not Draft202012Validator(CHART.schema()).is_valid(faulty)


@pytest.mark.parametrize(
    "fine",
    [
        chart("markdown", width=0, height="x", colors=[{}]),
        chart("xy", position="OVERLAID"),
        chart("xy", width=1.9),
        chart("xy", axes=[*x_and_y(), {"name": "y2"}]),
        chart("histogram", position="nonsense"),
        chart("band", position="nonsense", geom="nonsense", axes=[]),
        chart("xy", tableOptions={"wrapping": "nonsense"}),
        chart("table", tableOptions={"wrapping": ""}, geom="nonsense"),
        chart("mosaic", axes=[{"name": "x", "domain": [True, None, [], 5]}]),
        chart("geo", geoLayers=[{"viewColors": [{}], "colorDimension": {"domain": ["ten"]}}]),
    ],
)
def test_rules_of_other_kinds_do_not_count(fine: Chart) -> None:
    assert paths(fine) == []


def test_a_fault_leads_to_its_place_in_the_source() -> None:
    faulty = chart("xy", axes=["no mapping", *x_and_y(domain=[1, "ten"])], colors=["no mapping", {}])
    [domain, color] = read("no mapping", faulty).faults
    assert domain.pointer == ("spec", "charts", 1, "axes", 1, "domain", 1)
    assert color.pointer == ("spec", "charts", 1, "colors", 1, "hex")


def test_the_same_entry_in_two_domains_is_the_same_fault() -> None:
    """Their paths and reasons are equal, so a second line would add nothing."""
    [first, second] = read(chart("xy", axes=[{"name": name, "domain": ["ten"]} for name in ("x", "y")])).faults
    assert (first.path, first.reason) == (second.path, second.reason)


@pytest.mark.parametrize(
    ("faulty", "words"),
    [
        ({"kind": "single-stat"}, ["'single-stat'", "did you mean 'single_stat'?"]),
        ({}, ["gauge", "band", "missing"]),
        (chart("xy", axes=x_and_y(domain=["ten"])), ["numbers", "'ten'"]),
        (chart("xy", width="3"), ["width", "from 1", "without quotes", "'3'"]),
        (chart("xy", colors=[{}]), ["hex", "#00C9FF", "missing"]),
        (chart("gauge", colors=[{"type": "max", "hex": "#fff"}]), ["type min", "'max'"]),
        (
            chart("gauge", colors=[{"type": str(i), "hex": "#fff"} for i in range(50)] + [{"type": "max", "hex": "0"}]),
            ["..."],
        ),
        (chart("xy", geom="lines"), ["monotoneX", "'lines'"]),
        (chart("scatter", axes=[{"name": "x"}]), ["named y", "'x'"]),
        (chart("histogram", axes=[]), ["named x", "none"]),
        (chart("xy", position="stack"), ["overlaid", "stacked", "'stack'"]),
        (chart("table", tableOptions={"wrapping": "Wrap"}), ["truncate", "'Wrap'"]),
    ],
)
def test_a_reason_has_the_remedy_and_the_found_value(faulty: Chart, words: list[str]) -> None:
    [fault] = read(faulty).faults
    assert [word for word in words if word not in fault.reason] == []
    assert len(fault.reason) < 200


@given(any_charts)
def test_each_chart_is_either_kept_or_faulty(chart: Chart) -> None:
    found = read(chart)
    assert bool(found.kept) != bool(found.faults)
    assert all(isinstance(fault, Fault) and fault.path.startswith("spec.charts[0].") for fault in found.faults)
