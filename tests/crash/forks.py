"""
Starts services as forks of one process that has imported all of them, as their imports take half a second of CPU.

A fork is a process like any other: it has an environment, a log and a module of its own, and dies alone.

``python -m tests.crash.forks SOCKET`` serves on a socket until its standard input ends. A connection is one fork: a
line of JSON asks for it, a line with its process id answers, and a line follows for each time it stands still
(``stopped``) and when it has ended (its exit status, which is negative for a signal).
"""

import asyncio
import atexit
import contextlib
import importlib
import json
import os
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from services.cli.process.supervisor import MODULES

STOPPED = "stopped"


class Fork:
    """
    A running process.

    Attributes:
        pid: Its process id.
        returncode: Its exit status, negative for a signal; None: it runs.
    """

    def __init__(self, pid: int, lines: asyncio.StreamReader, connection: asyncio.StreamWriter) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._stopped = asyncio.Event()
        self._following = asyncio.create_task(self._follow(lines, connection))

    async def wait(self) -> int:
        """Wait until it has ended; returns its exit status."""
        return await asyncio.shield(self._following)

    async def stopped(self) -> None:
        """Wait until SIGSTOP has stopped it."""
        await self._stopped.wait()

    def send_signal(self, number: int) -> None:
        """
        Send a signal.

        Raises:
            ProcessLookupError: It has ended.
        """
        os.kill(self.pid, number)

    async def _follow(self, lines: asyncio.StreamReader, connection: asyncio.StreamWriter) -> int:
        with contextlib.closing(connection):
            while (line := (await lines.readline()).decode().strip()) == STOPPED:
                self._stopped.set()
            self.returncode = int(line)
            return self.returncode


async def fork(module: str, environ: Mapping[str, str], log: Path) -> Fork:
    """Run *module* as ``python -m`` does, with *environ*; what it writes to standard error is appended to *log*."""
    lines, connection = await asyncio.open_unix_connection(_server())
    connection.write(json.dumps({"module": module, "environ": dict(environ), "log": str(log)}).encode() + b"\n")
    return Fork(int(await lines.readline()), lines, connection)


@cache
def _server() -> str:
    """The socket of a server, which ends with this process."""
    folder = tempfile.TemporaryDirectory(prefix="pkger-forks-")
    address = f"{folder.name}/socket"
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.crash.forks", address], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert server.stdin is not None
    assert server.stdout is not None
    assert server.stdout.readline() == b"serving\n"

    def stop() -> None:
        server.communicate()
        folder.cleanup()

    atexit.register(stop)
    return address


def serve(address: str) -> None:
    """Serve at *address*; returns in each fork, when its module has ended, and when standard input has ended."""
    for module in MODULES.values():
        importlib.import_module(f"{module}.__main__")
        # Each fork runs it under the name __main__.
        del sys.modules[f"{module}.__main__"]
    connections: dict[int, socket.socket] = {}
    woken, waking = socket.socketpair()
    waking.setblocking(False)
    signal.set_wakeup_fd(waking.fileno())
    signal.signal(signal.SIGCHLD, lambda *_: None)
    with socket.socket(socket.AF_UNIX) as listening, selectors.DefaultSelector() as selector:
        listening.bind(address)
        listening.listen()
        for source in (listening, woken, sys.stdin):
            selector.register(source, selectors.EVENT_READ)
        print("serving", flush=True)
        while True:
            ready = [key.fileobj for key, _ in selector.select()]
            if woken in ready:
                woken.recv(4096)
                _report(connections)
            if listening in ready:
                connection, _ = listening.accept()
                request = json.loads(connection.makefile().readline())
                if not (pid := os.fork()):
                    break
                connections[pid] = connection
                connection.sendall(f"{pid}\n".encode())
            if sys.stdin in ready:
                for pid in connections:
                    os.kill(pid, signal.SIGKILL)
                return
    for inherited in (connection, woken, waking, *connections.values()):
        inherited.close()
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _run(**request)


def _report(connections: dict[int, socket.socket]) -> None:
    """Tell the clients what happened to their forks."""
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
            if not pid:
                return
            is_over = not os.WIFSTOPPED(status)
            said = str(os.waitstatus_to_exitcode(status)) if is_over else STOPPED
            # A test that failed may not wait for an answer.
            with contextlib.suppress(BrokenPipeError):
                connections[pid].sendall(f"{said}\n".encode())
            if is_over:
                connections.pop(pid).close()


def _run(module: str, environ: dict[str, Any], log: str) -> None:
    os.environ.clear()
    os.environ.update(environ)
    with open(os.devnull, "r+b") as nothing, open(log, "ab") as errors:
        for number, file in enumerate((nothing, nothing, errors)):
            os.dup2(file.fileno(), number)
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    serve(sys.argv[1])
