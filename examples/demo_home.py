"""The services of a demonstration, as processes of their own in a folder that is removed afterwards."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

SERVICES = ("stack", "platform", "parser", "planner", "applier")
LEASE_SECONDS = 3
"""An operation whose lease was not renewed for this time is resumed; the default is ten times as long."""

BIN = Path(sys.executable).parent


class DemoHome:
    """Running services and their home."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        environ = {key: value for key, value in os.environ.items() if not key.startswith("PKGER_")}
        self.environ = environ | {"PKGER_HOME": str(folder), "PKGER_LEASE": str(LEASE_SECONDS)}
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    @classmethod
    @contextmanager
    def started(cls) -> Iterator[Self]:
        """All services, until the block is left."""
        with tempfile.TemporaryDirectory(prefix="pkger-demo-") as folder:
            home = cls(Path(folder))
            try:
                home.serve(*SERVICES)
                yield home
            finally:
                for process in reversed(home._running.values()):
                    process.terminate()
                    process.wait()

    def serve(self, *names: str, failpoint: str = "") -> None:
        """Start services, and wait until they answer; the applier dies at *failpoint*."""
        environ = self.environ | ({"PKGER_FAILPOINT": failpoint} if failpoint else {})
        for name in names:
            # At its socket only, where commands and the other services of the home call it: no port has to be free.
            serve = [BIN / "pkger", "serve", name, "--listen", f"unix:{self.folder}/run/{name}.sock"]
            with (self.folder / f"{name}.log").open("ab") as log:
                self._running[name] = subprocess.Popen(serve, env=environ, stderr=log)
        check = [sys.executable, "-m", "services.healthcheck", *names, "--wait", "--timeout", "30"]
        subprocess.run(check, env=self.environ, check=True, stdout=subprocess.DEVNULL)

    def kill(self, name: str) -> None:
        """Kill a service with SIGKILL."""
        self._running[name].send_signal(signal.SIGKILL)
        self._running[name].wait()

    def stop(self, name: str) -> None:
        """End a service as an operator would."""
        self._running[name].terminate()
        self._running[name].wait()

    def wait_for_death(self, name: str) -> None:
        """Wait until a service has ended."""
        self._running[name].wait()

    def begin(self, *arguments: str, errors: int | None = None) -> "subprocess.Popen[str]":
        """Start ``pkger``; its output is read while it runs. *errors* is where its errors go; None: the terminal."""
        command = [BIN / "pkger", *arguments]
        return subprocess.Popen(command, env=self.environ, stdout=subprocess.PIPE, stderr=errors, text=True)

    def pkger(self, *arguments: str) -> str:
        """
        The output of ``pkger``.

        Raises:
            CalledProcessError: It failed.
        """
        command = [BIN / "pkger", *arguments]
        return subprocess.run(command, env=self.environ, check=True, stdout=subprocess.PIPE, text=True).stdout


def say(message: str) -> None:
    """Print a heading."""
    print(f"\n== {message}", flush=True)
