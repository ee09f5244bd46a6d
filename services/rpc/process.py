"""Services as a process: settings, servers, end."""

import asyncio
import gc
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass

from services.machine import leave_no_core
from services.rpc.background import BackgroundLoop
from services.rpc.log import log_to_stderr
from services.rpc.parent import report_listening, report_problem
from services.rpc.server import Register, serving
from services.settings import GRACE_SECONDS, Settings, load

log = logging.getLogger("pkger.rpc")


@dataclass(frozen=True, slots=True)
class Service:
    """
    What a process serves.

    Attributes:
        register: Adds the servicers to a server.
        names: Full names of the services, for health and reflection.
        drain: Lets work end that belongs to the service and not to a call; None when there is none.
        loops: What the service does beside its calls, while it is open; its health tells when one of them is late.
    """

    register: Sequence[Register]
    names: Sequence[str]
    drain: Callable[[], Awaitable[None]] | None = None
    loops: Sequence[BackgroundLoop] = ()


Opened = Callable[[Settings], AbstractAsyncContextManager[Service]]
"""Opens what a service needs, databases and connections, and closes it again; tests open it the same way."""


class CannotServe(Exception):
    """The service lacks what it needs; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Server:
    """
    One of the servers of a process.

    Attributes:
        name: Name of the service, for messages and logs.
        opened: Makes the service from the settings.
        listen: Where it listens.
    """

    name: str
    opened: Opened
    listen: str


class _CannotStart(Exception):
    """The service *name* cannot start."""

    def __init__(self, name: str, problem: Exception) -> None:
        super().__init__(f"the {name} service cannot start: {problem}")
        self.name, self.problem = name, problem


def run_process(name: str, opened: Opened, settings: Settings | None = None) -> None:
    """
    Serve until told to stop; the body of each service's ``__main__``.

    Args:
        name: Name of the service; a key of ``settings.PORTS``, unless the settings say where it is to listen.
        opened: Makes the service from the settings.
        settings: What the environment says; None: not read yet.

    Raises:
        SystemExit: The server cannot start; the last line of the log says why.
    """
    settings = settings or load()
    run_servers([Server(name, opened, settings.listen or settings.addresses[name])], settings)


def run_servers(servers: Sequence[Server], settings: Settings) -> None:
    """
    Serve until told to stop: by SIGTERM or SIGINT, or by the end of the process that started this one.

    Args:
        servers: Start in this order and stop in the reverse one, so each comes after those that it calls.
        settings: What all of them are made from.

    Raises:
        SystemExit: One of them cannot start; the last line of the log says why.
    """
    leave_no_core()
    log_to_stderr()
    collect_seldom()
    try:
        asyncio.run(_serve(servers, settings))
    except _CannotStart as error:
        report_problem(str(error))
        log.critical("cannot serve", extra={"service": error.name, "problem": str(error.problem)})
        sys.exit(1)


def collect_seldom() -> None:
    """
    Look for garbage in cycles less often than by default.

    A plan of 10,000 objects is half a million values, hardly any of them in cycles: to walk over those that live, again
    and again while more are made, took a fifth of the time of a plan.
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
        _CannotStart: The service lacks what it needs, or its address is not free.
    """
    try:
        service = await running.enter_async_context(server.opened(settings))
        address = await running.enter_async_context(
            serving(service.register, service.names, server.listen, GRACE_SECONDS, service.drain, service.loops)
        )
    except (OSError, CannotServe) as error:
        raise _CannotStart(server.name, error) from error
    log.info("serving", extra={"service": server.name, "address": address})


def _stop_requested() -> asyncio.Event:
    """What is set by SIGTERM or SIGINT, or when the process that started this one is gone."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if parent := os.environ.get("PKGER_PARENT_PIPE"):
        # Whoever needs this server holds the other end; it closes when they are gone, however they went.
        loop.add_reader(int(parent), stop.set)
    return stop
