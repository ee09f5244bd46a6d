"""Dashboards with their cells and views."""

from collections.abc import Iterable, Mapping
from typing import Any

from services.drivers.influxdb.codecs.chart import Chart, normal_chart, read_cell, refuse_chart, written_cell
from services.drivers.influxdb.codecs.codec import Body, Codec, Content, References, Refused
from services.kinds.format.fields import text_of

KIND = "Dashboard"


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


def _merged(wanted: Iterable[Chart], live: list[tuple[Mapping[str, Any], dict[str, Any]]]) -> list[dict[str, Any]]:
    """The cells of the *wanted* charts: of an equal chart if there is one, else of one with the same name and kind."""
    charts, left = list(wanted), list(live)
    cells: list[dict[str, Any] | None] = [None] * len(charts)
    for place, chart in enumerate(charts):
        found = next((item for item in left if item[1] == chart), None)
        if found:
            left.remove(found)
            cells[place] = _kept(found[0])
    merged: list[dict[str, Any]] = []
    for chart, cell in zip(charts, cells, strict=True):
        if cell is not None:
            merged.append(cell)
            continue
        same = ((item[0], item) for item in left if all(item[1][key] == chart[key] for key in ("name", "kind")))
        live_cell, item = next(same, (None, None))
        if item:
            left.remove(item)
        merged.append(written_cell(chart) | ({"id": live_cell["id"]} if live_cell else {}))
    return merged


def _kept(cell: Mapping[str, Any]) -> dict[str, Any]:
    """A cell as it was read, in the form in which the server stores its view."""
    kept = {key: cell[key] for key in ("id", "x", "y", "w", "h", "name") if key in cell}
    return kept | ({"properties": {"properties": cell["properties"]}} if "properties" in cell else {})


CODEC = Codec(KIND, "dashboards", _prepare, _write, _read)
