"""``pkger up`` and ``pkger serve``: supervised, stopped by one Ctrl-C, without orphans."""

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import orjson
import pytest

from services.rpc.health import problem_of
from services.rpc.listening import WAY_OUT
from services.settings import PORTS
from tests import needs
from tests.apply.packages import STEPS, an_object, text
from tests.cli.command import PKGER, ended, environment, installed, pkger, process_at_terminal, sockets, started


@asynccontextmanager
async def running(
    folder: Path, variables: Mapping[str, str] | None = None
) -> AsyncIterator[tuple[asyncio.subprocess.Process, dict[str, str]]]:
    """A ``pkger up`` that is ready, started with more *variables*, and the environment to reach it."""
    env = environment(folder, sockets(folder)) | dict(variables or {})
    process = await started("up", "--data", str(folder / "data"), env=env)
    try:
        assert process.stdout
        while not (line := await process.stdout.readline()).startswith(b"ready"):
            assert line, (await ended(process)).err
        yield process, env
    finally:
        if process.returncode is None:
            process.kill()
            await ended(process)


def environ_of(pid: int) -> dict[str, str]:
    """The environment with which process *pid* was started."""
    rows = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
    return dict(row.split("=", 1) for row in rows if row)


def children(pid: int) -> dict[str, int]:
    """Process id of each service that process *pid* runs."""
    found = {}
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        module = Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")[3].decode()
        found[module] = int(child)
    return found


async def gone(pid: int) -> None:
    """Wait until process *pid* has ended."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    ended_ = asyncio.Event()
    asyncio.get_running_loop().add_reader(descriptor, ended_.set)
    await ended_.wait()
    asyncio.get_running_loop().remove_reader(descriptor)
    os.close(descriptor)


pytestmark = needs.path("/proc/self/task")


async def test_one_ctrl_c_stops_everything_and_leaves_no_orphan(short_path: Path) -> None:
    async with running(short_path) as (process, env):
        services = children(process.pid)
        assert set(services) == {"stack_svc", "services.drivers", "parser_svc", "planner_svc", "applier_svc"}
        package = short_path / "p.json"
        package.write_text(STEPS[1])
        assert (await pkger("apply", "-f", str(package), "--stack", "s", env=env)).code == 0
        process.send_signal(signal.SIGINT)
        end = await ended(process)
        assert end.code == 0
        assert end.out.endswith("stopping\nstopped\n")
        assert not [pid for pid in services.values() if Path(f"/proc/{pid}").exists()]
    assert (short_path / "data" / "stack.db").exists()


async def test_the_token_of_a_platform_reaches_its_driver_alone(short_path: Path) -> None:
    """Every other process would leave it in memory, and in its environment, for nothing."""
    (short_path / "platforms.yml").write_text(
        f"eu: {{driver: influxdb, address: 'unix:{short_path}/eu.sock',"
        " options: {url: 'http://127.0.0.1:9', token_variable: EU_TOKEN}}\n"
    )
    tokens = {"EU_TOKEN": "canary-1", "PKGER_TOKEN": "canary-2", "OTHER": "kept"}
    async with running(short_path, tokens) as (process, _):
        environments = {module: environ_of(pid) for module, pid in children(process.pid).items()}
    assert set(environments) == {"stack_svc", "services.drivers", "parser_svc", "planner_svc", "applier_svc"}
    assert {module: environ["OTHER"] for module, environ in environments.items()} == dict.fromkeys(environments, "kept")
    assert [module for module, environ in environments.items() if "EU_TOKEN" in environ] == ["services.drivers"]
    assert [module for module, environ in environments.items() if "PKGER_TOKEN" in environ] == []


@pytest.mark.parametrize("module", ["parser_svc", "stack_svc", "services.drivers"])
@pytest.mark.slow
async def test_a_service_that_dies_is_restarted(short_path: Path, module: str) -> None:
    async with running(short_path) as (process, env):
        package = short_path / "p.json"
        package.write_text(STEPS[1])
        assert (await pkger("apply", "-f", str(package), "--stack", "s", env=env)).code == 0
        killed = children(process.pid)[module]
        os.kill(killed, signal.SIGKILL)
        await gone(killed)
        await _restarted(process, env)
        assert children(process.pid)[module] != killed
        again = await pkger("apply", "-f", str(package), "--stack", "s", env=env)
        assert (again.code, again.err) == (0, "")
        assert "nothing written" in again.out


async def _restarted(process: asyncio.subprocess.Process, env: Mapping[str, str]) -> None:
    """Wait until the supervisor has logged the restart and all services answer."""
    assert process.stderr
    while not orjson.loads(await process.stderr.readline())["message"].endswith(" service died and is restarted"):
        pass
    while orjson.loads(await process.stderr.readline())["message"] != "serving":
        pass
    for name in PORTS:
        assert not await problem_of(f"unix:{env['PKGER_HOME']}/run/{name}.sock", 30, wait=True)


@pytest.mark.slow
async def test_the_services_of_a_killed_supervisor_end(short_path: Path) -> None:
    async with running(short_path) as (process, _):
        services = children(process.pid)
        process.kill()
        for pid in services.values():
            await gone(pid)


@pytest.mark.slow
async def test_an_apply_ends_well_though_its_supervisor_is_killed_in_the_middle(short_path: Path) -> None:
    labels = [an_object("Label", f"l{number}", f"l{number}") for number in range(2000)]
    package = short_path / "p.json"
    package.write_text(text(*labels, an_object("Task", "t", "t", ["l0"], every="1h", query="x")))
    async with running(short_path) as (process, env):
        services = children(process.pid)
        client = await started("apply", "-f", str(package), "--stack", "s", env=env)
        assert client.stdout
        while b"created" not in await client.stdout.readline():
            pass
        process.kill()
        await ended(client)
        for pid in services.values():
            await gone(pid)
    async with running(short_path) as (_, env):
        # The apply is complete: the applier finished the operation, and the services that it calls waited for it.
        planned = await pkger("plan", "-f", str(package), "--stack", "s", env=env)
        assert planned.out == "Plan: nothing to do.\n"


@pytest.mark.slow
async def test_an_unusable_address_is_reported_and_nothing_is_left_running(short_path: Path) -> None:
    env = environment(short_path) | {
        f"PKGER_{name.upper()}_ADDRESS": f"unix:{short_path}/no/such/folder/{name}.sock" for name in PORTS
    }
    end = await installed("up", env=env)
    assert end.code == 1
    assert end.err.splitlines()[-1].startswith("Error: the ")
    assert "cannot listen on" in end.err
    assert "Traceback" not in end.err


async def test_serve_runs_one_service_on_any_free_port(short_path: Path) -> None:
    process = await started("serve", "parser", "--listen", "127.0.0.1:0", env=environment(short_path))
    assert process.stderr
    lines = [orjson.loads(await process.stderr.readline()) for _ in range(2)]
    assert (lines[0]["message"], lines[0]["path"]) == ("token made", f"{short_path}/token")
    assert not await problem_of(lines[1]["addresses"][0], 10)
    process.send_signal(signal.SIGTERM)
    assert (await ended(process)).code == 0


@pytest.mark.slow
async def test_a_taken_port_ends_up_with_one_line(short_path: Path) -> None:
    """A process that has the port may answer health checks, but is not the started service."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        env = environment(short_path, {**sockets(short_path), "parser": f"127.0.0.1:{port}"})
        refused = await installed("up", "--data", str(short_path / "data"), env=env)
        code, shown = await process_at_terminal("up", "--data", str(short_path / "data"), answers=[], env=env)
    problem = f"cannot listen on 127.0.0.1:{port}: it is in use or not an address of this machine; {WAY_OUT}"
    message = f"Error: the parser service cannot start: {problem}"
    assert refused.code == 1
    *logged, last = refused.err.splitlines()
    assert last == message
    # gRPC itself says nothing.
    assert all(each.startswith("{") for each in logged), logged
    assert all(orjson.loads(each)["message"] for each in logged)
    assert (code, shown.decode().splitlines()) == (1, [message])


@pytest.mark.slow
async def test_a_second_one_on_the_same_databases_is_refused(short_path: Path) -> None:
    async with running(short_path) as (process, _):
        others = short_path / "others"
        others.mkdir()
        data = short_path / "data"
        refused = await installed("up", "--data", str(data), env=environment(short_path, sockets(others)))
        assert (refused.code, refused.out) == (1, "")
        assert refused.err == (
            f"Error: another `pkger up` (process {process.pid}) runs on the databases in {data}; stop it, or give this"
            " one another folder with --data\n"
        )
        process.kill()
        await ended(process)
    # The lock goes with the process.
    async with running(short_path):
        pass


@pytest.mark.slow
async def test_the_first_start_at_a_terminal_is_quiet(short_path: Path) -> None:
    env = environment(short_path, sockets(short_path))
    answers = [(b"Ctrl-C stops everything", b"\x03")]
    code, shown = await process_at_terminal("up", "--data", str(short_path / "data"), answers=answers, env=env)
    lines = shown.decode().splitlines()
    assert code == 0, lines
    assert [line.split()[0] for line in lines[:6]] == ["made", "stack", "platform", "parser", "planner", "applier"]
    assert lines[6].startswith("ready; sockets in ")
    assert [line.removeprefix("^C") for line in lines[7:]] == ["stopping", "stopped"]


@pytest.mark.slow
async def test_a_full_disk_is_reported_in_one_line(short_path: Path) -> None:
    script = f"ulimit -f 0; exec {PKGER} stacks list"
    env = environment(short_path / "home") | {"TMPDIR": str(short_path)}
    code, shown = await process_at_terminal("-c", script, answers=[], env=env, program=Path("/bin/sh"))
    (line,) = shown.decode().splitlines()
    assert (code, line.startswith("Error: cannot make a folder for sockets: ")) == (1, True), line


@pytest.mark.slow
async def test_a_long_path_for_sockets_is_reported_in_one_line(short_path: Path) -> None:
    folder = short_path / ("x" * 100)
    folder.mkdir()
    ended_ = await installed("stacks", "list", env=environment(short_path / "home") | {"TMPDIR": str(folder)})
    assert ended_.code == 1
    assert ended_.err == (
        f"Error: the path of the folder {folder} is too long for sockets in it; set TMPDIR to a shorter one\n"
    )
    assert list(folder.iterdir()) == []
