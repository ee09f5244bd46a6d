"""The stack service as a process: what it wrote outlives it."""

import asyncio
import os
import signal
import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import orjson
import pytest

from services.core.errors import StackLeased
from services.database import Database
from stack_svc.schema import MIGRATIONS
from tests.stack.service import Client, Clock, entry, stack_service


@asynccontextmanager
async def process(data: Path) -> AsyncIterator[tuple[asyncio.subprocess.Process, Client]]:
    """``python -m stack_svc`` on a port that the kernel picks, and a client of it."""
    server = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "stack_svc",
        env={**os.environ, "PKGER_DATA": str(data), "PKGER_LISTEN": "127.0.0.1:0"},
        stderr=asyncio.subprocess.PIPE,
    )
    assert server.stderr
    try:
        client = Client(orjson.loads(await server.stderr.readline())["address"])
        yield server, client
        await client.peer.close()
    finally:
        if server.returncode is None:
            server.send_signal(signal.SIGTERM)
        await server.communicate()


async def test_a_killed_service_has_lost_nothing_it_answered(tmp_path: Path) -> None:
    """Records, leases and request ids, as seen by the next process on the file."""
    async with process(tmp_path) as (server, client):
        made = await client.create("made", request_id="r-1")
        applied = await client.apply("applied", [entry("one", labels=["l"])], ["a.yml"])
        begun = await client.begin("applied")
        server.kill()
        await server.wait()

    async with process(tmp_path) as (server, client):
        assert await client.get(applied.id) == applied
        assert await client.create("made", request_id="r-1") == made
        with pytest.raises(StackLeased):
            await client.begin("applied", operation="op-2")
        assert (await client.record(begun, [entry("two")])).generation == 2
        server.send_signal(signal.SIGTERM)
        assert await server.wait() == 0


async def test_processes_that_start_at_once_on_one_new_file_all_serve(tmp_path: Path) -> None:
    async with process(tmp_path) as (_, first), process(tmp_path) as (_, second):
        made = await first.create("prod")
        assert await second.get(made.id) == made


async def test_services_on_one_file_see_each_others_writes(tmp_path: Path) -> None:
    path, clock = tmp_path / "stack.db", Clock()
    async with stack_service(path, clock) as first, stack_service(path, clock) as second:
        begun = await first.begin("prod")
        stack = await second.record(begun, [entry("one")])
        assert await first.get_named("prod") == stack


def test_opening_a_database_again_changes_nothing(tmp_path: Path) -> None:
    def schema() -> list[tuple[str, str]]:
        with sqlite3.connect(path) as connection:
            found = connection.execute("SELECT name, sql FROM sqlite_master ORDER BY name").fetchall()
        connection.close()
        return found

    path = tmp_path / "stack.db"
    Database(path, MIGRATIONS).close()
    made = schema()

    Database(path, MIGRATIONS).close()

    assert schema() == made
    assert {"stacks", "inventory", "requests"} <= {name for name, _ in made}
