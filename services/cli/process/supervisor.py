"""Runs services as child processes: starts them, restarts a service that dies, and leaves no orphan."""

import asyncio
import contextlib
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from services.cli.errors import CommandFailed
from services.platforms import Platform
from services.rpc.health import problem_of
from services.rpc.startup_pipe import LISTENING, VARIABLE
from services.settings import HTTP, PORTS, SECRET_PREFIX, Settings, address_variable, socket_address

log = logging.getLogger("pkger.supervisor")

MODULES = {
    "stack": "stack_svc",
    "platform": "services.drivers",
    "parser": "parser_svc",
    "planner": "planner_svc",
    "applier": "applier_svc",
}
"""
The module of each service; the module of ``platform`` serves one platform.

Services start in this order and stop in reverse order: a caller stops before the services that it calls.
"""

AS_MODULE = ("-P", "-m")
"""
Options of Python that run a module, without the modules of the working directory: there may be the files of somebody
else's package.
"""

GATEWAY = "services.gateway"
"""The module of the HTTP gateway, a client of the services; no service calls it."""

ALL = "services"
"""The name of the child that runs all services of one command."""

FIRST_TO_STOP = frozenset({"applier", "http", ALL})
"""Children that stop first when this process is gone: services that operations need stay until these have stopped."""

TOKEN_OF_COMMANDS = "PKGER_TOKEN"  # noqa: S105
"""The environment variable with the token of a command for services; no service needs it."""

ADDRESS_VARIABLES = frozenset({"PKGER_SERVER", "PKGER_LISTEN", *(address_variable(name) for name in (*PORTS, HTTP))})
"""The environment variables with addresses of services."""

READY_SECONDS = 30.0
"""How long the services may take to answer their first health check."""

STOP_SECONDS = 75.0
"""How long a service may take to stop: an applier first finishes its operations or rolls them back."""

FIRST_BACKOFF_SECONDS = 0.1
LONGEST_BACKOFF_SECONDS = 5.0
"""The backoff before restarts doubles from the first to the longest; a longer run of the service resets it."""


@dataclass(frozen=True, slots=True)
class Child:
    """
    A service to run.

    Attributes:
        name: Its name in messages and logs.
        command: Its module, and arguments.
        listen: The addresses that it listens on, its socket first.
        own_address: Whether a variable sets the last of them.
        has_health: Whether it answers gRPC health checks; otherwise it is ready once it listens.
        variables: The environment variables with credentials that it needs; no child gets those of others.
    """

    name: str
    command: tuple[str, ...]
    listen: tuple[str, ...]
    own_address: bool = False
    has_health: bool = True
    variables: frozenset[str] = frozenset()


def environment_of(child: Child, services: Iterable[Child], environ: Mapping[str, str]) -> dict[str, str]:
    """
    The part of *environ* for *child*: without the credentials that only others of *services*, or commands, need, and
    without the addresses of services, as *services* call each other at their sockets.
    """
    withheld = {TOKEN_OF_COMMANDS, *ADDRESS_VARIABLES}.union(*(each.variables for each in services)) - child.variables
    listen = {"PKGER_LISTEN": ",".join(child.listen)} if child.own_address else {}
    return {name: value for name, value in environ.items() if name not in withheld} | listen


def children(names: Collection[str], settings: Settings, platforms: Iterable[Platform]) -> list[Child]:
    """
    The services of those *names*, in the order of ``MODULES``.

    ``platform`` stands for one service for each of *platforms* with a driver; others run elsewhere.
    """
    drivers = [
        Child(
            each.service,
            (MODULES["platform"], each.name),
            (socket_address(settings.run, each.service),),
            variables=each.variables,
        )
        for each in platforms
        if each.driver
    ]
    return [
        child
        for name, module in MODULES.items()
        if name in names
        for child in (drivers if name == "platform" else [_child(name, module, settings)])
    ]


def gateway(settings: Settings) -> Child:
    """The HTTP gateway."""
    return replace(_child(HTTP, GATEWAY, settings), has_health=False)


def _child(name: str, module: str, settings: Settings) -> Child:
    # PKGER_LISTEN is for a server that runs alone.
    listen = replace(settings, listen=()).listen_addresses(name)
    # Only the applier calls the functions of phases.
    secrets = frozenset(f"{SECRET_PREFIX}{each}" for each in settings.secret_variables) if name == "applier" else ()
    own_address = name in settings.own_addresses
    return Child(name, (module,), listen, own_address=own_address, variables=frozenset(secrets))


def one_child(names: Collection[str], settings: Settings, platforms: Collection[Platform]) -> Child:
    """The services of ``children`` as one process, at their sockets only."""
    running = children(names, settings, platforms)
    drivers = {each.service: f"platform:{each.name}" for each in platforms}
    words = [drivers.get(child.name, child.name) for child in running]
    variables = frozenset[str]().union(*(child.variables for child in running))
    return Child(ALL, ("services.local", *words), running[-1].listen[:1], variables=variables)


class _Pipe:
    """
    A pipe without data: it is closed once all processes that hold the writing end are gone.

    Attributes:
        reading: The end for the processes that wait until the pipe is closed.
        writing: The end for the processes whose end is awaited.
    """

    def __init__(self) -> None:
        self.reading, self.writing = os.pipe()

    def close(self) -> None:
        """Close both ends."""
        for end in (self.reading, self.writing):
            with contextlib.suppress(OSError):
                os.close(end)


class Supervisor:
    """The services of one machine."""

    def __init__(
        self,
        services: Iterable[Child],
        environ: Mapping[str, str],
        stderr_of: Callable[[str], IO[bytes] | None],
    ) -> None:
        """
        Args:
            services: Services to run, each after the services that it calls.
            environ: The environment, of which each gets its part (``environment_of``).
            stderr_of: Opens the log of a service; None: the log goes to the standard error of this process.
        """
        self._services = {service.name: service for service in services}
        self._environ = environ
        self._stderr_of = stderr_of
        self._processes: dict[str, asyncio.subprocess.Process] = {}
        self._watchers: list[asyncio.Task[None]] = []
        self._logs: dict[str, Path | None] = {}
        self._status_pipes: dict[str, int] = {}
        self._top, self._base = _Pipe(), _Pipe()

    @property
    def pids(self) -> dict[str, int]:
        """The current process ids of the services by name; a restart changes them."""
        return {name: process.pid for name, process in self._processes.items()}

    async def start(self) -> None:
        """
        Start the services and wait until all are ready.

        Raises:
            CommandFailed: A service ended, or was not ready in time; all are stopped again.
        """
        waits: list[asyncio.Task[None]] = []
        try:
            for name in self._services:
                self._processes[name] = await self._spawn(name)
            waits = [asyncio.create_task(self._wait_until_ready(name)) for name in self._services]
            await asyncio.gather(*waits)
        except BaseException:
            await _cancel(waits)
            await self.stop()
            raise
        self._watchers = [asyncio.create_task(self._watch(name)) for name in self._services]

    async def stop(self) -> None:
        """Stop the services one by one, each before the services that its calls in flight need."""
        await _cancel(self._watchers)
        for name in reversed(self._services):
            if process := self._processes.get(name):
                await _end(name, process)
        for name in self._services:
            self._close_status_pipe(name)
        self._top.close()
        self._base.close()

    async def _spawn(self, name: str) -> asyncio.subprocess.Process:
        # However this process ends, the applier stops first: its operations need the other services.
        own, base_ends = (self._top, [self._base.writing]) if name in FIRST_TO_STOP else (self._base, [])
        environ = environment_of(self._services[name], self._services.values(), self._environ)
        stderr = self._stderr_of(name)
        self._logs[name] = Path(stderr.name) if stderr else None
        reading, writing = os.pipe()
        try:
            return await asyncio.create_subprocess_exec(
                sys.executable,
                *AS_MODULE,
                *self._services[name].command,
                env={**environ, "PKGER_PARENT_PIPE": str(own.reading), VARIABLE: str(writing)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                pass_fds=[own.reading, writing, *base_ends],
                # A Ctrl-C at the terminal must reach only this process, which stops the services in order.
                start_new_session=True,
            )
        finally:
            os.close(writing)
            self._close_status_pipe(name)
            self._status_pipes[name] = reading
            if stderr:
                stderr.close()

    async def _wait_until_ready(self, name: str) -> None:
        """
        Wait until the service reports that it listens: another process may answer at its address.

        Raises:
            CommandFailed: It ended, or is not ready in time.
        """
        try:
            message = await asyncio.wait_for(self._first_message(name), READY_SECONDS)
        except TimeoutError:
            raise CommandFailed(f"{_named(name)} not listening after {READY_SECONDS:.0f} s") from None
        finally:
            self._close_status_pipe(name)
        if message != LISTENING:
            hint = f"{_named(name)} not running; {self._log_hint(name)}"
            raise CommandFailed(message.decode(errors="replace").strip() or hint)
        service = self._services[name]
        if service.has_health and (problem := await problem_of(service.listen[0], READY_SECONDS, wait=True)):
            raise CommandFailed(f"{_named(name)} not ready after {READY_SECONDS:.0f} s: {problem}")

    async def _first_message(self, name: str) -> bytes:
        """The message of a starting service: that it listens, or why it cannot; empty if it ended without one."""
        loop, readable = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._status_pipes[name], readable.set)
        try:
            await readable.wait()
        finally:
            loop.remove_reader(self._status_pipes[name])
        return os.read(self._status_pipes[name], 4096)

    def _close_status_pipe(self, name: str) -> None:
        if (descriptor := self._status_pipes.pop(name, None)) is not None:
            os.close(descriptor)

    def _log_hint(self, name: str) -> str:
        """A hint at the log of a service that ended without a message."""
        path = self._logs[name]
        return f"{path} says why" if path else "its log says why"

    async def _watch(self, name: str) -> None:
        backoff = FIRST_BACKOFF_SECONDS
        loop = asyncio.get_running_loop()
        while True:
            started = loop.time()
            code = await self._processes[name].wait()
            if loop.time() - started > LONGEST_BACKOFF_SECONDS:
                backoff = FIRST_BACKOFF_SECONDS
            # Without a log of its own, as in a command that runs the services itself, a user reads the message only.
            log.warning("the %s service died and is restarted", name, extra={"exit": code, "pause_s": backoff})
            await asyncio.sleep(backoff)
            backoff = min(backoff * 2, LONGEST_BACKOFF_SECONDS)
            try:
                self._processes[name] = await self._spawn(name)
                # Its first message is not read after a restart.
                self._close_status_pipe(name)
            except (OSError, CommandFailed) as error:
                log.warning("the %s service cannot be restarted: %s", name, error)


async def _cancel(tasks: Collection[asyncio.Task[None]]) -> None:
    """Cancel *tasks*, and return once all have ended."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _named(name: str) -> str:
    """Subject and verb of a message about a child."""
    return "the services are" if name == ALL else f"the {name} service is"


async def _end(name: str, process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        # Process.send_signal would first reap a process that has just ended; asyncio then warns that it is unknown.
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGTERM)
    try:
        await asyncio.wait_for(process.wait(), STOP_SECONDS)
    except TimeoutError:
        log.warning("service did not stop, killing it", extra={"service": name})
        process.kill()
        await process.wait()
