"""Runs services as child processes: starts them, restarts one that dies, leaves no orphan."""

import asyncio
import contextlib
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from services.cli.errors import Failed
from services.platforms import Platform
from services.rpc.health import problem_of
from services.rpc.parent import LISTENING, VARIABLE
from services.settings import Settings

log = logging.getLogger("pkger.supervisor")

MODULES = {
    "stack": "stack_svc",
    "platform": "services.drivers",
    "parser": "parser_svc",
    "planner": "planner_svc",
    "applier": "applier_svc",
}
"""
The module of each service; that of ``platform`` serves one platform.

They start in this order and stop in the reverse one: who calls before who is called.
"""

GATEWAY = "services.gateway"
"""The module of the HTTP gateway: a client of the services, which none of them needs."""

ALL = "services"
"""The name of a child that runs all services of one command."""

FIRST_TO_STOP = frozenset({"applier", "http", ALL})
"""Children that go first when this process is gone: the services that operations need stay until these are done."""

READY_SECONDS = 30.0
"""How long the services may take to answer their health checks at first."""

STOP_SECONDS = 75.0
"""How long a service may take to stop: an applier lets its operations end, or undoes them, before it goes."""

FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 5.0
"""Pauses before restarts double from the first to the longest; after a service ran for a while, they begin anew."""


@dataclass(frozen=True, slots=True)
class Child:
    """
    A service to run.

    Attributes:
        name: What it is called in messages and logs.
        command: Its module and the arguments of that.
        address: Where it will be.
        has_health: Whether it answers health checks of gRPC; else it is ready once it listens.
    """

    name: str
    command: tuple[str, ...]
    address: str
    has_health: bool = True


def children(names: Collection[str], settings: Settings, platforms: Iterable[Platform]) -> list[Child]:
    """
    The services of those *names*, in the order of ``MODULES``.

    For ``platform`` that is one for each of *platforms*; those without a driver are run by somebody else.
    """
    drivers = [Child(each.service, (MODULES["platform"], each.name), each.address) for each in platforms if each.driver]
    return [
        child
        for name, module in MODULES.items()
        if name in names
        for child in (drivers if name == "platform" else [Child(name, (module,), settings.addresses[name])])
    ]


def one_child(names: Collection[str], settings: Settings, platforms: Collection[Platform]) -> Child:
    """The same services as ``children``, as one process."""
    running = children(names, settings, platforms)
    drivers = {each.service: f"platform:{each.name}" for each in platforms}
    words = [drivers.get(child.name, child.name) for child in running]
    return Child(ALL, ("services.local", *words), running[-1].address)


class _Pipe:
    """
    A pipe that nobody writes to: its end is the news that all who hold the writing end are gone.

    Attributes:
        reading: For those who want the news.
        writing: For those whose end it is.
    """

    def __init__(self) -> None:
        self.reading, self.writing = os.pipe()

    def close(self) -> None:
        """Give both ends up."""
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
            services: What to run, each after those that it calls.
            environ: Their environment.
            stderr_of: Where the log of a service goes; None: to the standard error of this process.
        """
        self._services = {service.name: service for service in services}
        self._environ = environ
        self._stderr_of = stderr_of
        self._processes: dict[str, asyncio.subprocess.Process] = {}
        self._watchers: list[asyncio.Task[None]] = []
        self._logs: dict[str, Path | None] = {}
        self._news: dict[str, int] = {}
        self._top, self._base = _Pipe(), _Pipe()

    @property
    def pids(self) -> dict[str, int]:
        """The process ids of the services by name, as they are now: a restart changes them."""
        return {name: process.pid for name, process in self._processes.items()}

    async def start(self) -> None:
        """
        Start the services and wait until all answer.

        Raises:
            Failed: One of them ended, or did not answer in time; all are stopped again.
        """
        try:
            for name in self._services:
                self._processes[name] = await self._spawn(name)
            await asyncio.gather(*map(self._wait_until_ready, self._services))
        except BaseException:
            await self.stop()
            raise
        self._watchers = [asyncio.create_task(self._watch(name)) for name in self._services]

    async def stop(self) -> None:
        """Stop the services one after the other; every call that one has in flight finds those that it needs."""
        for watcher in self._watchers:
            watcher.cancel()
        await asyncio.gather(*self._watchers, return_exceptions=True)
        for name in reversed(self._services):
            if process := self._processes.get(name):
                await _end(name, process)
        for name in self._services:
            self._close_news(name)
        self._top.close()
        self._base.close()

    async def _spawn(self, name: str) -> asyncio.subprocess.Process:
        # When this process is gone, however it goes, the applier stops first: its operations need all others.
        own, held = (self._top, [self._base.writing]) if name in FIRST_TO_STOP else (self._base, [])
        stderr = self._stderr_of(name)
        self._logs[name] = Path(stderr.name) if stderr else None
        news, told = os.pipe()
        try:
            return await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                *self._services[name].command,
                env={**self._environ, "PKGER_PARENT_PIPE": str(own.reading), VARIABLE: str(told)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                pass_fds=[own.reading, told, *held],
                # A Ctrl-C at the terminal is for this process; it stops the others in order.
                start_new_session=True,
            )
        finally:
            os.close(told)
            self._close_news(name)
            self._news[name] = news
            if stderr:
                stderr.close()

    async def _wait_until_ready(self, name: str) -> None:
        """
        Wait until the service itself says that it listens: who answers at its address may be another one.

        Raises:
            Failed: It ended, or does not get ready.
        """
        try:
            told = await asyncio.wait_for(self._told(name), READY_SECONDS)
        except TimeoutError:
            raise Failed(f"{_named(name)} not listening after {READY_SECONDS:.0f} s") from None
        finally:
            self._close_news(name)
        if told != LISTENING:
            raise Failed(
                told.decode(errors="replace").strip() or f"{_named(name)} not running; {self._last_words(name)}"
            )
        service = self._services[name]
        if service.has_health and (problem := await problem_of(service.address, READY_SECONDS, wait=True)):
            raise Failed(f"{_named(name)} not ready after {READY_SECONDS:.0f} s: {problem}")

    async def _told(self, name: str) -> bytes:
        """What a service said when it began to listen, or why it cannot; nothing if it ended without a word."""
        loop, readable = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._news[name], readable.set)
        try:
            await readable.wait()
        finally:
            loop.remove_reader(self._news[name])
        return os.read(self._news[name], 4096)

    def _close_news(self, name: str) -> None:
        if (descriptor := self._news.pop(name, None)) is not None:
            os.close(descriptor)

    def _last_words(self, name: str) -> str:
        """Where the log of a service is that ended without a word."""
        path = self._logs[name]
        return f"{path} says why" if path else "its log says why"

    async def _watch(self, name: str) -> None:
        pause = FIRST_PAUSE_SECONDS
        loop = asyncio.get_running_loop()
        while True:
            started = loop.time()
            code = await self._processes[name].wait()
            if loop.time() - started > LONGEST_PAUSE_SECONDS:
                pause = FIRST_PAUSE_SECONDS
            log.warning("service died, restarting", extra={"service": name, "exit": code, "pause_s": pause})
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE_SECONDS)
            try:
                self._processes[name] = await self._spawn(name)
                # It starts as it did before, so nobody listens to what it says.
                self._close_news(name)
            except (OSError, Failed) as error:
                log.warning("cannot restart service", extra={"service": name, "problem": str(error)})


def _named(name: str) -> str:
    """The beginning of a sentence about a child."""
    return "the services are" if name == ALL else f"the {name} service is"


async def _end(name: str, process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGTERM)
    try:
        await asyncio.wait_for(process.wait(), STOP_SECONDS)
    except TimeoutError:
        log.warning("service did not stop, killing it", extra={"service": name})
        process.kill()
        await process.wait()
