"""Runs the ``pkger`` command as users do: as a process of its own."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from services.settings import PORTS, address_variable

# A preexec_fn with these lines may crash: it runs after a fork of a process with the threads of gRPC.
_AT_OWN_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
)
"""Makes standard input the controlling terminal of the process, then executes the command."""

PKGER = Path(sys.executable).with_name("pkger")


@dataclass(frozen=True)
class Ended:
    """Exit status and output of a command."""

    code: int
    out: str
    err: str


def environment(home: Path, addresses: Mapping[str, str] | None = None) -> dict[str, str]:
    """An environment that configures only *home* and, if given, the addresses of the services."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PKGER_")}
    known = {address_variable(name): address for name, address in (addresses or {}).items()}
    return clean | {"PKGER_HOME": str(home)} | known


async def started(
    *arguments: str, env: Mapping[str, str], stdin: int = subprocess.DEVNULL
) -> asyncio.subprocess.Process:
    """A running ``pkger`` without a terminal; *stdin* is empty by default."""
    return await asyncio.create_subprocess_exec(
        PKGER,
        *arguments,
        env=env,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # It must not use the terminal of the test run.
        start_new_session=True,
    )


async def ended(process: asyncio.subprocess.Process, typed: bytes | None = None) -> Ended:
    """The result of a command, which reads *typed* from its standard input."""
    out, err = await process.communicate(typed)
    assert process.returncode is not None
    return Ended(process.returncode, out.decode(), err.decode())


async def pkger(*arguments: str, env: Mapping[str, str]) -> Ended:
    """Run ``pkger`` to its end."""
    return await ended(await started(*arguments, env=env))


async def at_terminal(
    *arguments: str, answers: Sequence[tuple[bytes, bytes]], env: Mapping[str, str], program: Path = PKGER
) -> tuple[int, bytes]:
    """
    Run ``pkger``, or another program, at a terminal of its own.

    Args:
        arguments: Arguments of the command.
        answers: Pairs of a question and the input that is typed after it.
        env: Its environment.
        program: The program to run.

    Returns:
        Its exit status, and everything that the terminal showed.
    """
    ours, theirs = os.openpty()
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        _AT_OWN_TERMINAL,
        program,
        *arguments,
        env=env,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    seen, grown, is_over = bytearray(), asyncio.Event(), asyncio.Event()

    def read() -> None:
        try:
            seen.extend(os.read(ours, 4096))
        except OSError:
            # No process has the terminal open any more.
            asyncio.get_running_loop().remove_reader(ours)
            is_over.set()
        grown.set()

    asyncio.get_running_loop().add_reader(ours, read)
    position = 0
    for question, answer in answers:
        while (at := seen.find(question, position)) < 0:
            assert not is_over.is_set(), seen
            grown.clear()
            await grown.wait()
        position = at + len(question)
        os.write(ours, answer)
    await is_over.wait()
    code = await process.wait()
    os.close(ours)
    return code, bytes(seen)


def sockets(folder: Path) -> dict[str, str]:
    """Addresses of all services as sockets in *folder*."""
    return {name: f"unix:{folder / name}.sock" for name in PORTS}
