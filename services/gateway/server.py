"""The HTTP server: an application of aiohttp behind connections that cut off slow clients."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web

from services.gateway.connection import Connection, hides_requests
from services.gateway.middlewares import Middlewares, Site
from services.gateway.routes import as_received
from services.rpc.listening import can_listen
from services.system import Ids, MachineIds

KEEP_ALIVE_SECONDS = 75.0
"""How long an idle connection stays open: longer than reverse proxies keep theirs."""

_log_of_aiohttp = logging.getLogger("aiohttp.server")
_log_of_aiohttp.addFilter(hides_requests)


@asynccontextmanager
async def serving_http(site: Site, listen: str, grace: float = 30.0, ids: Ids = MachineIds()) -> AsyncIterator[str]:
    """
    Serve until the block is left, then let requests in flight end.

    Args:
        site: The routes, and who may use them.
        listen: ``host:port`` (port 0: the kernel picks one) or ``unix:/path``.
        grace: Seconds that requests in flight have to end when the block is left.
        ids: Draws request ids.

    Yields:
        The address to connect to.

    Raises:
        OSError: *listen* is in use or not an address of this machine.
    """
    async with _application(site, grace, ids) as server:
        listening, address = await _listening(listen, lambda: Connection(server(), site.settings.header_seconds))
        try:
            yield address
        finally:
            listening.close()


@asynccontextmanager
async def _application(site: Site, grace: float, ids: Ids) -> AsyncIterator[web.Server]:
    """The server of the application; it stops when the block is left."""
    app = web.Application()
    middlewares = Middlewares(site, app.router, ids)
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


async def _listening(listen: str, factory: Callable[[], asyncio.Protocol]) -> tuple[asyncio.Server, str]:
    """A listening socket, and its address."""
    loop = asyncio.get_running_loop()
    if listen.startswith("unix:"):
        return await loop.create_unix_server(factory, listen.removeprefix("unix:")), listen
    host, _, port = listen.rpartition(":")
    if not can_listen(listen):
        raise OSError(f"cannot listen on {listen}: it is in use or not an address of this machine")
    listening = await loop.create_server(factory, host.strip("[]") or None, int(port))
    return listening, f"{host}:{listening.sockets[0].getsockname()[1]}"
