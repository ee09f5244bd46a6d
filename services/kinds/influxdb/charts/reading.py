"""
Reads the charts of a dashboard into their normal form, and finds their faults (docs/reference/package-format.md,
"Dashboards").
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from services.kinds.diagnostics import Code
from services.kinds.format.canonical import plain
from services.kinds.format.fields import Fault, Fields, Rewrite, found_text
from services.kinds.format.kind import Scope
from services.kinds.format.references import UsedReference
from services.kinds.format.shapes import nearest
from services.kinds.influxdb.charts.kinds import CHART_KINDS, KIND_NAME, ChartKind
from services.kinds.influxdb.charts.rules import chart_faults
from services.kinds.influxdb.parameters import Script, read_chart_query

Chart = dict[str, Any]
"""
A chart in normal form: in package keys, with exactly the fields that its kind uses.

Charts that look the same are equal. Reading a chart in normal form returns the same chart, unless its source has
queries with parameters (``Charts.written``).
"""


@dataclass(frozen=True, slots=True)
class Charts:
    """
    The charts of a dashboard.

    Attributes:
        kept: The charts without faults, in order.
        faults: The faults of the others, chart by chart.
        references: The parameters of the queries of kept charts.
        written: Source queries that the normal form has in resolved form, by RFC 6901 pointer into the spec.
    """

    kept: list[Chart]
    faults: list[Fault]
    references: tuple[UsedReference, ...]
    written: Mapping[str, Any]


def read_charts(fields: Fields, scope: Scope) -> Charts:
    """Read the charts of a dashboard's spec."""
    kept: list[Chart] = []
    faults: list[Fault] = []
    references: list[UsedReference] = []
    written: dict[str, Any] = {}
    # Counts also charts that are dropped for a parameter value, so that fields of parameters are unique.
    shown = 0
    right = scope.values["charts"] if scope.values is not None else None
    for position, chart in enumerate(fields.mappings("charts")):
        kind = CHART_KINDS.get(KIND_NAME.read(chart.value.get("kind")))
        if kind is None:
            faults.append(_unknown_kind(chart))
            continue
        if right is None:
            values = kind.fields.read(chart.value)
        else:
            values = {key: right[position][key] for key in kind.fields.fields}
        if rule_faults := chart_faults(chart, kind, values, fields_are_right=right is not None):
            faults += rule_faults
            continue
        scripts = _read_scripts(chart, scope, position, shown)
        shown += 1
        if misfits := [fault for _, script in scripts for fault in script.misfits]:
            faults += misfits
            continue
        if any(_differs_from_source(source, script) for source, script in scripts):
            written[f"/charts/{len(kept)}/queries"] = plain(chart.items("queries"))
        references += [
            UsedReference(parameter.reference, parameter.resource_field, parameter.value_type)
            for _, script in scripts
            for parameter in script.parameters
        ]
        kept.append(_normal(kind, values, [script for _, script in scripts]))
    return Charts(kept, faults, tuple(references), written)


def _unknown_kind(chart: Fields) -> Fault:
    """
    The fault of a chart without a known kind; no other rule can be checked (docs/reference/package-format.md, "Chart
    rules", CH1).
    """
    alike = nearest(chart.text("kind").strip(), CHART_KINDS)
    hint = f"; did you mean {alike!r}?" if alike else ""
    reason = f"kind must be {KIND_NAME.problem('')}; {found_text(chart, 'kind')}{hint}"
    code = Code.FIELD_MISSING if chart.value.get("kind") is None else Code.UNKNOWN_CHART_KIND
    return chart.fault(code, "kind", reason, Rewrite(alike) if alike else None)


def _read_scripts(chart: Fields, scope: Scope, position: int, kept_position: int) -> list[tuple[str, Script]]:
    """
    The queries that are not empty, with their scripts, even where the chart shows no queries
    (docs/reference/package-format.md, "Reporting of references").
    """
    scripts: list[tuple[str, Script]] = []
    for place, query in enumerate(chart.mappings("queries")):
        if source := query.text("query"):
            script = read_chart_query(query, scope.name, position, place, kept_position, len(scripts), scope.env)
            scripts.append((source, script))
    return scripts


def _differs_from_source(source: str, script: Script) -> bool:
    """Whether the source of a query has to be kept, as it cannot be restored from the resolved text."""
    return bool(script.parameters) or script.text != source.strip() or not script.text


def _normal(kind: ChartKind, values: Mapping[str, Any], scripts: Sequence[Script]) -> Chart:
    chart = {"kind": kind.name, **values}
    if kind.has_queries:
        chart["queries"] = [{"query": script.text} for script in scripts]
    if "axes" in values:
        chart["axes"] = _effective_axes(kind, values["axes"])
    return chart


def _effective_axes(kind: ChartKind, axes: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """
    The axes that take effect, in an order independent of the source (docs/reference/package-format.md, "Nested chart
    values").
    """
    if kind.flat_axes:
        first = {axis["name"]: axis for axis in reversed(axes)}
        return [first.get(name, empty) for name, empty in kind.flat_axes.items()]
    last = {axis["name"]: axis for axis in axes}
    return [axis for _, axis in sorted(last.items())]
