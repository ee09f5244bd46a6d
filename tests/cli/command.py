"""Runs the ``pkger`` command as people do: as a process of its own."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from services.settings import PORTS, address_variable

PKGER = Path(sys.executable).with_name("pkger")


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str


def environment(home: Path, addresses: Mapping[str, str] | None = None) -> dict[str, str]:
    """An environment in which nothing is configured but *home* and, if given, where the services are."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PKGER_")}
    known = {address_variable(name): address for name, address in (addresses or {}).items()}
    return clean | {"PKGER_HOME": str(home)} | known


async def started(*arguments: str, env: Mapping[str, str]) -> asyncio.subprocess.Process:
    """A running ``pkger``, with nothing on its standard input."""
    return await asyncio.create_subprocess_exec(
        PKGER, *arguments, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


async def ended(process: asyncio.subprocess.Process) -> Ended:
    """The end of a command."""
    out, err = await process.communicate()
    assert process.returncode is not None
    return Ended(process.returncode, out.decode(), err.decode())


async def pkger(*arguments: str, env: Mapping[str, str]) -> Ended:
    """Run ``pkger`` to its end."""
    return await ended(await started(*arguments, env=env))


def sockets(folder: Path) -> dict[str, str]:
    """Addresses of all services as sockets in *folder*."""
    return {name: f"unix:{folder / name}.sock" for name in PORTS}
