"""How the services of a test are connected: by gRPC, or in memory on virtual time (tests/virtual_time.py)."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from functools import partial
from inspect import signature
from itertools import count
from tempfile import TemporaryDirectory
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from services.access.listeners import Listener, ListenerKind
from services.rpc.channel import Channel, grpc_channel
from services.rpc.entrances import Entrance
from services.rpc.process import Opened, Service
from services.rpc.server import serving
from services.system import Clock, machine_clock
from tests.rpc.in_memory import Network, serving_in_memory
from tests.virtual_time import VirtualLoop


class Transport(Protocol):
    """Connects services."""

    clock: Clock
    """The time of day."""

    def connect(self, address: str) -> Channel:
        """A channel to *address*."""

    def serving(self, service: Service, grace: float = 1.0) -> AbstractAsyncContextManager[str]:
        """Serve while the block is open, and wait at its end for *grace* seconds; returns the address."""

    def resettable(self, service: Service) -> AbstractAsyncContextManager[tuple[str, Callable[[], None]]]:
        """Serve while the block is open; returns the address, and a function that resets all connections to it."""


class Grpc:
    """Connects services as in production, by sockets."""

    def __init__(self) -> None:
        self.clock = machine_clock

    def connect(self, address: str) -> Channel:
        return grpc_channel(address)

    @asynccontextmanager
    async def serving(self, service: Service, grace: float = 1.0) -> AsyncIterator[str]:
        async with serving_at_socket(service, grace) as address:
            yield address

    @asynccontextmanager
    async def resettable(self, service: Service) -> AsyncIterator[tuple[str, Callable[[], None]]]:
        async with self.serving(service, 0) as inner, proxied(inner) as proxy:
            yield proxy


def socket_entrance(address: str) -> Entrance:
    """A socket as the entrance of a server."""
    return Entrance(Listener(address, ListenerKind.SOCKET))


@contextmanager
def socket_in_new_folder() -> Iterator[str]:
    """The address of a socket; its path is short, as that of a socket has at most 107 bytes."""
    with TemporaryDirectory(prefix="pkger-") as folder:
        yield f"unix:{folder}/socket"


@asynccontextmanager
async def serving_at_socket(service: Service, grace: float = 0) -> AsyncIterator[str]:
    """Serve at a new socket while the block is open; returns its address."""
    with socket_in_new_folder() as address:
        entrances = [socket_entrance(address)]
        async with serving(service.register, service.names, entrances, grace, service.drain, service.loops):
            yield address


class InMemory:
    """Connects services in one process, without sockets; it needs no virtual time."""

    def __init__(self, clock: Clock = machine_clock) -> None:
        self.clock = clock
        self._network = Network()
        self._numbers = count(1)

    def connect(self, address: str) -> Channel:
        return self._network.connect(address)

    @asynccontextmanager
    async def serving(self, service: Service, grace: float = 1.0) -> AsyncIterator[str]:
        address = f"memory-{next(self._numbers)}"
        async with serving_in_memory(self._network, address, service, grace, self.clock):
            yield address

    @asynccontextmanager
    async def resettable(self, service: Service) -> AsyncIterator[tuple[str, Callable[[], None]]]:
        async with self.serving(service, 0) as address:
            yield address, partial(self._network.cut, address)

    @contextmanager
    def out_of_reach(self, address: str) -> Iterator[None]:
        """Nothing answers at *address* while the block is open; what serves there goes on."""
        dispatcher = self._network.servers.pop(address)
        self._network.cut(address)
        try:
            yield
        finally:
            self._network.serve(address, dispatcher)


_IN_MEMORY: WeakKeyDictionary[VirtualLoop, InMemory] = WeakKeyDictionary()


def transport_of_loop() -> Transport:
    """The transport of the running loop: in memory if its time is virtual, else gRPC."""
    loop = asyncio.get_running_loop()
    return _IN_MEMORY.setdefault(loop, InMemory(loop.clock)) if isinstance(loop, VirtualLoop) else Grpc()


def through(transport: Transport, opened: Opened) -> Opened:
    """*opened* with the connections and the time of day of *transport*, if it has such parameters."""
    seams: dict[str, Any] = {"connect": transport.connect, "clock": transport.clock}
    given = getattr(opened, "keywords", {})
    return partial(
        opened, **{name: seams[name] for name in seams if name in signature(opened).parameters.keys() - given}
    )


@asynccontextmanager
async def proxied(address: str) -> AsyncIterator[tuple[str, Callable[[], None]]]:
    """A proxy in front of a socket; returns its address, and a function that resets all connections to it."""
    clients: set[asyncio.StreamWriter] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        clients.add(writer)
        above, below = await asyncio.open_unix_connection(address.removeprefix("unix:"))
        await asyncio.gather(_pump(reader, below), _pump(above, writer))
        clients.discard(writer)

    def cut() -> None:
        for client in clients:
            client.transport.abort()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{listening.sockets[0].getsockname()[1]}", cut
    finally:
        listening.close()
        cut()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while received := await reader.read(65536):
            writer.write(received)
            await writer.drain()
    writer.close()
    with suppress(ConnectionError):
        await writer.wait_closed()
