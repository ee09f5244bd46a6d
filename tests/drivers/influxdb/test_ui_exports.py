"""Exports of the user interface of InfluxDB, made into packages."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from planner_svc.export.naming import names_of
from planner_svc.export.objects import Exported, export_objects
from planner_svc.export.selection import Chosen
from services.core.model import Object
from services.drivers.influxdb.codecs.codec import Refused
from services.drivers.influxdb.codecs.registry import CODECS
from services.drivers.influxdb.kinds import traits
from services.drivers.influxdb.ui_exports import NotExported, UiExport, read_exports
from services.kinds.format.canonical import canonical_text
from services.syntax.writer import YamlWriter
from tests.drivers.influxdb.server_model import held
from tests.drivers.influxdb.test_codec_laws import normal_specs
from tests.parser.parsing import objects
from tests.strategies import json_values

TYPES = {"Dashboard": "dashboard", "Task": "task", "Variable": "variable", "Label": "label"}
EXPORTED = ("Dashboard", "Task", "Variable")


def package_of(export: UiExport) -> tuple[Exported, str]:
    """The package that is made from *export*, and its text."""
    names = names_of(export.resources.values(), {}, {})
    chosen = [Chosen(resource, set(resource.label_ids)) for resource in export.resources.values()]
    exported = export_objects(chosen, names, traits(""), YamlWriter())
    return exported, YamlWriter().joined(exported.documents)


def exported_objects(export: UiExport) -> Mapping[str, Object]:
    """The objects of the package, which is valid, by kind."""
    return {item.key.kind: item for item in objects(package_of(export)[1])}


def related(type_: str, *ids: str) -> dict[str, Any]:
    return {type_: {"data": [{"type": type_, "id": id_} for id_ in ids]}}


def export_of(kind: str, body: Mapping[str, Any], *included: dict[str, Any], **related_ids: Any) -> dict[str, Any]:
    """What the user interface exports of a resource in the form of the API."""
    kept = ("name", "description", "flux", "every", "cron", "offset", "status", "arguments", "selected", "properties")
    relationships: dict[str, Any] = dict(related_ids)
    items = list(included)
    if kind == "Dashboard":
        cells = [{**cell, "id": f"c{number}"} for number, cell in enumerate(body["cells"])]
        relationships |= related("cell", *(cell["id"] for cell in cells))
        for cell in cells:
            layout = {key: cell[key] for key in "xywh"}
            view = {"view": {"data": {"type": "view", "id": f"v{cell['id']}"}}}
            items.append({"type": "cell", "id": cell["id"], "attributes": layout, "relationships": view})
            attributes = {"name": cell["name"], "properties": cell["properties"]}
            items.append({"type": "view", "id": f"v{cell['id']}", "attributes": attributes})
    attributes = {key: body[key] for key in kept if key in body}
    data = {"type": TYPES[kind], "attributes": attributes, "relationships": relationships}
    return {
        "meta": {"version": "1", "type": TYPES[kind], "name": f"{body['name']}-Template"},
        "content": {"data": data, "included": items},
        "labels": [],
    }


@pytest.mark.parametrize("kind", EXPORTED)
@given(data=st.data())
def test_a_package_of_an_export_has_what_the_platform_had(kind: str, data: st.DataObject) -> None:
    codec = CODECS[kind]
    try:
        spec = codec.prepare(data.draw(normal_specs(kind)), [])
    except Refused:
        assume(False)
    body = held(kind, codec.write(spec, [], None))
    read = read_exports(export_of(kind, body))
    found = exported_objects(read)[kind]
    assert read.warnings == []
    assert found.spec.text == canonical_text(codec.read(body))


@given(json_values, st.sampled_from(sorted(TYPES.values())), st.just("n n") | json_values)
def test_whatever_stands_in_a_file_is_refused_or_left_out(value: Any, type_: str, name: Any) -> None:
    label = {"type": "label", "id": "l", "attributes": value}
    cell = {"type": "cell", "id": "c", "attributes": value, "relationships": value}
    view = {"type": "view", "id": "c", "attributes": {"properties": {"type": "xy", "queries": value, "axes": value}}}
    item = {"type": type_, "attributes": {"name": name, "arguments": value, "flux": value}, "relationships": value}
    dashboard = {**item, "type": "dashboard", "relationships": related("cell", "c") | related("label", "l")}
    for document in (
        value,
        {"content": value},
        {"content": {"data": item, "included": value}},
        {"content": {"data": dashboard, "included": [label, cell, view, value]}},
    ):
        try:
            export = read_exports(document)
        except NotExported:
            continue
        exported, text = package_of(export)
        assert len(objects(text) if text else ()) == len(exported.documents)


def test_labels_and_variables_of_a_dashboard_become_objects() -> None:
    label = {"type": "label", "id": "1", "attributes": {"name": "ops", "properties": {"color": "#ffffff"}}}
    arguments = {"type": "constant", "values": ["a", "b"]}
    variable = {
        "type": "variable",
        "id": "2",
        "attributes": {"name": "host", "arguments": arguments, "selected": ["b"]},
        "relationships": related("label", "1"),
    }
    body = {"name": "Load", "description": "of hosts", "cells": []}
    export = export_of("Dashboard", body, label, variable, **related("label", "1", "gone"), **related("variable", "2"))
    found = exported_objects(read_exports(export))
    assert set(found) == {"Label", "Variable", "Dashboard"}
    assert found["Variable"].spec.value["selected"] == ["b"]
    for kind in ("Variable", "Dashboard"):
        assert found[kind].associations == (found["Label"].key,)
    # Exports that share a label and a variable are one package.
    several = read_exports([export, export, export_of("Variable", {"name": "other", "arguments": arguments}, label)])
    assert sorted(kind for kind, _ in several.resources) == ["Dashboard", "Dashboard", "Label", "Variable", "Variable"]


@pytest.mark.parametrize(
    ("view", "what"),
    [
        (
            {"name": "Log", "properties": {"shape": "chronograf-v2", "type": "simple-table"}},
            "'Log' of type 'simple-table'",
        ),
        (
            {"name": "Log", "properties": {"shape": "chronograf-v2", "type": "xy", "geom": "stepAfter"}},
            "'Log' of type 'xy'",
        ),
        ({"name": "Log", "properties": {"shape": "chronograf-v2", "type": "xy", "queries": 5}}, "'Log' of type 'xy'"),
        ({"name": "Log"}, "'Log' without a view"),
    ],
)
def test_a_cell_that_packages_lack_is_named(view: dict[str, Any], what: str) -> None:
    cell = {"x": 0, "y": 0, "w": 4, "h": 4, "name": "", "properties": {}}
    export = export_of("Dashboard", {"name": "Load", "cells": [cell]})
    export["content"]["included"][1]["attributes"] = view
    read = read_exports(export)
    assert read.warnings == [f"Dashboard 'Load': the cell {what} is left out: packages cannot express it"]
    assert exported_objects(read)["Dashboard"].spec.value["charts"] == []


@pytest.mark.parametrize(
    "relationships", [{}, {"cell": {"data": None}}, related("cell", "c1"), related("cell", "c1", "c0")]
)
def test_every_cell_belongs_to_the_dashboard(relationships: dict[str, Any]) -> None:
    shown = {"shape": "chronograf-v2", "type": "markdown"}
    cells = [{"x": 0, "y": y, "w": 4, "h": 4, "name": f"n{y}", "properties": shown} for y in (0, 4)]
    export = export_of("Dashboard", {"name": "Load", "cells": cells})
    export["content"]["data"]["relationships"] = relationships
    for item in export["content"]["included"]:
        if item["type"] == "cell":
            item["relationships"] |= related("view", f"v{item['id']}", "another")
    charts = exported_objects(read_exports(export))["Dashboard"].spec.value["charts"]
    assert sorted((chart["name"], chart["yPos"]) for chart in charts) == [("n0", 0), ("n4", 4)]


def test_other_items_are_named() -> None:
    export = export_of(
        "Task", {"name": "Hourly", "flux": "x()", "every": "1h"}, {"type": "bucket", "attributes": {"name": "b"}}
    )
    read = read_exports(export)
    assert read.warnings == ["bucket 'b' is left out: packages have no such kind"]
    assert set(exported_objects(read)) == {"Task"}


def test_properties_of_a_cell_that_packages_lack_are_named() -> None:
    shown = {"shape": "chronograf-v2", "type": "markdown", "note": "read me", "fontSize": 12}
    cell = {"x": 0, "y": 0, "w": 4, "h": 4, "name": "Note", "properties": shown}
    read = read_exports(export_of("Dashboard", {"name": "Load", "cells": [cell]}))
    exported, _ = package_of(read)
    [warning] = [warned.text for warned in exported.warnings]
    assert warning.endswith("packages cannot express fontSize of cell 'Note', which is left out")
