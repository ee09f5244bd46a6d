"""A web server for the tests, and a resolver that knows no Internet."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web
from aiohttp.abc import AbstractResolver, ResolveResult

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Web:
    """
    A running server.

    Attributes:
        address: Its address, without a path.
        requests: The requests that it received, in order.
    """

    address: str = ""
    requests: list[web.Request] = field(default_factory=list)

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])


@asynccontextmanager
async def serving(answers: Mapping[str, str | bytes | Handler]) -> AsyncIterator[Web]:
    """A server that answers paths with texts or by handlers, and all other paths with 404."""
    known = Web()

    async def answer(request: web.Request) -> web.StreamResponse:
        known.requests.append(request)
        found = answers.get(request.path)
        if found is None:
            raise web.HTTPNotFound(text="there is nothing")
        if callable(found):
            return await found(request)
        return web.Response(body=found)

    application = web.Application()
    application.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(application, access_log=None, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    known.address = f"http://{host}:{port}"
    try:
        yield known
    finally:
        await runner.cleanup()


def redirect(location: str, status: int = 302) -> Handler:
    async def answer(request: web.Request) -> web.StreamResponse:
        return web.Response(status=status, headers={"Location": location, "Set-Cookie": "a=b"})

    return answer


def packed(data: bytes, encoding: str = "gzip") -> Handler:
    async def answer(request: web.Request) -> web.StreamResponse:
        return web.Response(body=data, headers={"Content-Encoding": encoding})

    return answer


async def drip(request: web.Request) -> web.StreamResponse:
    """Send one byte, and then never another."""
    response = web.StreamResponse()
    await response.prepare(request)
    await response.write(b"a")
    await asyncio.Event().wait()
    return response


class Names(AbstractResolver):
    """Resolves some names, and records the queries."""

    def __init__(self, known: Mapping[str, list[str]]) -> None:
        self._known = known
        self.asked: list[str] = []

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        self.asked.append(host)
        if host not in self._known:
            raise OSError(f"no such name: {host}")
        return [
            ResolveResult(hostname=host, host=each, port=port, family=_family(each), proto=0, flags=0)
            for each in self._known[host]
        ]

    async def close(self) -> None:
        pass


def _family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET
