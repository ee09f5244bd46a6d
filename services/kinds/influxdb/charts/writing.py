"""Charts as people write them, of their normal form."""

from collections.abc import Mapping
from typing import Any

from services.kinds.influxdb.charts.kinds import CHART_KINDS


def written_chart(chart: Mapping[str, Any]) -> dict[str, Any]:
    """The chart that people would write for one in normal form; as it is where this version does not know its kind."""
    kind = CHART_KINDS.get(str(chart.get("kind")))
    if kind is None:
        return dict(chart)
    written = {"kind": kind.name, **kind.fields.written(chart)}
    if queries := chart.get("queries"):
        written["queries"] = queries
    if kind.flat_axes and not kind.needed_axes:
        # Axes that say nothing but their names are there anyway.
        written["axes"] = [axis for axis in written.get("axes", ()) if axis.keys() - {"name"}]
        if not written["axes"]:
            del written["axes"]
    return dict(sorted(written.items()))
