"""Serves by gRPC, in one way for all services: health, reflection, graceful stop."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import aio
from grpc_reflection.v1alpha import reflection, reflection_pb2_grpc
from grpc_status import rpc_status

from services.core.errors import PkgerError
from services.rpc.call import MESSAGE_LIMIT
from services.rpc.dispatcher import Call, Dispatcher, Handler, Register
from services.rpc.errors import to_status
from services.rpc.listening import can_listen
from services.rpc.periodic_work import BackgroundLoop
from services.rpc.undecodable import marking, refuse_undecodable

__all__ = ["Register", "serving"]

log = logging.getLogger("pkger.rpc")

FLUSH_SECONDS = 0.5
"""Time for the last responses to leave the process."""

SHORTEST_PING_MS = 5_000
"""Shortest accepted interval of keepalive pings, with or without calls in flight; the documents advise 10 s."""


@asynccontextmanager
async def serving(
    register: Collection[Register],
    services: Collection[str],
    listen: str,
    grace: float = 30.0,
    drain: Callable[[], Awaitable[None]] | None = None,
    loops: Sequence[BackgroundLoop] = (),
) -> AsyncIterator[str]:
    """
    Serve while the block is open; then refuse new calls and wait for the calls in flight.

    While one of *loops* is late, the health of the server is NOT_SERVING, but calls are served.

    Args:
        register: Functions that add the servicers.
        services: Full names of the services, for health and reflection.
        listen: ``host:port`` (port 0: the kernel picks one) or ``unix:/path``.
        grace: Seconds to wait for calls in flight at the end.
        drain: Waits for work of the service that belongs to no call; None when there is none.
        loops: Periodic work of the service; the caller runs it.

    Yields:
        The address to connect to.

    Raises:
        OSError: *listen* is in use or not an address of this machine.
    """
    health, dispatcher = aio.HealthServicer(), Dispatcher(register)
    # TLS and authorization belong here: credentials for add_secure_port, and an interceptor.
    server = grpc.aio.server(
        options=[
            ("grpc.max_receive_message_length", MESSAGE_LIMIT),
            ("grpc.max_send_message_length", MESSAGE_LIMIT),
            ("grpc.so_reuseport", 0),
            ("grpc.keepalive_permit_without_calls", 1),
            ("grpc.http2.min_ping_interval_without_data_ms", SHORTEST_PING_MS),
        ],
    )
    names = [*services, health_pb2.DESCRIPTOR.services_by_name["Health"].full_name, reflection.SERVICE_NAME]
    probes = _Probes()
    health_pb2_grpc.add_HealthServicer_to_server(health, cast("grpc.aio.Server", probes))
    reflection_pb2_grpc.add_ServerReflectionServicer_to_server(
        reflection.aio.ReflectionServicer(names), cast("grpc.aio.Server", probes)
    )
    server.add_generic_rpc_handlers((_Handlers(dispatcher.handlers), _Handlers(probes.handlers)))
    refused = f"cannot listen on {listen}: it is in use or not an address of this machine"
    if not can_listen(listen):
        raise OSError(refused)
    try:
        port = server.add_insecure_port(listen)
    except RuntimeError as error:
        raise OSError(refused) from error
    await server.start()
    await _set_health(health, services, is_serving=True)
    watching = asyncio.create_task(_watch_loops(health, services, loops)) if loops else None
    try:
        yield listen if listen.startswith("unix:") else f"{listen.rpartition(':')[0]}:{port}"
    finally:
        if watching:
            watching.cancel()
        dispatcher.refuse_new = True
        await health.enter_graceful_shutdown()
        if drain:
            await drain()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(dispatcher.idle.wait(), grace)
        # server.stop(grace) would wait the whole time for clients that watch the health of this server.
        await server.stop(FLUSH_SECONDS)
        # Calls that the stop cancelled end in the next turn of the loop. For later ones, gRPC would write tracebacks.
        await asyncio.sleep(0)


async def _watch_loops(health: aio.HealthServicer, services: Collection[str], loops: Sequence[BackgroundLoop]) -> None:
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
            await _set_health(health, services, is_serving)
        await asyncio.sleep(min(loop.period for loop in loops))


async def _set_health(health: aio.HealthServicer, services: Collection[str], is_serving: bool) -> None:
    status = health_pb2.HealthCheckResponse
    for name in ("", *services):
        await health.set(name, status.SERVING if is_serving else status.NOT_SERVING)


class _Probes:
    """
    The handlers of health and reflection, which no dispatcher serves: they are neither counted nor logged, unless their
    request cannot be decoded.

    Attributes:
        handlers: By full method name.
    """

    def __init__(self) -> None:
        self.handlers: dict[str, Handler] = {}

    def add_generic_rpc_handlers(self, handlers: object) -> None:
        """See ``Dispatcher``: generated code calls both."""

    def add_registered_method_handlers(self, service: str, handlers: Mapping[str, Handler]) -> None:
        """Add the handlers of a service, by name of the method."""
        for name, handler in handlers.items():
            method = f"/{service}/{name}"
            self.handlers[method] = _refusing(method, handler)


def _refusing(method: str, handler: Handler) -> Handler:
    """*handler*, which refuses requests that cannot be decoded."""
    coders = marking(handler.request_deserializer), handler.response_serializer

    async def checked(request: Any, call: Call) -> Any:
        try:
            refuse_undecodable(request, method)
        except PkgerError as error:
            log.info("call", extra={"method": method, "code": error.reason, "peer": call.peer()})
            status = rpc_status.to_status(to_status(error))
            await call.abort(status.code, status.details, status.trailing_metadata)
        return request

    async def each(requests: AsyncIterator[Any], call: Call) -> AsyncIterator[Any]:
        async for request in requests:
            yield await checked(request, call)

    async def serve(request: Any, call: Call) -> Any:
        return await behaviour(await checked(request, call), call)

    async def serve_stream(requests: AsyncIterator[Any], call: Call) -> AsyncIterator[Any]:
        async for response in behaviour(each(requests, call), call):
            yield response

    behaviour: Any
    if handler.request_streaming:
        behaviour = handler.stream_stream
        return grpc.stream_stream_rpc_method_handler(serve_stream, *coders)
    if handler.response_streaming:
        # Its servicer is a coroutine that writes the responses.
        behaviour = handler.unary_stream
        return grpc.unary_stream_rpc_method_handler(serve, *coders)
    behaviour = handler.unary_unary
    return grpc.unary_unary_rpc_method_handler(serve, *coders)


class _Handlers(grpc.GenericRpcHandler):
    """Gives a gRPC server the handlers of a dispatcher."""

    def __init__(self, handlers: Mapping[str, Handler]) -> None:
        self._handlers = handlers

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> "Handler | None":
        """The handler of a method; None if no servicer has it."""
        return self._handlers.get(handler_call_details.method)
