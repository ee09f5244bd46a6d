"""Runs the ``pkger`` command: in this process, or as users do, as a process of its own."""

import asyncio
import io
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from services.cli.caller import Caller
from services.cli.main import main
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


def sockets(folder: Path) -> dict[str, str]:
    """Addresses of all services as sockets in *folder*."""
    return {name: f"unix:{folder / name}.sock" for name in PORTS}


def parts(output: str) -> dict[str, Any]:
    """The members of all objects that a command prints as data, one a line: the parts of a plan or a package."""
    return {name: value for line in output.splitlines() for name, value in json.loads(line).items()}


async def pkger(*arguments: str, env: Mapping[str, str], typed: bytes = b"") -> Ended:
    """Call ``pkger`` in this process, without terminal and signals; *typed* is a file on its standard input."""
    assert arguments[0] != "serve", "it would replace the process of the tests"
    return await asyncio.to_thread(_called, arguments, env, typed)


def _called(arguments: Sequence[str], env: Mapping[str, str], typed: bytes) -> Ended:
    encoding, out, err = env.get("PYTHONIOENCODING", "utf-8"), io.BytesIO(), io.BytesIO()
    stdout, stderr = (io.TextIOWrapper(stream, encoding, write_through=True) for stream in (out, err))
    with tempfile.TemporaryFile() as stdin:
        stdin.write(typed)
        stdin.seek(0)
        code = main.call(arguments, Caller(stdin.fileno(), stdout, stderr, env))
    return Ended(code, out.getvalue().decode(), err.getvalue().decode())


async def at_terminal(
    *arguments: str,
    answers: Sequence[tuple[bytes, bytes]],
    env: Mapping[str, str],
    stdin: Path | None = None,
    stdout: Path | None = None,
) -> tuple[int, bytes]:
    """
    Call ``pkger`` in this process, at a terminal of its own, which sends no signals.

    Args:
        arguments: Arguments of the command.
        answers: Pairs of a question and the input that is typed after it.
        env: Its environment.
        stdin: Standard input; None: the terminal.
        stdout: Standard output; None: the terminal.

    Returns:
        Its exit status, and everything that the terminal showed.
    """
    ours, theirs = os.openpty()
    called = asyncio.create_task(asyncio.to_thread(_called_at, theirs, arguments, env, stdin, stdout))
    shown = await _conversation(ours, answers)
    return await called, shown


def _called_at(
    terminal: int, arguments: Sequence[str], env: Mapping[str, str], stdin: Path | None, stdout: Path | None
) -> int:
    path = os.ttyname(terminal)
    with (
        open(terminal, "w", buffering=1) as err,
        open(stdin or path, "rb", buffering=0) as given,
        open(stdout or path, "w", buffering=1) as out,
    ):
        return main.call(arguments, Caller(given.fileno(), out, err, env, path))


async def started(
    *arguments: str, env: Mapping[str, str], stdin: int = subprocess.DEVNULL
) -> asyncio.subprocess.Process:
    """A running process of ``pkger`` without a terminal; *stdin* is empty by default."""
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


async def ended(process: asyncio.subprocess.Process) -> Ended:
    """The result of a process of ``pkger``."""
    out, err = await process.communicate()
    assert process.returncode is not None
    return Ended(process.returncode, out.decode(), err.decode())


async def installed(*arguments: str, env: Mapping[str, str]) -> Ended:
    """Run the installed ``pkger`` to its end, as a process."""
    return await ended(await started(*arguments, env=env))


async def process_at_terminal(
    *arguments: str, answers: Sequence[tuple[bytes, bytes]], env: Mapping[str, str], program: Path = PKGER
) -> tuple[int, bytes]:
    """As ``at_terminal``, for a process of ``pkger`` or of another *program*; the terminal sends signals."""
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
    shown = await _conversation(ours, answers)
    return await process.wait(), shown


async def _conversation(terminal: int, answers: Sequence[tuple[bytes, bytes]]) -> bytes:
    """Type *answers* at the user's side of a terminal; everything that it shows until no program has it open."""
    seen, grown, is_over = bytearray(), asyncio.Event(), asyncio.Event()

    def read() -> None:
        try:
            seen.extend(os.read(terminal, 4096))
        except OSError:
            # No process has the terminal open any more.
            asyncio.get_running_loop().remove_reader(terminal)
            is_over.set()
        grown.set()

    asyncio.get_running_loop().add_reader(terminal, read)
    position = 0
    for question, answer in answers:
        while (at := seen.find(question, position)) < 0:
            assert not is_over.is_set(), seen
            grown.clear()
            await grown.wait()
        position = at + len(question)
        os.write(terminal, answer)
    await is_over.wait()
    os.close(terminal)
    return bytes(seen)
