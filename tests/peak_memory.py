"""Services as processes whose peak memory is read."""

import asyncio
import re
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import orjson

from tests.cli.command import environment
from tests.transport import socket_in_new_folder

GIGABYTE = 1_000_000_000


@asynccontextmanager
async def measured(
    module: str, home: Path, more: Mapping[str, str] | None = None
) -> AsyncIterator[tuple[str, Callable[[], int]]]:
    """A service as a process: its address, and a function that returns its peak memory up to now, in bytes."""
    with socket_in_new_folder() as address:
        async with _measured(module, address, environment(home) | dict(more or {})) as peak:
            yield address, peak


@asynccontextmanager
async def _measured(module: str, address: str, environ: Mapping[str, str]) -> AsyncIterator[Callable[[], int]]:
    env = {**environ, "PKGER_LISTEN": address}
    running = await asyncio.create_subprocess_exec(sys.executable, "-m", module, env=env, stdin=DEVNULL, stderr=PIPE)
    assert running.stderr
    assert orjson.loads(await running.stderr.readline())["addresses"] == [address]
    log = asyncio.create_task(running.stderr.read())

    def peak() -> int:
        status = Path(f"/proc/{running.pid}/status").read_text()
        match = re.search(r"^VmHWM:\s+(\d+) kB", status, re.MULTILINE)
        assert match
        return int(match[1]) * 1024

    try:
        yield peak
    finally:
        running.kill()
        await asyncio.gather(running.wait(), log)
