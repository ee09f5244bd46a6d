"""The health check of the containers."""

import asyncio
import sys
from pathlib import Path

import grpc.aio
import pytest
from aiohttp.web import Application, AppRunner, UnixSite
from grpc_health.v1 import health_pb2_grpc
from grpc_health.v1._async import HealthServicer
from grpc_health.v1.health_pb2 import HealthCheckResponse

from services.healthcheck import address_to_ask, main
from services.rpc.health import problem_of
from services.rpc.http_health import http_problem_of
from services.rpc.process import Service
from services.rpc.server import serving
from services.settings import PORTS, load
from tests.transport import serving_at_socket, socket_entrance


@pytest.mark.parametrize(
    ("server", "environ", "address"),
    [
        ("", {"PKGER_LISTEN": "0.0.0.0:7"}, "127.0.0.1:7"),
        ("", {"PKGER_LISTEN": "[::]:7"}, "127.0.0.1:7"),
        ("", {"PKGER_LISTEN": ":7"}, "127.0.0.1:7"),
        ("", {"PKGER_LISTEN": "10.0.0.1:7"}, "10.0.0.1:7"),
        ("", {"PKGER_LISTEN": "[::1]:7"}, "[::1]:7"),
        ("", {"PKGER_LISTEN": "unix:/run/stack"}, "unix:/run/stack"),
        ("parser", {"PKGER_RUN": "/run/pkger"}, "unix:/run/pkger/parser.sock"),
        ("parser", {"PKGER_SERVER": "far"}, f"far:{PORTS['parser']}"),
        ("", {"PKGER_LISTEN": "unix:/run/stack,127.0.0.1:7"}, "unix:/run/stack"),
        ("parser", {"PKGER_PARSER_ADDRESS": "parser:1"}, "parser:1"),
        ("parser", {"PKGER_LISTEN": "0.0.0.0:7", "PKGER_RUN": "/r"}, "unix:/r/parser.sock"),
        ("elsewhere:9", {"PKGER_LISTEN": "0.0.0.0:7"}, "elsewhere:9"),
    ],
)
def test_the_server_of_this_environment_is_checked_unless_another_is_named(
    server: str, environ: dict[str, str], address: str
) -> None:
    assert address_to_ask(server, load(environ)) == address


def test_without_an_address_the_check_fails() -> None:
    with pytest.raises(ValueError, match="PKGER_LISTEN"):
        address_to_ask("", load({}))


async def test_a_server_that_serves_has_no_problem() -> None:
    async with serving_at_socket(Service([], [])) as address:
        assert await problem_of(address, 5.0) == ""


@pytest.mark.parametrize("address", ["unix:{folder}/nobody", "no address"])
def test_for_an_unreachable_server_it_prints_one_line_and_exits_with_1(
    address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    address = address.format(folder=tmp_path)

    assert main([address, "--timeout", "0.5"]) == 1

    assert capsys.readouterr().err.splitlines() == [f"{address} does not answer: UNAVAILABLE"]


async def test_the_command_exits_with_0_for_a_server_that_serves() -> None:
    async with serving_at_socket(Service([], [])) as address:
        check = await asyncio.create_subprocess_exec(sys.executable, "-m", "services.healthcheck", address)
        assert await check.wait() == 0


async def test_all_the_servers_named_have_to_serve(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with serving_at_socket(Service([], [])) as one, serving_at_socket(Service([], [])) as other:
        assert await asyncio.to_thread(main, [one, other]) == 0
        assert await asyncio.to_thread(main, [one, f"unix:{tmp_path}/nobody", other]) == 1

    assert capsys.readouterr().err == f"unix:{tmp_path}/nobody does not answer: UNAVAILABLE\n"


async def test_a_wait_ends_when_the_server_answers(tmp_path: Path) -> None:
    address = f"unix:{tmp_path}/late"
    waiting = asyncio.create_task(problem_of(address, 10.0, wait=True))
    assert await problem_of(address, 10.0) == f"{address} does not answer: UNAVAILABLE"
    assert not waiting.done()
    async with serving([], [], [socket_entrance(address)]):
        assert await waiting == ""


async def test_a_wait_ends_when_the_server_is_healthy(tmp_path: Path) -> None:
    """A stopping server still answers: a check of it fails, and a wait continues to the next one."""
    health = HealthServicer()
    await health.set("", HealthCheckResponse.NOT_SERVING)
    address = f"unix:{tmp_path}/tired"
    server = grpc.aio.server()
    health_pb2_grpc.add_HealthServicer_to_server(health, server)
    server.add_insecure_port(address)
    await server.start()
    try:
        waiting = asyncio.create_task(problem_of(address, 10.0, wait=True))
        assert await problem_of(address, 10.0) == f"{address} is NOT_SERVING"
        await health.set("", HealthCheckResponse.SERVING)
        assert await waiting == ""
    finally:
        await server.stop(None)


def test_a_wait_ends_at_its_timeout(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    address = f"unix:{tmp_path}/nobody"
    assert main([address, address, "--wait", "--timeout", "0.2"]) == 1
    assert capsys.readouterr().err == f"{address} does not answer: DEADLINE_EXCEEDED\n" * 2


async def test_a_server_that_answers_otherwise_is_not_said_to_be_silent(tmp_path: Path) -> None:
    address, server = f"unix:{tmp_path}/other", grpc.aio.server()
    server.add_insecure_port(address)
    await server.start()
    assert await problem_of(address, 10.0) == f"{address} answers with an error: UNIMPLEMENTED"
    await server.stop(None)


async def test_another_http_server_is_no_gateway(tmp_path: Path) -> None:
    runner = AppRunner(Application())
    await runner.setup()
    await UnixSite(runner, f"{tmp_path}/other").start()
    problem = await http_problem_of(f"unix:{tmp_path}/other", 10.0)
    await runner.cleanup()
    assert problem == f"unix:{tmp_path}/other is no gateway of pkger: it answers with status 404"
