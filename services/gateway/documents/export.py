"""
Writes exported objects as InfluxDB writes them.

They have the default values that our packages leave out, and InfluxDB's names of chart kinds.
"""

from collections.abc import Callable, Mapping
from typing import Any

from services.kinds.registry import family_of

Content = dict[str, Any]

_RANGES = ("inside_range", "outside_range")

_DIMENSIONS = ("color", "intensity", "radius")
"""The dimensions of the layers of a map; each has a label."""


def exported_object(document: Mapping[str, Any]) -> Content:
    """
    An object of an export in the form of InfluxDB; a package with either form declares the same.

    Args:
        document: The object as the planner writes it.
    """
    spec = {"name": document["metadata"]["name"], **document["spec"]}
    complete = _COMPLETIONS.get(family_of(document["kind"]))
    return {**document, "spec": complete(spec) if complete else spec}


def _check(spec: Content) -> Content:
    if thresholds := spec.get("thresholds"):
        spec["thresholds"] = [_threshold(each) for each in thresholds]
    return spec


def _threshold(threshold: Content) -> Content:
    defaults = {"min": 0, "max": 0} if threshold.get("type") in _RANGES else {"value": 0}
    return {**defaults, **threshold}


def _endpoint(spec: Content) -> Content:
    return {"status": "active", **spec}


def _dashboard(spec: Content) -> Content:
    return {**spec, "charts": [_chart(each) for each in spec.get("charts", ())]}


def _chart(chart: Content) -> Content:
    written = {**chart, "kind": "_".join(word.capitalize() for word in str(chart["kind"]).split("_"))}
    # InfluxDB repeats the members of the legend in the chart, and programs that read its exports may need them there.
    written = {**written.get("staticLegend", {}), **written}
    if layers := written.get("geoLayers"):
        written["geoLayers"] = [_layer(each) for each in layers]
    return written


def _layer(layer: Content) -> Content:
    """A layer of a map with the names of its labels, which InfluxDB fills in."""
    labels = {f"{name}Dimension": {"name": name, **layer.get(f"{name}Dimension", {})} for name in _DIMENSIONS}
    return {**layer, **labels}


_COMPLETIONS: Mapping[str, Callable[[Content], Content]] = {
    "check": _check,
    "dashboard": _dashboard,
    "endpoint": _endpoint,
}
"""Functions that complete a spec, by family."""
