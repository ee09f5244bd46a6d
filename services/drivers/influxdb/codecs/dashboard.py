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
    for position, given in enumerate(content.get("charts") or ()):
        chart = normal_chart(given)
        if chart is None:
            raise Refused(f"charts[{position}] of a {KIND} breaks a rule of its chart type")
        refuse_chart(chart, position)
        charts.append(chart)
    return {"name": name, "description": text_of(content.get("description")) or "", "charts": charts}


def _write(spec: Content, _references: References, held: Body | None) -> dict[str, Any]:
    texts = {"name": spec["name"], "description": spec["description"]}
    cells = _cells(held)
    if held is None:
        return {**texts, "cells": [written_cell(chart) for chart in spec["charts"]]}
    shown = [(cell, read_cell(cell)) for cell in cells]
    charts = [(cell, chart) for cell, chart in shown if chart is not None]
    # A cell without a known chart stays: its deletion would be in no plan.
    others = [_kept(cell) for cell, chart in shown if chart is None]
    return {**texts, "cells": [*_merged(spec["charts"], charts), *others]}


def _read(held: Body) -> dict[str, Any]:
    charts = [chart for cell in _cells(held) if (chart := read_cell(cell)) is not None]
    return {"name": held.get("name") or "", "description": held.get("description") or "", "charts": charts}


def shown_charts(held: Body) -> list[dict[str, Any]]:
    """The charts of a dashboard as the server stores them."""
    charts: list[dict[str, Any]] = _read(held)["charts"]
    return charts


def _cells(held: Body | None) -> list[Mapping[str, Any]]:
    return list((held or {}).get("cells") or ())


def _unexpressed(held: Body) -> list[str]:
    names_by_fields: dict[str, list[str]] = {}
    found = []
    for cell in _cells(held):
        name = cell.get("name") or ""
        chart = read_cell(cell)
        if chart is None:
            found.append(f"cell {name!r} ({problem_of(cell)})")
        elif fields := ", ".join(unexpressed_in(cell, chart)):
            names_by_fields.setdefault(fields, []).append(repr(name))
    return found + [_of_cells(fields, names) for fields, names in names_by_fields.items()]


def _resets(spec: Content, held: Body) -> list[str]:
    cells = {cell["id"]: cell for cell in _write(spec, (), held)["cells"] if "id" in cell}
    found = []
    for cell in _cells(held):
        chart = read_cell(cell)
        # A cell without a chart is kept, and the diff shows a deleted one.
        if chart is None or cell["id"] not in cells:
            continue
        written = {**cells[cell["id"]], "properties": cells[cell["id"]]["properties"]["properties"]}
        kept = unexpressed_in(written, read_cell(written) or {})
        fields = [path for path, value in unexpressed_in(cell, chart).items() if kept.get(path) != value]
        if fields:
            found.append(_of_cells(", ".join(fields), [repr(cell.get("name") or "")]))
    return found


def _of_cells(fields: str, names: Sequence[str]) -> str:
    return f"{fields} of {'cell' if len(names) == 1 else 'cells'} {listed(names, _SHOWN_CELLS)}"


def _merged(wanted: Iterable[Chart], live: list[tuple[Mapping[str, Any], dict[str, Any]]]) -> list[dict[str, Any]]:
    """The cells of the *wanted* charts: each the cell of the most similar live chart, if there is one."""
    charts, left = list(wanted), list(live)
    cells: dict[int, dict[str, Any]] = {}
    for is_same in _SAME:
        for place, chart in enumerate(charts):
            found = next((item for item in left if is_same(item[1], chart)), None) if place not in cells else None
            if found:
                left.remove(found)
                cells[place] = _kept(found[0]) if found[1] == chart else written_cell(chart, found[0])
    return [cells.get(place) or written_cell(chart) for place, chart in enumerate(charts)]


def _kept(cell: Mapping[str, Any]) -> dict[str, Any]:
    """A cell as it was read, in the form in which the server stores its view."""
    kept = {key: cell[key] for key in ("id", "x", "y", "w", "h", "name") if key in cell}
    return kept | ({"properties": {"properties": cell["properties"]}} if "properties" in cell else {})


_SAME: Sequence[Callable[[Chart, Chart], bool]] = (
    operator.eq,
    lambda live, wanted: all(live[key] == wanted[key] for key in ("kind", "name")),
    lambda live, wanted: all(live[key] == wanted[key] for key in ("kind", "xPos", "yPos")),
)
"""When a live chart is the wanted one, from the surest sign on."""

CODEC = Codec(KIND, "dashboards", _prepare, _write, _read, unexpressed=_unexpressed, resets=_resets)
