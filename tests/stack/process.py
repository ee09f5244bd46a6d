"""The stack service as a process of its own."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import orjson

from tests.stack.service import Client
from tests.transport import socket_in_new_folder


@asynccontextmanager
async def process(data: Path) -> AsyncIterator[tuple[asyncio.subprocess.Process, Client]]:
    """``python -m stack_svc`` at a socket of its own, and a client of it."""
    with socket_in_new_folder() as address:
        async with _process(data, address) as running:
            yield running


@asynccontextmanager
async def _process(data: Path, address: str) -> AsyncIterator[tuple[asyncio.subprocess.Process, Client]]:
    server = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "stack_svc",
        env={**os.environ, "PKGER_DATA": str(data), "PKGER_LISTEN": address},
        stderr=asyncio.subprocess.PIPE,
    )
    assert server.stderr
    try:
        assert orjson.loads(await server.stderr.readline())["addresses"] == [address]
        client = Client(address)
        yield server, client
        await client.peer.close()
    finally:
        if server.returncode is None:
            server.send_signal(signal.SIGTERM)
        await server.communicate()
