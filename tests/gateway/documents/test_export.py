"""Exported objects in the form of InfluxDB declare the same as before."""

import json
from typing import Any

import pytest

from parser_svc.sources import Encoding
from services.gateway.documents.export import exported_object
from tests.gateway.documents.test_whole_documents import PACKAGE
from tests.parser.parsing import objects


def an_object(kind: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v", "kind": kind, "metadata": {"name": "xx"}, "spec": spec}


@pytest.mark.parametrize(
    ("kind", "spec", "shown"),
    [
        ("Label", {}, {"name": "xx"}),
        ("Label", {"name": "other"}, {"name": "other"}),
        ("NotificationEndpointSlack", {"url": "u"}, {"name": "xx", "url": "u", "status": "active"}),
        ("NotificationEndpointHTTP", {"status": "inactive"}, {"name": "xx", "status": "inactive"}),
        ("Dashboard", {}, {"name": "xx", "charts": []}),
        ("CheckDeadman", {}, {"name": "xx"}),
        (
            "CheckThreshold",
            {"thresholds": [{"type": "outside_range", "max": 3}, {"type": "greater"}, {"type": "lesser", "value": 2}]},
            {
                "name": "xx",
                "thresholds": [
                    {"type": "outside_range", "min": 0, "max": 3},
                    {"type": "greater", "value": 0},
                    {"type": "lesser", "value": 2},
                ],
            },
        ),
    ],
)
def test_default_values_are_written(kind: str, spec: dict[str, Any], shown: dict[str, Any]) -> None:
    assert exported_object(an_object(kind, **spec)) == an_object(kind, **shown)


@pytest.mark.parametrize(
    ("chart", "shown"),
    [
        ({"kind": "xy"}, {"kind": "Xy"}),
        ({"kind": "single_stat_plus_line"}, {"kind": "Single_Stat_Plus_Line"}),
        (
            {"kind": "xy", "staticLegend": {"opacity": 1, "show": True}},
            {"kind": "Xy", "staticLegend": {"opacity": 1, "show": True}, "opacity": 1, "show": True},
        ),
        (
            {"kind": "geo", "geoLayers": [{"blur": 1, "colorDimension": {"label": "Value"}}]},
            {
                "kind": "Geo",
                "geoLayers": [
                    {
                        "blur": 1,
                        "colorDimension": {"name": "color", "label": "Value"},
                        "intensityDimension": {"name": "intensity"},
                        "radiusDimension": {"name": "radius"},
                    }
                ],
            },
        ),
    ],
)
def test_charts_have_the_form_of_influxdb(chart: dict[str, Any], shown: dict[str, Any]) -> None:
    found = exported_object(an_object("Dashboard", charts=[chart]))
    assert found["spec"]["charts"] == [shown]


def test_a_package_reads_as_before() -> None:
    """Also charts with a legend, and maps with layers."""
    common = {
        "name": "c",
        "width": 1,
        "height": 1,
        "queries": [{"query": "buckets()"}],
        "colors": [{"hex": "#ffffff", "name": "n", "type": "text"}],
    }
    axes = [{"name": "x", "label": "t"}, {"name": "y"}]
    layers = [{"layerType": "heatmap", "radius": 3, "viewColors": common["colors"], "radiusDimension": {"label": "r"}}]
    charts = [
        {**common, "kind": "xy", "geom": "line", "axes": axes, "staticLegend": {"opacity": 0.5}},
        {**common, "kind": "geo", "geoLayers": layers},
    ]
    package = [*PACKAGE, {**an_object("Dashboard", charts=charts), "apiVersion": PACKAGE[0]["apiVersion"]}]
    before, after = (
        objects(json.dumps(each), encoding=Encoding.JSON) for each in (package, list(map(exported_object, package)))
    )
    assert [each.spec.text for each in after] == [each.spec.text for each in before]
