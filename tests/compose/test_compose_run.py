"""docker-compose.yml without Docker: its commands, environment and health checks as processes of this machine."""

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from services.settings import PORTS, address_variable
from tests import needs
from tests.apply.packages import STEPS
from tests.compose.compose_file import containers, token_command
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


def data(folder: Path) -> dict[str, str]:
    """Variables with which the containers store their data, and the token, in *folder*."""
    environ = {f"{name.upper()}_DATA": str(folder / name) for name in ("stack", "platform")}
    return environ | {"TOKEN_FOLDER": str(folder / "token")}


async def made_token(environ: Mapping[str, str], folder: Path) -> None:
    """Run the container that makes the token; it prints nothing."""
    command, variables = token_command(environ)
    assert await run(command, base_environment(folder) | dict(variables), folder) == (0, "", "")


def sockets(folder: Path) -> dict[str, str]:
    """Variables with which the containers listen on sockets in *folder*, and store their data there."""
    environ = data(folder)
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
    await made_token(sockets(folder), folder)
    async with up(described, folder):
        results = [
            await run(["sh", "-c", command], base_environment(folder) | dict(described[name].environment), ROOT)
            for name, command in commands
        ]

    assert [(status, errors) for status, _, errors in results] == [(0, "")] * 2
    (_, applied, _), (_, shown, _) = results
    assert "Done: 1 created." in applied
    assert shown.startswith("stack fleet\n")


@pytest.fixture
def own_network() -> Iterator[list[str]]:
    """The words before a command that runs in a network of its own, where no port is taken."""
    with subprocess.Popen(
        ["unshare", "--net", "sh", "-c", "ip link set lo up && echo up && read line"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == b"up\n"
        yield ["nsenter", f"--net=/proc/{holder.pid}/ns/net"]
        holder.communicate(b"\n")


@needs.root()
@needs.program("unshare")
@needs.program("nsenter")
@needs.program("ip")
async def test_the_containers_call_each_other_over_a_network_with_the_token(
    folder: Path, own_network: list[str]
) -> None:
    """As in docker-compose, but for the names of the containers."""
    environ = data(folder) | {f"{name.upper()}_ADDRESS": f"127.0.0.1:{port}" for name, port in PORTS.items()}
    described = {
        name: replace(each, command=(*own_network, *each.command), check=(*own_network, *each.check))
        for name, each in containers(environ).items()
    }
    package = folder / "step-1.json"
    package.write_text(STEPS[1])
    apply = [*own_network, "pkger", "apply", "-f", str(package), "--stack", "s", "--yes"]
    server = base_environment(folder) | {"PKGER_SERVER": "127.0.0.1"}
    await made_token(environ, folder)
    async with up(described, folder):
        refused = await run(apply, server, folder)
        applied = await run(apply, server | {"PKGER_TOKEN_FILE": str(folder / "token" / "token")}, folder)
        inside = await run(
            [*own_network, "pkger", "stacks", "list"], dict(described["applier"].environment) | server, folder
        )
    assert (refused[0], refused[1]) == (10, "")
    assert "no valid token" in refused[2]
    assert (applied[0], applied[2]) == (0, "")
    assert (inside[0], inside[2]) == (0, "")
    token = (folder / "token" / "token").read_text().strip()
    for log in folder.glob("*.log"):
        assert token not in log.read_text()


async def test_the_error_about_a_container_that_cannot_start_has_its_log(folder: Path) -> None:
    """Without that, tests of such a container would fail with a timeout only."""
    environ = sockets(folder) | {"PARSER_LISTEN": f"unix:{folder}/no-such-folder/parser.sock"}
    with pytest.raises(ExceptionGroup) as caught:
        async with up({"parser": containers(environ)["parser"]}, folder):
            pass
    assert "cannot serve" in str(caught.value.exceptions[0])
