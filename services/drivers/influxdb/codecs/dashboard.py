"""Dashboards with their cells and views."""

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from services.core.text_lists import listed
from services.drivers.influxdb.codecs.chart import (
    Chart,
    normal_chart,
    problem_of,
    read_cell,
    refuse_chart,
    unexpressed_in,
    written_cell,
)
from services.drivers.influxdb.codecs.codec import Body, Codec, Content, References, Refused
from services.kinds.format.fields import text_of

KIND = "Dashboard"

_SHOWN_CELLS = 5


def _prepare(content: Content, _references: References) -> dict[str, Any]:
    name = text_of(content.get("name")) or ""
    if not name:
        raise Refused(f"a {KIND} needs a name that is not empty")
    charts = []
    for position, entry in enumerate(content.get("charts") or ()):
        chart = normal_chart(entry)
        if chart is None:
            raise Refused(f"charts[{position}] of a {KIND} breaks a rule of its chart type")
        refuse_chart(chart, position)
        charts.append(chart)
    return {"name": name, "description": text_of(content.get("description")) or "", "charts": charts}


def _write(spec: Content, _references: References, live: Body | None) -> dict[str, Any]:
    texts = {"name": spec["name"], "description": spec["description"]}
    cells = _cells(live)
    if live is None:
        return {**texts, "cells": [written_cell(chart) for chart in spec["charts"]]}
    shown = [(cell, read_cell(cell)) for cell in cells]
    charts = [(cell, chart) for cell, chart in shown if chart is not None]
    # A cell without a known chart stays: its deletion would be in no plan.
    others = [_kept(cell) for cell, chart in shown if chart is None]
    return {**texts, "cells": [*_merged(spec["charts"], charts), *others]}


def _read(live: Body) -> dict[str, Any]:
    charts = [chart for cell in _cells(live) if (chart := read_cell(cell)) is not None]
    return {"name": live.get("name") or "", "description": live.get("description") or "", "charts": charts}


def shown_charts(body: Body) -> list[dict[str, Any]]:
    """The charts of a dashboard as the server stores them."""
    charts: list[dict[str, Any]] = _read(body)["charts"]
    return charts


def _cells(live: Body | None) -> list[Mapping[str, Any]]:
    return list((live or {}).get("cells") or ())


def _unexpressed(live: Body) -> list[str]:
    names_by_fields: dict[str, list[str]] = {}
    chartless_cells = []
    for cell in _cells(live):
        name = cell.get("name") or ""
        chart = read_cell(cell)
        if chart is None:
            chartless_cells.append(f"cell {name!r} ({problem_of(cell)})")
        elif fields := ", ".join(unexpressed_in(cell, chart)):
            names_by_fields.setdefault(fields, []).append(repr(name))
    return chartless_cells + [_of_cells(fields, names) for fields, names in names_by_fields.items()]


def _resets(spec: Content, live: Body) -> list[str]:
    cells = {cell["id"]: cell for cell in _write(spec, (), live)["cells"] if "id" in cell}
    resets = []
    for cell in _cells(live):
        chart = read_cell(cell)
        # Neither needs a remark: a cell without a chart is kept as it is, and the diff shows a deleted cell.
        if chart is None or cell["id"] not in cells:
            continue
        written = {**cells[cell["id"]], "properties": cells[cell["id"]]["properties"]["properties"]}
        kept = unexpressed_in(written, read_cell(written) or {})
        fields = [path for path, value in unexpressed_in(cell, chart).items() if kept.get(path) != value]
        if fields:
            resets.append(_of_cells(", ".join(fields), [repr(cell.get("name") or "")]))
    return resets


def _of_cells(fields: str, names: Sequence[str]) -> str:
    return f"{fields} of {'cell' if len(names) == 1 else 'cells'} {listed(names, _SHOWN_CELLS)}"


def _merged(desired: Iterable[Chart], live: list[tuple[Mapping[str, Any], dict[str, Any]]]) -> list[dict[str, Any]]:
    """The cells of the *desired* charts: each the cell of the most similar live chart, if there is one."""
    charts, left = list(desired), list(live)
    cells: dict[int, dict[str, Any]] = {}
    for is_same in _SAME:
        for place, chart in enumerate(charts):
            counterpart = next((item for item in left if is_same(item[1], chart)), None) if place not in cells else None
            if counterpart:
                left.remove(counterpart)
                cells[place] = _kept(counterpart[0]) if counterpart[1] == chart else written_cell(chart, counterpart[0])
    return [cells.get(place) or written_cell(chart) for place, chart in enumerate(charts)]


def _kept(cell: Mapping[str, Any]) -> dict[str, Any]:
    """A cell as it was read, in the form in which the server stores its view."""
    kept = {key: cell[key] for key in ("id", "x", "y", "w", "h", "name") if key in cell}
    return kept | ({"properties": {"properties": cell["properties"]}} if "properties" in cell else {})


_SAME: Sequence[Callable[[Chart, Chart], bool]] = (
    operator.eq,
    lambda live, desired: all(live[key] == desired[key] for key in ("kind", "name")),
    lambda live, desired: all(live[key] == desired[key] for key in ("kind", "xPos", "yPos")),
)
"""Rules by which a live chart is taken for the desired one; the most reliable rule comes first."""

CODEC = Codec(KIND, "dashboards", _prepare, _write, _read, unexpressed=_unexpressed, resets=_resets)
