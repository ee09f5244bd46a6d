"""
The faults of a chart with a known kind: CH2 to CH10 of docs/reference/package-format.md, "Chart rules", in that order.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from services.kinds.diagnostics import Code
from services.kinds.format.fields import Fault, Fields
from services.kinds.influxdb.charts.kinds import ChartKind
from services.kinds.influxdb.charts.shapes import Domain


def chart_faults(
    chart: Fields, kind: ChartKind, values: Mapping[str, Any], fields_are_right: bool = False
) -> list[Fault]:
    """
    All faults of a chart.

    Args:
        chart: The chart.
        kind: Its kind.
        values: The values of the fields of its kind, as read.
        fields_are_right: Whether each field by itself certainly breaks no rule.
    """
    if fields_are_right:
        return [*_domain_faults(chart), *_color_faults(chart, kind, values), *_axis_faults(chart, kind, values)]
    return [
        *_domain_faults(chart),
        *_field_faults(chart, kind, values, "width", "height"),
        *_hex_faults(chart, kind, values),
        *_color_faults(chart, kind, values),
        *_field_faults(chart, kind, values, "geom"),
        *_axis_faults(chart, kind, values),
        *_field_faults(chart, kind, values, "position", "tableOptions"),
    ]


def _domain_faults(chart: Fields) -> Iterator[Fault]:
    """
    Faults of domains (docs/reference/package-format.md, "Chart rules", CH2), for every kind of chart, even one that
    uses no axes; their path names the axes.
    """
    for place, axis in enumerate(chart.items("axes")):
        if isinstance(axis, dict) and "domain" in axis:
            yield from _unreadable(chart, place, axis["domain"])


def _unreadable(chart: Fields, axis: int, domain: Any) -> Iterator[Fault]:
    for place, text in Domain().unreadable(domain):
        # Two axes with the same entry have one fault, as path and reason are equal (docs/reference/package-format.md,
        # "Violations").
        reason = f"the domain of an axis must hold numbers only; found {text[:60]!r}"
        pointer = (*chart.pointer, "axes", axis, "domain", place)
        yield Fault(Code.NUMBER_INVALID, f"{chart.path}.axes", reason, pointer)


def _field_faults(chart: Fields, kind: ChartKind, values: Mapping[str, Any], *keys: str) -> Iterator[Fault]:
    for key in keys:
        if key in values:
            yield from kind.fields.field_faults(chart, values, key)


def _hex_faults(chart: Fields, kind: ChartKind, values: Mapping[str, Any]) -> Iterator[Fault]:
    # A fast check first: nearly all charts have colors, and nearly none has a faulty one.
    if not all(color["hex"] for color in values.get("colors", ())):
        yield from _field_faults(chart, kind, values, "colors")


def _color_faults(chart: Fields, kind: ChartKind, values: Mapping[str, Any]) -> Iterator[Fault]:
    for needed in kind.needed_colors:
        types = [color["type"] for color in values["colors"]]
        if needed not in types:
            reason = f"a {kind.name} needs a color of type {needed}; found {_listed(types)}"
            yield chart.fault(Code.COLOR_MISSING, "colors", reason)


def _axis_faults(chart: Fields, kind: ChartKind, values: Mapping[str, Any]) -> Iterator[Fault]:
    for needed in kind.needed_axes:
        names = [axis["name"] for axis in values["axes"]]
        if needed not in names:
            reason = f"this kind of chart needs an axis named {needed}; found {_listed(names)}"
            yield chart.fault(Code.AXIS_MISSING, "axes", reason)


def _listed(texts: Iterable[str]) -> str:
    shown = [repr(text[:60]) for text in dict.fromkeys(texts)]
    return ", ".join([*shown[:5], *(["..."] if shown[5:] else [])]) or "none"
