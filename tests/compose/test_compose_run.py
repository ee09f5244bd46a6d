"""docker-compose.yml without Docker: its commands, environment and health checks as processes of this machine."""

import json
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from services.settings import PORTS, address_variable
from tests.apply.packages import STEPS
from tests.compose.compose_file import containers
from tests.compose.processes import base_environment, run, stop, up
from tests.conftest import ROOT

pytestmark = pytest.mark.slow

LABELLED = ["lucid_einstein"]
RECORDS: dict[int, list[tuple[str, str, list[str]]]] = {
    1: [
        ("Bucket", "pristine_noir", LABELLED),
        ("Dashboard", "charmed_saratoba", LABELLED),
        ("Label", "lucid_einstein", []),
    ],
    4: [
        ("Bucket", "pristine_noir", LABELLED),
        ("Dashboard", "charmed_saratoba", LABELLED),
        ("Label", "lucid_einstein", []),
        ("Task", "alcord_mumphries", LABELLED),
    ],
    6: [("Bucket", "pristine_noir", []), ("Dashboard", "charmed_saratoba", [])],
}
RECORDS |= {2: RECORDS[1], 3: RECORDS[1], 5: RECORDS[1]}
"""Kind, name and labels of the resources that the stack owns after each step."""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a short name, as the path of a socket is limited to about 100 characters."""
    made = Path(tempfile.mkdtemp(prefix="pkger-"))
    yield made
    shutil.rmtree(made)


def sockets(folder: Path) -> dict[str, str]:
    """Variables with which the containers listen on sockets in *folder*, and store their data there."""
    environ = {f"{name.upper()}_DATA": str(folder / name) for name in ("stack", "platform")}
    for name in [*PORTS, "http"]:
        environ[f"{name.upper()}_LISTEN"] = environ[f"{name.upper()}_ADDRESS"] = f"unix:{folder / name}.sock"
    return environ


async def pkger(folder: Path, *arguments: str) -> str:
    """The output of a ``pkger`` command that has the addresses of the services."""
    environ = base_environment(folder) | {address_variable(name): f"unix:{folder / name}.sock" for name in PORTS}
    status, output, errors = await run(["pkger", *arguments], environ, folder)
    assert (status, errors) == (0, ""), output
    return output


async def record(folder: Path) -> dict[str, Any]:
    shown: dict[str, Any] = json.loads(await pkger(folder, "stacks", "show", "s", "-o", "json"))
    return shown


def owned(shown: dict[str, Any]) -> list[tuple[str, str, list[str]]]:
    return [
        (each["key"]["kind"], each["key"]["name"], [label["name"] for label in each["associations"]])
        for each in shown["resources"]
    ]


async def test_the_six_steps_run_on_the_containers_of_compose(folder: Path) -> None:
    described = containers(sockets(folder))
    records = {}
    async with up(described, folder) as processes:
        for number, text in STEPS.items():
            package = folder / f"step-{number}.json"
            package.write_text(text)
            await pkger(folder, "apply", "-f", str(package), "--stack", "s", "--yes")
            records[number] = await record(folder)
        statuses = await stop(processes, described)

    assert {number: owned(shown) for number, shown in records.items()} == RECORDS
    assert records[2] == records[1]
    assert records[5]["resources"] == records[3]["resources"] == records[1]["resources"]
    assert records[3]["stack"]["update_time"] > records[1]["stack"]["update_time"]
    assert {shown["stack"]["id"] for shown in records.values()} == {records[1]["stack"]["id"]}
    assert statuses == dict.fromkeys([*PORTS, "http"], 0)

    async with up({"stack": described["stack"]}, folder):
        assert await record(folder) == records[6]


async def test_the_commands_of_the_deployment_page_run_in_their_containers(folder: Path) -> None:
    text = (ROOT / "docs" / "deploy.md").read_text()
    commands = re.findall(r"^docker compose exec (?:-T )?(\w+) (.*)$", text, re.MULTILINE)
    described = containers(sockets(folder))
    async with up(described, folder):
        results = [
            await run(["sh", "-c", command], base_environment(folder) | dict(described[name].environment), ROOT)
            for name, command in commands
        ]

    assert [(status, errors) for status, _, errors in results] == [(0, "")] * 2
    (_, applied, _), (_, shown, _) = results
    assert "Done: 1 created." in applied
    assert shown.startswith("stack fleet\n")


async def test_the_error_about_a_container_that_cannot_start_has_its_log(folder: Path) -> None:
    """Without that, tests of such a container would fail with a timeout only."""
    environ = sockets(folder) | {"PARSER_LISTEN": f"unix:{folder}/no-such-folder/parser.sock"}
    with pytest.raises(ExceptionGroup) as caught:
        async with up({"parser": containers(environ)["parser"]}, folder):
            pass
    assert "cannot serve" in str(caught.value.exceptions[0])
