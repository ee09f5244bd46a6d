"""The gateway as a process: alone, with ``pkger up``, and killed in the middle of an apply."""

import asyncio
import math
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import aiohttp
import orjson
import pytest
from pkger.model.v1 import object_pb2
from pkger.stack.v1 import stack_pb2
from pkger.stack.v1.stack_pb2_grpc import StackServiceStub

from services.access.token_file import home_token
from tests.cli.command import ended, environment, installed, sockets, started
from tests.cluster import Cluster

pytestmark = pytest.mark.slow

LABELS = 3000


@asynccontextmanager
async def process(services: Cluster, home: Path) -> AsyncIterator[tuple[Process, aiohttp.ClientSession]]:
    """A gateway as a process of its own, and a client with the home token."""
    headers = {"Authorization": f"Token {home_token(home).token()}"}
    env = environment(home, services.addresses) | {"PKGER_LISTEN": "127.0.0.1:0"}
    running = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "services.gateway", env=env, stdin=DEVNULL, stderr=PIPE
    )
    try:
        assert running.stderr
        [address] = orjson.loads(await running.stderr.readline())["addresses"]
        async with aiohttp.ClientSession(f"http://{address}", headers=headers) as session:
            yield running, session
    finally:
        if running.returncode is None:
            running.kill()
        await running.communicate()


async def stack_of(session: aiohttp.ClientSession) -> tuple[str, str]:
    """Ids of an organization and of a new stack in it."""
    async with session.get("/api/v2/orgs?org=default") as answer:
        org = (await answer.json())["orgs"][0]["id"]
    async with session.post("/api/v2/stacks", json={"orgID": org, "name": "s"}) as answer:
        return org, (await answer.json())["id"]


async def changed(services: Cluster, stack: str, change: str) -> None:
    """Wait until a watch of a stack reports *change*."""
    peer, ref = services.peers["stack"], object_pb2.StackRef(id=stack)
    watched = peer.stream(StackServiceStub(peer.channel).WatchStack, stack_pb2.WatchStackRequest(stack=ref), math.inf)
    async with aclosing(watched):
        async for answer in watched:
            if answer.WhichOneof("change") == change:
                return


async def test_an_apply_ends_even_if_the_gateway_is_killed_during_it(services: Cluster, tmp_path: Path) -> None:
    labels = [
        {"apiVersion": "influxdata.com/v2alpha1", "kind": "Label", "metadata": {"name": f"l{number}"}}
        for number in range(LABELS)
    ]
    async with process(services, tmp_path) as (gateway, session):
        org, stack = await stack_of(session)
        body = {"orgID": org, "stackID": stack, "template": {"contents": labels}}
        apply = asyncio.create_task(session.post("/api/v2/templates/apply", json=body).__aenter__())
        begun = asyncio.create_task(changed(services, stack, "operation_begun"))
        over = asyncio.create_task(changed(services, stack, "operation_ended"))
        await begun
        gateway.kill()
        results = await asyncio.gather(apply, return_exceptions=True)
        assert isinstance(results[0], aiohttp.ClientError)
    await over
    async with process(services, tmp_path) as (gateway, session):
        async with session.get(f"/api/v2/stacks/{stack}") as answer:
            assert len((await answer.json())["resources"]) == LABELS
        gateway.send_signal(signal.SIGTERM)
        assert await gateway.wait() == 0


async def test_pkger_up_runs_the_gateway_and_stops_it_first(short_path: Path) -> None:
    http = f"unix:{short_path}/http.sock"
    env = environment(short_path, sockets(short_path)) | {"PKGER_HTTP_ADDRESS": http}
    up = await started("up", "--http", "--data", str(short_path / "data"), env=env)
    assert up.stdout
    lines = []
    while not (line := await up.stdout.readline()).startswith(b"ready"):
        assert line, (await ended(up)).err
        lines.append(line.decode().split())
    assert ["http", http] in lines
    connector = aiohttp.UnixConnector(f"{short_path}/http.sock")
    async with (
        aiohttp.ClientSession("http://localhost", connector=connector) as session,
        session.get("/health") as answer,
    ):
        assert (await answer.json())["status"] == "pass"
    up.send_signal(signal.SIGINT)
    assert (await ended(up)).code == 0


async def test_an_error_at_the_start_is_logged_in_one_line(tmp_path: Path) -> None:
    env = environment(tmp_path) | {"PKGER_HTTP_TOKENS": str(tmp_path / "nothing")}
    end = await installed("serve", "http", "--listen", "127.0.0.1:0", env=env)
    assert end.code == 1
    assert orjson.loads(end.err)["problem"].startswith("PKGER_HTTP_TOKENS: cannot read")
