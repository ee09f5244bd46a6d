"""A service as a process: settings, parts, server, end."""

import asyncio
import gc
import logging
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from services.machine import leave_no_core
from services.rpc.background import BackgroundLoop
from services.rpc.log import log_to_stderr
from services.rpc.parent import tell_problem
from services.rpc.server import Register, serve_until_stopped
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
    leave_no_core()
    log_to_stderr()
    _collect_seldom()
    try:
        asyncio.run(_serve(name, opened, settings or load()))
    except (OSError, CannotServe) as error:
        tell_problem(str(error))
        log.critical("cannot serve", extra={"service": name, "problem": str(error)})
        sys.exit(1)


def _collect_seldom() -> None:
    """
    Look for garbage in cycles less often than by default.

    A plan of 10,000 objects is half a million values, hardly any of them in cycles: to walk over those that live, again
    and again while more are made, took a fifth of the time of a plan.
    """
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


async def _serve(name: str, opened: Opened, settings: Settings) -> None:
    async with opened(settings) as service:
        await serve_until_stopped(
            name,
            service.register,
            service.names,
            settings.listen or settings.addresses[name],
            GRACE_SECONDS,
            service.drain,
            service.loops,
        )
