"""The services as processes that a test kills and restarts, on fixed addresses."""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from services.cli.process.supervisor import MODULES
from services.rpc.health import problem_of
from services.settings import address_variable
from tests.crash.forks import Fork, fork

READY_SECONDS = 60.0


class Processes:
    """
    Services by name, each a process of its own.

    Attributes:
        addresses: Their addresses, which stay the same when a service is down.
    """

    def __init__(
        self, folder: Path, lease: int, modules: Mapping[str, str], variables: Mapping[str, str] | None = None
    ) -> None:
        """
        Databases, sockets and logs are in *folder*; leases last *lease* seconds.

        *modules* replaces the module of a service; *variables* are added to the environment of all.
        """
        self._modules = {**MODULES, **modules}
        self.addresses = {name: f"unix:{folder / name}.sock" for name in MODULES}
        self._folder = folder
        self._lease = lease
        self._variables = variables or {}
        self._running: dict[str, Fork] = {}
        self._serving: set[str] = set()
        self._changed = asyncio.Condition()

    async def start(self, name: str, more: Mapping[str, str] | None = None, called: str = "") -> None:
        """
        Start a service, with *more* variables in its environment, and wait until it serves or has exited.

        A second process of a service needs another name, *called*, and gets an address that no other service uses.
        """
        called = called or name
        address = self.address(called)
        environ = {key: value for key, value in os.environ.items() if not key.startswith("PKGER_")}
        environ |= {address_variable(service): address for service, address in self.addresses.items()}
        environ |= {"PKGER_HOME": str(self._folder), "PKGER_LEASE": str(self._lease), "PKGER_LISTEN": address}
        environ |= {**self._variables, **(more or {})}
        self._running[called] = await fork(self._modules[name], environ, self._folder / f"{called}.log")
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
        """The address of a service, or of a second process of one by its name."""
        return self.addresses.get(name) or f"unix:{self._folder / name}.sock"

    async def kill(self, name: str, number: int = signal.SIGKILL) -> None:
        """Kill a service, by default with SIGKILL, and wait until it has exited."""
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
        await self._running[name].stopped()

    async def ended(self, name: str) -> None:
        """Wait until a service has exited by itself; ``died`` or ``kill`` has to follow."""
        await self._running[name].wait()
        self._serving.discard(name)

    async def died(self, name: str) -> int:
        """Wait until a service has exited; returns its exit status."""
        status = await self._running.pop(name).wait()
        self._serving.discard(name)
        (self._folder / f"{name}.sock").unlink(missing_ok=True)
        return status

    async def stop(self) -> None:
        """Kill all running services."""
        for name in list(self._running):
            # SIGKILL also ends a process that SIGSTOP has stopped.
            await self.kill(name)


@asynccontextmanager
async def processes(
    folder: Path,
    lease: int = 2,
    modules: Mapping[str, str] | None = None,
    variables: Mapping[str, str] | None = None,
) -> AsyncIterator[Processes]:
    """Run all services but the applier; arguments as of ``Processes``."""
    running = Processes(folder, lease, modules or {}, variables)
    try:
        async with asyncio.TaskGroup() as tasks:
            for name in MODULES:
                if name != "applier":
                    tasks.create_task(running.start(name))
        yield running
    finally:
        await running.stop()
