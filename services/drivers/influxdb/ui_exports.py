"""The JSON that the user interface of InfluxDB exports: one dashboard, task or variable, with all that it uses."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pkger.model.v1 import object_pb2

from services.core.model import LABEL, Resource, ResourceKey
from services.drivers.influxdb.codecs.chart import read_cell
from services.drivers.influxdb.codecs.dashboard import KIND as DASHBOARD
from services.drivers.influxdb.reading import stored
from services.drivers.wire import resource_fields
from services.rpc.convert.objects import resource_from_pb

_KINDS = {"dashboard": DASHBOARD, "task": "Task", "variable": "Variable", "label": LABEL}
"""The kinds of resources by the types that exports have."""

_PARTS = ("cell", "view")
"""The types of the entries of exports that are no resources: the parts of the dashboard."""

_UNREADABLE = (AttributeError, KeyError, TypeError, ValueError)
"""
The exceptions of the reading functions for a value of the wrong type, which a file may have and the API never returns.
"""

Item = Mapping[str, Any]
"""An entry of an export: its type, id, attributes and relationships."""


class NotExported(Exception):
    """The document is no export of the user interface."""


@dataclass(slots=True)
class UiExport:
    """
    The content of one or several exports.

    Attributes:
        resources: The resources, with the ids of the labels that are exported too; each has an id of its own.
        warnings: What is left out, one sentence each.
    """

    resources: dict[ResourceKey, Resource] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


def read_exports(document: Any) -> UiExport:
    """
    Read an export, or a list of exports.

    Raises:
        NotExported: The document, or an item of the list, is no export, or the list is empty.
    """
    ui_export = UiExport()
    exports = document if isinstance(document, list) else [document]
    if not exports:
        raise NotExported
    for number, export in enumerate(exports):
        content = _mapping(export, "content")
        data = _mapping(content, "data")
        if _KINDS.get(str(data.get("type")), LABEL) == LABEL:
            raise NotExported
        items = content.get("included")
        included = [item for item in items if isinstance(item, Mapping)] if isinstance(items, list) else []
        # Tasks and dashboards are exported without their ids.
        own_id = data.get("id") or f"{_mapping(data, 'attributes').get('name')}{number or ''}"
        _read([*included, {**data, "id": own_id}], ui_export)
    return ui_export


def _read(items: Sequence[Item], ui_export: UiExport) -> None:
    items_by_id = {(str(item.get("type")), str(item.get("id"))): item for item in items}
    for item in items:
        type_, attributes = str(item.get("type")), _mapping(item, "attributes")
        if type_ in _PARTS:
            continue
        shown = f"{_KINDS.get(type_, type_)} {attributes.get('name')!r}"
        if type_ not in _KINDS:
            ui_export.warnings.append(f"{shown} is left out: packages have no such kind")
            continue
        labels = [{"id": id_} for id_ in _related(item, "label") if ("label", id_) in items_by_id]
        body = {"name": "", "flux": "", **attributes, "id": str(item.get("id")), "labels": labels}
        if type_ == "dashboard":
            body["cells"] = list(_cells(item, items_by_id, shown, ui_export.warnings))
        try:
            resource = resource_from_pb(object_pb2.Resource(**resource_fields(stored(_KINDS[type_], body, {}))))
        except _UNREADABLE:
            ui_export.warnings.append(f"{shown} is left out: it cannot be read")
            continue
        ui_export.resources.setdefault((resource.kind, resource.id), resource)


def _cells(
    dashboard: Item, items_by_id: Mapping[tuple[str, str], Item], shown: str, warnings: list[str]
) -> Iterator[dict[str, Any]]:
    """The cells of a dashboard that packages can express, with their views, as the API has them."""
    # An export has one dashboard, so all cells are of this one.
    ids = dict.fromkeys([*_related(dashboard, "cell"), *(id_ for type_, id_ in items_by_id if type_ == "cell")])
    for id_ in ids:
        cell = items_by_id.get(("cell", id_), {})
        view_id, *_ = [*_related(cell, "view"), id_]
        view = _mapping(items_by_id.get(("view", view_id), {}), "attributes")
        place = _mapping(cell, "attributes")
        body = {**place, "id": id_, "name": view.get("name"), "properties": _mapping(view, "properties")}
        try:
            is_chart = read_cell(body) is not None
        except _UNREADABLE:
            is_chart = False
        if is_chart:
            yield body
            continue
        what = f"of type {body['properties'].get('type')!r}" if body["properties"] else "without a view"
        warnings.append(f"{shown}: the cell {view.get('name') or id_!r} {what} is left out: packages cannot express it")


def _related(item: Item, type_: str) -> list[str]:
    """The ids of the items of a type that *item* refers to."""
    data = _mapping(_mapping(item, "relationships"), type_).get("data")
    links = data if isinstance(data, list) else [data]
    return [str(each["id"]) for each in links if isinstance(each, Mapping) and "id" in each]


def _mapping(value: Any, key: str) -> Mapping[str, Any]:
    entry = value.get(key) if isinstance(value, Mapping) else None
    return entry if isinstance(entry, Mapping) else {}
