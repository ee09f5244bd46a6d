"""Writes charts in normal form as a person would write them."""

from collections.abc import Mapping
from typing import Any

from services.kinds.influxdb.charts.kinds import CHART_KINDS


def written_chart(chart: Mapping[str, Any]) -> dict[str, Any]:
    """The chart that a person would write for one in normal form; unchanged where this version has no such kind."""
    kind = CHART_KINDS.get(str(chart.get("kind")))
    if kind is None:
        return dict(chart)
    written = {"kind": kind.name, **kind.fields.written(chart)}
    if queries := chart.get("queries"):
        written["queries"] = queries
    if kind.flat_axes and not kind.needed_axes:
        # Axes with nothing but a name are the default.
        written["axes"] = [axis for axis in written.get("axes", ()) if axis.keys() - {"name"}]
        if not written["axes"]:
            del written["axes"]
    return dict(sorted(written.items()))
