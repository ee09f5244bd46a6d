"""Several platforms: with services that run for one command, with ``pkger up``, and with ``pkger serve``."""

import json
import os
import signal
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import orjson
import pytest

from services.platforms import Platform
from tests.apply.packages import STEPS
from tests.cli.command import Ended, ended, environment, installed, pkger, sockets, started
from tests.drivers.client import DriverClient
from tests.drivers.platforms import driver_client

ROWS = """
embedded: {{driver: embedded}}
lab: {{driver: embedded, address: 'unix:{folder}/lab.sock', options: {{file: lab.db}}}}
far: {{address: '{far}'}}
"""


@pytest.fixture
async def far(short_path: Path) -> AsyncIterator[DriverClient]:
    """A driver for platform ``far`` that pkger does not run; the platforms file has two other platforms."""
    async with driver_client(Platform("far", "embedded", ""), short_path / "elsewhere") as client:
        (short_path / "platforms.yml").write_text(ROWS.format(folder=short_path, far=client.address))
        yield client


@pytest.fixture
def package(short_path: Path) -> str:
    file = short_path / "p.json"
    file.write_text(STEPS[1])
    return str(file)


async def done(*arguments: str, env: Mapping[str, str]) -> str:
    """The output of a command that succeeds."""
    end = await pkger(*arguments, env=env)
    assert (end.code, end.err) == (0, ""), end.out
    return end.out


async def resource_ids(platform: str, env: Mapping[str, str]) -> set[str]:
    shown = json.loads(await done("stacks", "show", "s", "--platform", platform, "-o", "json", env=env))
    return {resource["resource_id"] for resource in shown["resources"]}


async def one_package_on_each(package: str, env: Mapping[str, str], *platforms: str) -> None:
    """Apply, apply again and delete one package on each platform, in stacks of one name."""
    apply = ("apply", "-f", package, "--stack", "s", "--platform")
    for platform in platforms:
        assert "Done: 3 created" in await done(*apply, platform, env=env)
    for platform in platforms:
        assert "nothing written" in await done(*apply, platform, env=env)
    owned = [await resource_ids(platform, env) for platform in platforms]
    assert len(set().union(*owned)) == sum(map(len, owned)) == 3 * len(platforms)
    listed = json.loads(await done("stacks", "list", "-o", "json", env=env))
    assert sorted(stack["target"]["platform"] for stack in listed) == sorted(platforms)
    for number, platform in enumerate(platforms):
        assert "Done: 3 deleted" in await done("stacks", "delete", "s", "--platform", platform, "--yes", env=env)
        left = json.loads(await done("stacks", "list", "-o", "json", env=env))
        assert {stack["target"]["platform"] for stack in left} == set(platforms[number + 1 :])


def logs(folder: Path) -> set[str]:
    """The services that commands have run in *folder* since the last call."""
    log = folder / "logs" / "services.log"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    log.unlink()
    return {line["service"] for line in lines if line["message"] == "serving"}


@pytest.mark.slow
async def test_services_of_one_command_include_only_the_driver_of_its_target(
    short_path: Path, package: str, far: DriverClient
) -> None:
    env = environment(short_path)
    running = {"stack", "parser", "planner", "applier"}
    for platform, driver in (("lab", {"platform-lab"}), ("embedded", {"platform"}), ("far", set())):
        await done("apply", "-f", package, "--stack", "s", "--platform", platform, env=env)
        assert logs(short_path) == running | driver
    assert len(await far.listing("Bucket", org="default")) == 1
    assert (short_path / "lab.db").exists()

    (short_path / "p.json").write_text(STEPS[3])
    planned = await done("plan", "-f", package, "--stack", "s", "--platform", "lab", "--save", env=env)
    name = planned.partition("--plan ")[2].partition("`")[0]
    logs(short_path)
    assert "Done: 1 updated" in await done("apply", "--plan", name, "--yes", env=env)
    assert logs(short_path) == running | {"platform-lab"}
    await done("operations", "list", env=env)
    assert logs(short_path) == running | {"platform", "platform-lab"}, "an operation may be for any platform"


@pytest.mark.faults
async def test_one_package_goes_to_all_platforms_with_nothing_running(
    short_path: Path, package: str, far: DriverClient
) -> None:
    await one_package_on_each(package, environment(short_path), "lab", "embedded")


@pytest.mark.slow
async def test_up_runs_the_drivers_of_all_rows_that_have_one(short_path: Path, package: str, far: DriverClient) -> None:
    env = environment(short_path, sockets(short_path))
    process = await started("up", env=env)
    assert process.stdout
    printed = []
    try:
        while not (line := (await process.stdout.readline()).decode()).startswith("ready"):
            assert line, (await ended(process)).err
            printed.append(line.split(maxsplit=1))
        assert printed.pop(0)[0] == "made"
        assert printed == [
            ["stack", f"unix:{short_path}/stack.sock\n"],
            ["platform", f"unix:{short_path}/run/platform.sock\n"],
            ["platform-lab", f"unix:{short_path}/run/platform-lab.sock\n"],
            ["parser", f"unix:{short_path}/parser.sock\n"],
            ["planner", f"unix:{short_path}/planner.sock\n"],
            ["applier", f"unix:{short_path}/applier.sock\n"],
            ["platform-far", f"{far.address} (not run here)\n"],
        ]
        await one_package_on_each(package, env, "lab", "embedded", "far")
        unknown = await pkger("plan", "-f", package, "--platform", "moon", env=env)
        problem = "no platform 'moon' is configured; configured are: embedded, far, lab (--platform)"
        assert (unknown.code, unknown.err) == (1, f"Error: {problem}\n")
    finally:
        process.send_signal(signal.SIGINT)
        end = await ended(process)
    assert end.code == 0
    assert end.out == "stopping\nstopped\n"


@pytest.mark.slow
async def test_a_driver_is_served_by_the_name_of_its_row(short_path: Path, far: DriverClient) -> None:
    for arguments, service in (((), "platform"), (("lab",), "platform-lab")):
        process = await started("serve", "platform", *arguments, env=environment(short_path))
        assert process.stderr
        line = orjson.loads(await process.stderr.readline())
        assert line["addresses"] == [f"unix:{short_path}/run/{service}.sock"]
        client = DriverClient(line["addresses"][0])
        assert line["service"] == service
        assert (await client.describe()).platform == "embedded"
        await client.close()
        process.send_signal(signal.SIGTERM)
        assert (await ended(process)).code == 0
    assert {path.name for path in short_path.glob("*.db")} == {"platform.db", "lab.db"}


@pytest.mark.parametrize(
    ("arguments", "code", "printed"),
    [
        pytest.param(
            ("platform", "moon"),
            1,
            "Error: no platform 'moon' is configured; configured are: embedded, far, lab\n",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            ("platform", "far"), 1, "platform far has no driver here; name one to run it\n", marks=pytest.mark.slow
        ),
        (("parser", "lab"), 2, "Error: parser is one service for all platforms; omit lab\n"),
    ],
)
async def test_a_service_that_cannot_be_served_is_reported(
    short_path: Path, far: DriverClient, arguments: tuple[str, ...], code: int, printed: str
) -> None:
    end = await installed("serve", *arguments, env=environment(short_path))
    assert end.code == code
    assert end.err.endswith(printed)
    assert "Traceback" not in end.err


READERS = [
    "plan",
    "up",
    *(pytest.param(f"serve {service}", marks=pytest.mark.slow) for service in ("platform", "planner", "applier")),
]
"""Commands that read the platforms file."""


async def end_of(verb: str, folder: Path, package: str, *, file: str = "", platform: str = "") -> Ended:
    """The end of a command for *platform* with the platforms *file*; that of *folder* by default."""
    env = environment(folder, sockets(folder) if verb == "up" else None) | ({"PKGER_PLATFORMS": file} if file else {})
    words = [*verb.split(), *(["-f", package] if verb == "plan" else [])]
    if platform and verb != "up":
        words += ["--platform", platform] if verb == "plan" else [platform]
    # A service that starts is a process of its own, and ``up`` refuses a faulty file before it starts any.
    end = await (installed if verb.startswith("serve") else pkger)(*words, env=env)
    assert (end.code, "Traceback" in end.err) == (1, False)
    return end


@pytest.mark.parametrize("verb", READERS)
async def test_a_faulty_file_is_reported_by_each_command_that_reads_it(
    short_path: Path, package: str, verb: str
) -> None:
    (short_path / "platforms.yml").write_text("lab: {driver: embedded}\nfar: {adress: x, address: 'a:1'}\n")
    file = f"Error: {short_path}/platforms.yml"
    wanted = (
        f"{file}:1: platform lab: address is missing; write host:port or unix:/path of its driver\n"
        f"{file}:2: platform far: unknown key 'adress'; write driver, address, options\n"
    )
    assert (await end_of(verb, short_path, package)).err == wanted
    # The parser needs no platform.
    assert (await pkger("validate", "-f", package, env=environment(short_path))).code == 0


@pytest.mark.parametrize("verb", READERS)
async def test_a_file_that_is_named_has_to_be_there(short_path: Path, package: str, verb: str) -> None:
    file = f"{short_path}/none.yml"
    end = await end_of(verb, short_path, package, file=file)
    assert end.err == f"Error: PKGER_PLATFORMS={file}: there is no such file\n"


@pytest.mark.parametrize("verb", ["plan", "up", "serve platform"])
@pytest.mark.slow
async def test_a_platform_with_two_rows_is_reported(short_path: Path, package: str, verb: str) -> None:
    file = short_path / "platforms.yml"
    file.write_text(
        "embedded: {driver: embedded}\n"
        f"lab: {{driver: embedded, address: 'unix:{short_path}/lab.sock', options: {{file: platform.db}}}}\n"
    )
    problem = (
        f"{file}:2: platform lab: it has the same data as platform embedded ({file}:1); a platform has one row:"
        " remove one, or give one other options"
    )
    end = await end_of(verb, short_path, package, platform="lab")
    match verb:
        case "plan":
            assert end.err == f"Error: the platform-lab service cannot start: {problem}\n"
        case "up":
            assert "a platform has one row" in end.err
        case _:
            assert problem in end.err
    assert not (short_path / "platform.db").exists()


@pytest.mark.parametrize("verb", ["plan", "serve platform"])
@pytest.mark.slow
async def test_a_file_that_a_driver_cannot_open_is_reported_with_its_row(
    short_path: Path, package: str, verb: str
) -> None:
    file = short_path / "platforms.yml"
    file.write_text(f"embedded: {{driver: embedded, options: {{file: {package}/lab.db}}}}")
    end = await end_of(verb, short_path, package)
    problem = f"{file}:1: platform embedded: the folder {package} cannot be made"
    if verb == "plan":
        assert end.err.startswith(f"Error: the platform service cannot start: {problem}")
    assert problem in end.err


@pytest.mark.parametrize(
    "verb", ["plan", *(pytest.param(verb, marks=pytest.mark.slow) for verb in ("up", "serve platform"))]
)
async def test_an_option_that_a_driver_cannot_take_is_reported(short_path: Path, package: str, verb: str) -> None:
    (short_path / "platforms.yml").write_text("embedded: {driver: embedded, options: {token: canary-8a1f}}")
    problem = f"{short_path}/platforms.yml:1: platform embedded: unknown option 'token', its driver has: file"
    end = await end_of(verb, short_path, package)
    if verb == "plan":
        assert end.err == f"Error: the platform service cannot start: {problem}\n"
        assert os.listdir(short_path / "logs")
    assert problem in end.err
    assert "canary-8a1f" not in end.err
    assert not any(b"canary-8a1f" in path.read_bytes() for path in short_path.rglob("*.log"))
