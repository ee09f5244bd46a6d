"""One way to serve: health, reflection, graceful stop, errors, one log line per call."""

import asyncio
import contextlib
import logging
import math
import os
import signal
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1._async import HealthServicer
from grpc_reflection.v1alpha import reflection
from grpc_status import rpc_status

from services.core.errors import Internal, PkgerError, Reason
from services.rpc.call import MESSAGE_LIMIT, REQUEST_ID_KEY, deadline, request_id
from services.rpc.errors import to_status

log = logging.getLogger("pkger.rpc")

FLUSH_SECONDS = 0.5
"""What the answers of the last calls get to leave the process."""

SHORTEST_PING_MS = 5_000
"""Shortest interval of keepalive pings that is accepted from clients, also without calls in flight; docs say 10 s."""

NO_RETRY = ("grpc-retry-pushback-ms", "-1")
"""Tells gRPC clients of this server not to repeat a call by themselves."""

STOPPING = "the server is stopping"

Register = Callable[[grpc.aio.Server], None]
"""Adds one servicer to a server: ``functools.partial(add_XServicer_to_server, servicer)``."""


@asynccontextmanager
async def serving(
    register: Collection[Register],
    services: Collection[str],
    listen: str,
    grace: float = 30.0,
    drain: Callable[[], Awaitable[None]] | None = None,
) -> AsyncIterator[str]:
    """
    Serve until the block is left, then refuse new calls and let those in flight end.

    Args:
        register: What to serve.
        services: Full names of the services, for health and reflection.
        listen: ``host:port`` (port 0: the kernel picks one) or ``unix:/path``.
        grace: Seconds that calls in flight get when the block is left.
        drain: Lets work end that belongs to the service and not to a call; None when there is none.

    Yields:
        The address to connect to.

    Raises:
        OSError: *listen* is in use or not an address of this machine.
    """
    health, calls = HealthServicer(), _Calls()
    # The place for TLS and authorization: credentials for add_secure_port, and an interceptor before this one.
    server = grpc.aio.server(
        interceptors=[calls],
        options=[
            ("grpc.max_receive_message_length", MESSAGE_LIMIT),
            ("grpc.max_send_message_length", MESSAGE_LIMIT),
            ("grpc.so_reuseport", 0),
            ("grpc.keepalive_permit_without_calls", 1),
            ("grpc.http2.min_ping_interval_without_data_ms", SHORTEST_PING_MS),
        ],
    )
    for add in register:
        add(server)
    health_pb2_grpc.add_HealthServicer_to_server(health, server)
    reflection.enable_server_reflection(
        [*services, health_pb2.DESCRIPTOR.services_by_name["Health"].full_name, reflection.SERVICE_NAME], server
    )
    try:
        port = server.add_insecure_port(listen)
    except RuntimeError as error:
        raise OSError(f"cannot listen on {listen}: it is in use or not an address of this machine") from error
    await server.start()
    for name in ("", *services):
        await health.set(name, health_pb2.HealthCheckResponse.SERVING)
    try:
        yield listen if listen.startswith("unix:") else f"{listen.rpartition(':')[0]}:{port}"
    finally:
        calls.refuse_new = True
        await health.enter_graceful_shutdown()
        if drain:
            await drain()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(calls.idle.wait(), grace)
        # Not server.stop(grace) from the start: whoever watches our health would hold it for the whole of the grace.
        await server.stop(FLUSH_SECONDS)


async def serve_until_stopped(
    name: str,
    register: Collection[Register],
    services: Collection[str],
    listen: str,
    grace: float,
    drain: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """
    Serve as a process: until SIGTERM or SIGINT, or until the process that started this one is gone.

    Args:
        name: Name of the service, for the log.
        register: As for ``serving``.
        services: As for ``serving``.
        listen: As for ``serving``.
        grace: As for ``serving``.
        drain: As for ``serving``.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if parent := os.environ.get("PKGER_PARENT_PIPE"):
        # Whoever needs this server holds the other end; it closes when they are gone, however they went.
        loop.add_reader(int(parent), stop.set)
    async with serving(register, services, listen, grace, drain) as address:
        log.info("serving", extra={"service": name, "address": address})
        await stop.wait()
        log.info("stopping", extra={"service": name})
    log.info("stopped", extra={"service": name})


class _Calls(grpc.aio.ServerInterceptor):
    """
    Around every call of ours: request id, deadline, errors to statuses, one log line.

    Attributes:
        idle: Set while no call is in flight.
        refuse_new: Whether calls that begin from now on are refused, as the server is about to stop.
    """

    def __init__(self) -> None:
        self.idle = asyncio.Event()
        self.idle.set()
        self.refuse_new = False
        self._in_flight = 0

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count a call while the block is open."""
        self._in_flight += 1
        self.idle.clear()
        try:
            yield
        finally:
            self._in_flight -= 1
            if not self._in_flight:
                self.idle.set()

    async def intercept_service(self, continuation: Any, details: Any) -> Any:
        handler = await continuation(details)
        if handler is None or not details.method.startswith("/pkger."):
            return handler
        if handler.response_streaming:
            wrapped, make = self._stream(handler.unary_stream, details.method), grpc.unary_stream_rpc_method_handler
        else:
            wrapped, make = self._unary(handler.unary_unary, details.method), grpc.unary_unary_rpc_method_handler
        return make(
            wrapped,
            request_deserializer=handler.request_deserializer,
            response_serializer=handler.response_serializer,
        )

    def _unary(self, behaviour: Any, method: str) -> Any:
        async def call(request: Any, context: grpc.aio.ServicerContext[Any, Any]) -> Any:
            if self.refuse_new:
                await context.abort(grpc.StatusCode.UNAVAILABLE, STOPPING)
            with self.counted():
                async with _served(method, context):
                    return await behaviour(request, context)

        return call

    def _stream(self, behaviour: Any, method: str) -> Any:
        async def call(request: Any, context: grpc.aio.ServicerContext[Any, Any]) -> AsyncIterator[Any]:
            if self.refuse_new:
                await context.abort(grpc.StatusCode.UNAVAILABLE, STOPPING)
            with self.counted():
                async with _served(method, context):
                    async for response in behaviour(request, context):
                        yield response

        return call


@asynccontextmanager
async def _served(method: str, context: grpc.aio.ServicerContext[Any, Any]) -> AsyncIterator[None]:
    metadata = dict(context.invocation_metadata() or ())
    current = str(metadata.get(REQUEST_ID_KEY) or uuid.uuid4().hex)
    request_id.set(current)
    left = context.time_remaining()
    deadline.set(math.inf if left is None else time.monotonic() + left)
    # Not at the end: once the call was cancelled, asking it for its peer crashes the process (grpcio 1.85).
    peer = context.peer()
    started, code = time.perf_counter(), "OK"
    context.set_trailing_metadata(((REQUEST_ID_KEY, current),))
    try:
        yield
    except PkgerError as error:
        code = error.reason
        await _abort(context, error, current)
    except asyncio.CancelledError:
        code = "CANCELLED"
        raise
    except Exception:
        code = "INTERNAL"
        log.exception("call failed", extra={"method": method})
        await _abort(context, Internal(current), current)
    finally:
        log.info(
            "call",
            extra={
                "method": method,
                "code": code,
                "duration_ms": round((time.perf_counter() - started) * 1000, 3),
                "peer": peer,
            },
        )


async def _abort(context: grpc.aio.ServicerContext[Any, Any], error: PkgerError, current: str) -> None:
    status = rpc_status.to_status(to_status(error))
    # The call that failed, further in, was repeated already. Repeated at each hop, the attempts would multiply, and the
    # last of them run into the deadline of the caller, who would then be told of this service and not of that one.
    pushback = [NO_RETRY] if error.reason is Reason.SERVICE_UNAVAILABLE else []
    context.set_trailing_metadata((*status.trailing_metadata, (REQUEST_ID_KEY, current), *pushback))
    await context.abort(status.code, status.details, context.trailing_metadata())
