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
        client = Client(orjson.loads(await server.stderr.readline())["addresses"][0])
        yield server, client
        await client.peer.close()
    finally:
        if server.returncode is None:
            server.send_signal(signal.SIGTERM)
        await server.communicate()
