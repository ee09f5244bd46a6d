"""Runs services as a process: settings, servers, shutdown."""

import asyncio
import gc
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass

from services.rpc.entrances import CannotServe, entrances_of
from services.rpc.log import log_to_stderr
from services.rpc.periodic_work import BackgroundLoop
from services.rpc.server import Register, serving
from services.rpc.startup_pipe import report_listening, report_problem
from services.settings import Settings, load
from services.system import prepare_process

log = logging.getLogger("pkger.rpc")


@dataclass(frozen=True, slots=True)
class Service:
    """
    A service of a process.

    Attributes:
        register: Adds the servicers to a server.
        names: Full names of the services, for health and reflection.
        drain: Waits for work of the service that belongs to no call; None when there is none.
        loops: Periodic work of the service beside its calls; the service is unhealthy while one of them is late.
    """

    register: Sequence[Register]
    names: Sequence[str]
    drain: Callable[[], Awaitable[None]] | None = None
    loops: Sequence[BackgroundLoop] = ()


Opened = Callable[[Settings], AbstractAsyncContextManager[Service]]
"""Opens the databases and connections of a service, and closes them again; tests use it too."""


@dataclass(frozen=True, slots=True)
class Server:
    """
    One of the servers of a process.

    Attributes:
        name: Name of the service, for messages and logs.
        opened: Opens the service with the settings.
        listen: The addresses to listen on.
    """

    name: str
    opened: Opened
    listen: Sequence[str]


class _CannotStart(Exception):
    """The service *name* cannot start."""

    def __init__(self, name: str, problem: Exception) -> None:
        text = _text_of(problem)
        super().__init__(f"the {name} service cannot start: {text}")
        self.name, self.problem = name, text


def _text_of(problem: Exception) -> str:
    """*problem* for the operator: of an error of the system, its file and what is wrong with it."""
    if isinstance(problem, OSError) and problem.filename and problem.strerror:
        return f"{problem.filename}: {problem.strerror}; check its owner and mode, or use another folder (PKGER_DATA)"
    return str(problem)


def run_process(name: str, opened: Opened, settings: Settings | None = None) -> None:
    """
    Serve until stopped; the body of each service's ``__main__``.

    Args:
        name: Name of the service; a key of ``settings.PORTS``.
        opened: Opens the service with the settings.
        settings: The settings; None: read them from the environment.

    Raises:
        SystemExit: The server cannot start; the last line of the log says why.
    """
    settings = settings or load()
    run_servers([Server(name, opened, settings.listen_addresses(name))], settings)


def run_servers(servers: Sequence[Server], settings: Settings) -> None:
    """
    Serve until stopped: by SIGTERM or SIGINT, or by the end of the parent process.

    Args:
        servers: Start in this order and stop in reverse order, so a service follows the ones that it calls.
        settings: The settings of all of them.

    Raises:
        SystemExit: One of them cannot start; the last line of the log says why.
    """
    prepare_process()
    log_to_stderr()
    collect_seldom()
    try:
        asyncio.run(_serve(servers, settings))
    except _CannotStart as error:
        report_problem(str(error))
        log.critical("cannot serve", extra={"service": error.name, "problem": error.problem})
        sys.exit(1)


def collect_seldom() -> None:
    """
    Collect cyclic garbage less often than by default.

    A plan of 10,000 objects is half a million values with hardly any cycles. Scanning the live ones again and again
    while more are made took a fifth of the time of a plan.
    """
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


async def _serve(servers: Sequence[Server], settings: Settings) -> None:
    stop = _stop_requested()
    async with AsyncExitStack() as running:
        for server in servers:
            await _start(server, settings, running)
        report_listening()
        await stop.wait()
        log.info("stopping")
    log.info("stopped")


async def _start(server: Server, settings: Settings, running: AsyncExitStack) -> None:
    """
    Serve until *running* is closed.

    Raises:
        _CannotStart: The service lacks something that it needs, or its address is in use.
    """
    try:
        service = await running.enter_async_context(server.opened(settings))
        entrances = entrances_of(server.name, server.listen, settings)
        addresses = await running.enter_async_context(
            serving(service.register, service.names, entrances, settings.times.grace, service.drain, service.loops)
        )
    except (OSError, CannotServe) as error:
        raise _CannotStart(server.name, error) from error
    log.info("serving", extra={"service": server.name, "addresses": addresses})


def _stop_requested() -> asyncio.Event:
    """The event that is set by SIGTERM or SIGINT, or when the parent process has ended."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if parent := os.environ.get("PKGER_PARENT_PIPE"):
        # The parent holds the other end of the pipe, which closes when it ends for any reason.
        loop.add_reader(int(parent), stop.set)
    return stop
