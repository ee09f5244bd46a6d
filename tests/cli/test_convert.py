"""``pkger convert``: a package of what the user interface of InfluxDB exported."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import environment, pkger
from tests.cluster import Cluster

LABEL = {"type": "label", "id": "b1", "attributes": {"name": "ops", "properties": {"color": "#ffb3b3"}}}
CELLS = [
    {"type": "cell", "id": id_, "attributes": {"x": 0, "y": y, "w": 4, "h": 2}} for y, id_ in ((0, "a1"), (2, "a2"))
]
VIEWS = [
    {"type": "view", "id": "a1", "attributes": {"name": "Note", "properties": {"type": "markdown", "note": "read me"}}},
    {"type": "view", "id": "a2", "attributes": {"name": "Log", "properties": {"type": "simple-table"}}},
]
EXPORT = {
    "meta": {"version": "1", "type": "dashboard", "name": "Load-Template"},
    "content": {
        "data": {
            "type": "dashboard",
            "attributes": {"name": "Load", "description": "of all hosts"},
            "relationships": {
                "label": {"data": [{"type": "label", "id": "b1"}]},
                "cell": {"data": [{"type": "cell", "id": "a1"}, {"type": "cell", "id": "a2"}]},
            },
        },
        "included": [LABEL, *CELLS, *VIEWS],
    },
    "labels": [],
}
LEFT_OUT = "warning: Dashboard 'Load': the cell 'Log' of type 'simple-table' is left out: packages cannot express it\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "load.json"
    file.write_text("\ufeff" + json.dumps(EXPORT))
    return file


async def test_the_package_is_planned_as_any_other(services: Cluster, tmp_path: Path, file: Path) -> None:
    env = environment(tmp_path, services.addresses)
    converted = await pkger("convert", str(file), env=env)
    assert (converted.code, converted.err) == (0, LEFT_OUT)
    planned = await pkger("plan", "-f", "-", env=env, typed=converted.out.encode())
    assert "Plan: 2 to create, 1 label(s) to attach." in planned.out
    again = await pkger("convert", "-", env=env, typed=file.read_bytes())
    assert (again.out, again.err) == (converted.out, converted.err)


async def test_a_package_is_utf_8_whatever_the_terminal_takes(tmp_path: Path, file: Path) -> None:
    file.write_text(json.dumps(EXPORT).replace("of all hosts", "für alle"))
    converted = await pkger("convert", str(file), env=environment(tmp_path) | {"PYTHONIOENCODING": "ascii"})
    assert converted.code == 0
    assert "description: für alle\n" in converted.out


@pytest.mark.parametrize("ending", ["yml", "json"])
async def test_a_file_is_written_in_the_encoding_of_its_name(tmp_path: Path, file: Path, ending: str) -> None:
    out, env = tmp_path / f"package.{ending}", environment(tmp_path)
    converted = await pkger("convert", str(file), "-o", str(out), env=env)
    assert (converted.code, converted.out, converted.err) == (0, "", LEFT_OUT)
    assert out.read_text().startswith("[" if ending == "json" else "apiVersion: ")
    assert (await pkger("validate", str(out), env=env)).out == "The package is valid: 1 Dashboard, 1 Label.\n"


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ({"panels": [], "title": "Load"}, "this is a dashboard of Grafana"),
        ([{"kind": "Label"}], "this is no export of the user interface of InfluxDB"),
        ([], "this is no export of the user interface of InfluxDB"),
        ([EXPORT, {}], "this is no export of the user interface of InfluxDB"),
        ("no JSON", "load.json:1:1: this cannot be read as JSON: "),
    ],
)
async def test_another_file_is_refused(tmp_path: Path, file: Path, document: Any, problem: str) -> None:
    file.write_text(document if isinstance(document, str) else json.dumps(document))
    converted = await pkger("convert", str(file), "-o", str(tmp_path / "out.yml"), env=environment(tmp_path))
    assert (converted.code, converted.out) == (1, "")
    assert converted.err.startswith("Error: ")
    assert problem in converted.err
    assert not (tmp_path / "out.yml").exists()
