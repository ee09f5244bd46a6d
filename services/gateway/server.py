"""The HTTP server: an application of aiohttp behind connections that cut off slow clients."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager

from aiohttp import web

from services.access.listeners import ListenerKind
from services.gateway.connection import Connection, hides_requests
from services.gateway.entrances import HttpEntrance
from services.gateway.middlewares import Middlewares, Site
from services.gateway.routes import as_received
from services.rpc.listening import free_addresses, locked_socket
from services.system import Ids, MachineIds

KEEP_ALIVE_SECONDS = 75.0
"""How long an idle connection stays open: longer than reverse proxies keep theirs."""

_log_of_aiohttp = logging.getLogger("aiohttp.server")
_log_of_aiohttp.addFilter(hides_requests)


@asynccontextmanager
async def serving_http(
    site: Site, entrances: Sequence[HttpEntrance], grace: float = 30.0, ids: Ids = MachineIds()
) -> AsyncIterator[list[str]]:
    """
    Serve until the block is left, then let requests in flight end.

    Args:
        site: The routes.
        entrances: Where to listen, and who may use the routes there; all or nothing.
        grace: Seconds that requests in flight have to end when the block is left.
        ids: Draws request ids.

    Yields:
        The address to connect to, of each entrance.

    Raises:
        OSError: An address is in use, or not an address of this machine.
    """
    async with AsyncExitStack() as stack:
        addresses = []
        for each in entrances:
            server = await stack.enter_async_context(_application(site, each, grace, ids))
            addresses.append(await stack.enter_async_context(_listening(each, server, site.settings.header_seconds)))
        yield addresses


@asynccontextmanager
async def _application(site: Site, entrance: HttpEntrance, grace: float, ids: Ids) -> AsyncIterator[web.Server]:
    """The server of the application; it stops when the block is left."""
    app = web.Application()
    middlewares = Middlewares(site, entrance, app.router, ids)
    app.middlewares.extend([middlewares.send, middlewares.explain, middlewares.admit])
    runner = web.AppRunner(
        app,
        access_log=None,
        auto_decompress=False,
        keepalive_timeout=KEEP_ALIVE_SECONDS,
        logger=_log_of_aiohttp,
        shutdown_timeout=grace,
    )
    await runner.setup()
    server = runner.server
    assert server is not None  # noqa: S101 - setup makes it
    handle: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]] = server.request_handler
    server.request_handler = lambda http: handle(as_received(http, site.settings.base_path))
    try:
        yield server
    finally:
        middlewares.stopping.set()
        await runner.cleanup()


@asynccontextmanager
async def _listening(entrance: HttpEntrance, server: web.Server, header_seconds: float) -> AsyncIterator[str]:
    """Listen until the block is left; yields the first address to connect to."""

    def factory() -> asyncio.Protocol:
        return Connection(server(), header_seconds)

    loop, listener = asyncio.get_running_loop(), entrance.listener
    with ExitStack() as stack:
        if listener.kind is ListenerKind.SOCKET:
            stack.enter_context(locked_socket(listener.path, entrance.data))
            stack.callback((await loop.create_unix_server(factory, listener.path)).close)
            yield listener.address
            return
        addresses = free_addresses(listener)
        for address in addresses:
            host, _, port = address.rpartition(":")
            listening = await loop.create_server(factory, host.strip("[]") or None, int(port))
            stack.callback(listening.close)
            if address is addresses[0]:
                first = f"{host}:{listening.sockets[0].getsockname()[1]}"
        yield first
