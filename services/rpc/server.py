"""Serves by gRPC, in one way for all services: doors, limits, health, reflection, graceful stop."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

import grpc

from services.access.listeners import ListenerKind
from services.rpc.call import MESSAGE_LIMIT
from services.rpc.dispatcher import Dispatcher, Handler, Register
from services.rpc.door import Door
from services.rpc.entrances import Entrance
from services.rpc.listening import WAY_OUT, free_addresses, locked_socket
from services.rpc.periodic_work import BackgroundLoop
from services.rpc.probes import REFLECTION_PREFIX, Probes

__all__ = ["Register", "serving"]

log = logging.getLogger("pkger.rpc")

FLUSH_SECONDS = 0.5
"""Time for the last responses to leave the process."""

SHORTEST_PING_MS = 5_000
"""Shortest accepted interval of keepalive pings, with or without calls in flight; the documents advise 10 s."""

MOST_WAITING_CALLS = 4_000
MOST_CALLS_OF_CONNECTION = 200
HANDSHAKE_MS = 10_000
LONGEST_IDLE_MS = 300_000
"""
Limits of a listener that strangers reach, before its door decides: calls that wait for the door, those of one
connection, and the times for the handshake of a connection and of one without calls. Sockets have none. gRPC cancels
further calls; the door refuses them earlier, with a reason (``MOST_CALLS_OF_LISTENER``).
"""


@asynccontextmanager
async def serving(
    register: Collection[Register],
    services: Collection[str],
    entrances: Sequence[Entrance],
    grace: float = 30.0,
    drain: Callable[[], Awaitable[None]] | None = None,
    loops: Sequence[BackgroundLoop] = (),
) -> AsyncIterator[list[str]]:
    """
    Serve while the block is open; then refuse new calls and wait for the calls in flight.

    While one of *loops* is late, the health of the server is NOT_SERVING, but calls are served.

    Args:
        register: Functions that add the servicers.
        services: Full names of the services, for health and reflection.
        entrances: Where to listen, and what for; all or nothing.
        grace: Seconds to wait for calls in flight at the end.
        drain: Waits for work of the service that belongs to no call; None when there is none.
        loops: Periodic work of the service; the caller runs it.

    Yields:
        The address to connect to, of each entrance.

    Raises:
        OSError: An address is in use, or not an address of this machine.
    """
    dispatcher, probes = Dispatcher(register), Probes(services)
    handlers = {**dispatcher.handlers, **probes.handlers}
    async with AsyncExitStack() as locks:
        places = [_reserved(entrance, locks) for entrance in entrances]
        # A server of its own for each: what strangers do at one leaves the others alone.
        listening = [
            _listening(entrance, addresses, handlers) for entrance, addresses in zip(entrances, places, strict=True)
        ]
        for server, _ in listening:
            await server.start()
        await probes.set_health(is_serving=True)
        watching = asyncio.create_task(_watch_loops(probes, loops)) if loops else None
        try:
            yield [address for _, address in listening]
        finally:
            if watching:
                watching.cancel()
            dispatcher.refuse_new = True
            await probes.stop()
            if drain:
                await drain()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(dispatcher.idle.wait(), grace)
            # server.stop(grace) would wait the whole time for clients that watch the health of this server.
            await asyncio.gather(*(server.stop(FLUSH_SECONDS) for server, _ in listening))
            # Calls that the stop cancelled end in the next turn of the loop. For later ones, gRPC would write
            # tracebacks.
            await asyncio.sleep(0)


def _reserved(entrance: Entrance, locks: AsyncExitStack) -> list[str]:
    """
    The addresses to bind; a socket is locked until *locks* are closed, after the server has stopped.

    Raises:
        OSError: An address is in use, or not an address of this machine.
    """
    listener = entrance.listener
    if listener.kind is not ListenerKind.SOCKET:
        return free_addresses(listener)
    locks.enter_context(locked_socket(listener.path, entrance.data))
    return [listener.address]


def _listening(
    entrance: Entrance, addresses: Sequence[str], handlers: Mapping[str, Handler]
) -> tuple[grpc.aio.Server, str]:
    """
    A server that listens, and the first address to connect to.

    Raises:
        OSError: One of *addresses* is in use.
    """
    server = _server(entrance, handlers)
    try:
        ports = [server.add_insecure_port(address) for address in addresses]
    except RuntimeError as error:
        raise OSError(f"cannot listen on {entrance.listener.address}: it is in use; {WAY_OUT}") from error
    first = addresses[0]
    return server, first if entrance.listener.path else f"{first.rpartition(':')[0]}:{ports[0]}"


def _server(entrance: Entrance, handlers: Mapping[str, Handler]) -> grpc.aio.Server:
    """A server with the limits of *entrance*; credentials for TLS belong here."""
    is_socket = entrance.listener.kind is ListenerKind.SOCKET
    options: list[tuple[str, int]] = [
        ("grpc.max_receive_message_length", entrance.message_bytes),
        ("grpc.max_send_message_length", MESSAGE_LIMIT),
        ("grpc.so_reuseport", 0),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.min_ping_interval_without_data_ms", SHORTEST_PING_MS),
    ]
    if not is_socket:
        options += [
            ("grpc.max_concurrent_streams", MOST_CALLS_OF_CONNECTION),
            ("grpc.server_handshake_timeout_ms", HANDSHAKE_MS),
            ("grpc.max_connection_idle_ms", LONGEST_IDLE_MS),
        ]
    server = grpc.aio.server(options=options, maximum_concurrent_rpcs=None if is_socket else MOST_WAITING_CALLS)
    door = Door(entrance.listener, entrance.token)
    server.add_generic_rpc_handlers(
        (
            _Handlers(
                {
                    method: door.guarded(method, handler)
                    for method, handler in handlers.items()
                    if entrance.has_reflection or not method.startswith(REFLECTION_PREFIX)
                }
            ),
        )
    )
    return server


async def _watch_loops(probes: Probes, loops: Sequence[BackgroundLoop]) -> None:
    """Set the health of a server to NOT_SERVING while one of its loops is late; runs until cancelled."""
    is_serving = True
    while True:
        late = [loop for loop in loops if loop.is_late]
        if is_serving is bool(late):
            is_serving = not late
            for loop in late:
                log.error("not healthy", extra={"loop": loop.name, "failures": loop.failures})
            if is_serving:
                log.info("healthy again")
            await probes.set_health(is_serving)
        await asyncio.sleep(min(loop.period for loop in loops))


class _Handlers(grpc.GenericRpcHandler):
    """Gives a gRPC server its handlers."""

    def __init__(self, handlers: Mapping[str, Handler]) -> None:
        self._handlers = handlers

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> "Handler | None":
        """The handler of a method; None if no servicer has it."""
        return self._handlers.get(handler_call_details.method)
