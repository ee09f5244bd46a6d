"""The services as processes that a test kills and starts again, on addresses that stay."""

import asyncio
import contextlib
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from services.cli.supervisor import MODULES
from services.rpc.health import problem_of
from services.settings import address_variable

READY_SECONDS = 60.0


class Processes:
    """
    Services by name, each a process of its own.

    Attributes:
        addresses: Where they are, whether they run or not.
    """

    def __init__(self, folder: Path, lease: int, modules: Mapping[str, str]) -> None:
        """
        They keep their databases, sockets and logs in *folder*; leases last *lease* seconds.

        A service in *modules* is that module instead of the usual one.
        """
        self._modules = {**MODULES, **modules}
        self.addresses = {name: f"unix:{folder / name}.sock" for name in MODULES}
        self._folder = folder
        self._lease = lease
        self._running: dict[str, Process] = {}
        self._serving: set[str] = set()
        self._changed = asyncio.Condition()

    async def start(self, name: str, more: Mapping[str, str] | None = None, called: str = "") -> None:
        """
        Start a service, with further variables in its environment, and wait until it serves, or is gone.

        A second one of the same service is *called* something else, and nobody calls it.
        """
        called = called or name
        address = self.address(called)
        environ = {key: value for key, value in os.environ.items() if not key.startswith("PKGER_")}
        environ |= {address_variable(service): address for service, address in self.addresses.items()}
        environ |= {"PKGER_HOME": str(self._folder), "PKGER_LEASE": str(self._lease), "PKGER_LISTEN": address}
        environ |= more or {}
        with (self._folder / f"{called}.log").open("ab") as log:
            self._running[called] = await asyncio.create_subprocess_exec(
                sys.executable, "-m", self._modules[name], env=environ, stdin=DEVNULL, stdout=DEVNULL, stderr=log
            )
        ready = asyncio.ensure_future(problem_of(address, READY_SECONDS, wait=True))
        gone = asyncio.ensure_future(self._running[called].wait())
        await asyncio.wait([ready, gone], return_when=asyncio.FIRST_COMPLETED)
        for waiting in (ready, gone):
            waiting.cancel()
        await asyncio.gather(ready, gone, return_exceptions=True)
        if self._running[called].returncode is None:
            async with self._changed:
                self._serving.add(called)
                self._changed.notify_all()

    async def one_serves(self, names: Collection[str]) -> None:
        """Wait until at least one of *names* has been started and not been seen to end."""
        async with self._changed:
            await self._changed.wait_for(lambda: any(name in self._serving for name in names))

    def address(self, name: str) -> str:
        """Where a service is, if only one that was called something else."""
        return self.addresses.get(name) or f"unix:{self._folder / name}.sock"

    async def kill(self, name: str, number: int = signal.SIGKILL) -> None:
        """Kill a service as a power cut would, and wait until it is gone."""
        with contextlib.suppress(ProcessLookupError):
            self._running[name].send_signal(number)
        await self.died(name)

    def pid(self, name: str) -> int:
        """Process id of a service that runs."""
        return self._running[name].pid

    def send(self, name: str, number: int) -> None:
        """Send a signal."""
        self._running[name].send_signal(number)

    async def stands_still(self, name: str) -> None:
        """Wait until SIGSTOP has stopped a service."""
        _, status = await asyncio.to_thread(os.waitpid, self.pid(name), os.WUNTRACED)
        assert os.WIFSTOPPED(status)

    async def ended(self, name: str) -> None:
        """Wait until a service is gone, if only for a moment before somebody kills it."""
        await self._running[name].wait()
        self._serving.discard(name)

    async def died(self, name: str) -> int:
        """Exit status of a service, once it is gone."""
        status = await self._running.pop(name).wait()
        self._serving.discard(name)
        (self._folder / f"{name}.sock").unlink(missing_ok=True)
        return status

    async def stop(self) -> None:
        """Kill all that run."""
        for name in list(self._running):
            # One that was stopped with SIGSTOP dies of SIGKILL all the same.
            await self.kill(name)


@asynccontextmanager
async def processes(folder: Path, lease: int = 2, modules: Mapping[str, str] | None = None) -> AsyncIterator[Processes]:
    """All services but the applier, running; arguments as of ``Processes``."""
    running = Processes(folder, lease, modules or {})
    try:
        async with asyncio.TaskGroup() as tasks:
            for name in MODULES:
                if name != "applier":
                    tasks.create_task(running.start(name))
        yield running
    finally:
        await running.stop()
