"""Around every call that a servicer serves, however it came: request id, deadline, errors to statuses, one log line."""

import asyncio
import logging
import math
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Never, Protocol, TypeAlias, cast

import grpc
from grpc_status import rpc_status

from services.core.errors import Internal, PkgerError, Reason
from services.machine import Clock, Ids, MachineIds, machine_clock
from services.rpc.call import REQUEST_ID_KEY, deadline, loop_time, new_request_id, request_id
from services.rpc.errors import to_status

log = logging.getLogger("pkger.rpc")

NO_RETRY = ("grpc-retry-pushback-ms", "-1")
"""Tells gRPC clients of this server not to repeat a call by themselves."""

STOPPING = "the server is stopping"

Metadata = Sequence[tuple[str, str | bytes]]

Register = Callable[[grpc.aio.Server], None]
"""Adds one servicer to a server, or to a ``Dispatcher``: ``functools.partial(add_XServicer_to_server, servicer)``."""

Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
"""``unary_unary`` or ``unary_stream`` takes a request and a ``Call``; it has the serializers of both messages, too."""


class Call(Protocol):
    """What a servicer knows of the call that it serves, and does with it. ``grpc.aio.ServicerContext`` is one."""

    def invocation_metadata(self) -> Iterable[tuple[str, str | bytes]] | None:
        """What the caller sent with the request."""

    def time_remaining(self) -> float | None:
        """Seconds until the caller stops waiting; None: it waits for ever."""

    def peer(self) -> str:
        """Who calls, for the log."""

    def set_trailing_metadata(self, trailing_metadata: Metadata, /) -> None:
        """Set what is sent after the last message."""

    async def send_initial_metadata(self, initial_metadata: Metadata, /) -> None:
        """Send metadata before the first message; once at most."""

    async def abort(self, code: grpc.StatusCode, details: str = "", trailing_metadata: Metadata = (), /) -> Never:
        """End the call with a status other than OK; the exception that it raises is for the transport."""


class Dispatcher:
    """
    The handlers of the servicers of one process.

    A transport runs a handler in a task of its own for each call, and cancels the task when the caller leaves or its
    time is over.

    Attributes:
        handlers: By full method name, such as ``/pkger.stack.v1.StackService/GetStack``.
        idle: Set while no call is in flight.
        refuse_new: Whether calls that begin from now on are refused, as the server is about to stop.
    """

    def __init__(self, register: Collection[Register], clock: Clock = machine_clock, ids: Ids = MachineIds()) -> None:
        """
        Args:
            register: What to serve.
            clock: Tells when a retry makes sense, for errors that say so.
            ids: Draws request ids for calls that came without.
        """
        self.handlers: dict[str, Handler] = {}
        self.idle = asyncio.Event()
        self.idle.set()
        self.refuse_new = False
        self._clock = clock
        self._ids = ids
        self._in_flight = 0
        for add in register:
            # Of a server, generated code calls the two methods below.
            add(cast("grpc.aio.Server", self))

    def add_generic_rpc_handlers(self, handlers: object) -> None:
        """Pass over what ``add_registered_method_handlers`` gets by name."""

    def add_registered_method_handlers(self, service: str, handlers: Mapping[str, Handler]) -> None:
        """Take the handlers of a service, by name of the method."""
        for name, handler in handlers.items():
            method = f"/{service}/{name}"
            self.handlers[method] = self._wrapped(method, handler)

    def _wrapped(self, method: str, handler: Handler) -> Handler:
        if handler.response_streaming:
            served, make = self._stream(handler.unary_stream, method), grpc.unary_stream_rpc_method_handler
        else:
            served, make = self._unary(handler.unary_unary, method), grpc.unary_unary_rpc_method_handler
        return make(served, handler.request_deserializer, handler.response_serializer)

    def _unary(self, behaviour: Any, method: str) -> Any:
        async def serve(request: Any, call: Call) -> Any:
            if self.refuse_new:
                await call.abort(grpc.StatusCode.UNAVAILABLE, STOPPING)
            with self._counted():
                async with self._served(method, call):
                    return await behaviour(request, call)

        return serve

    def _stream(self, behaviour: Any, method: str) -> Any:
        async def serve(request: Any, call: Call) -> AsyncIterator[Any]:
            if self.refuse_new:
                await call.abort(grpc.StatusCode.UNAVAILABLE, STOPPING)
            with self._counted():
                async with self._served(method, call):
                    async for response in behaviour(request, call):
                        yield response

        return serve

    @contextmanager
    def _counted(self) -> Iterator[None]:
        """Count a call while the block is open."""
        self._in_flight += 1
        self.idle.clear()
        try:
            yield
        finally:
            self._in_flight -= 1
            if not self._in_flight:
                self.idle.set()

    @asynccontextmanager
    async def _served(self, method: str, call: Call) -> AsyncIterator[None]:
        metadata = dict(call.invocation_metadata() or ())
        current = str(metadata.get(REQUEST_ID_KEY) or new_request_id(self._ids))
        request_id.set(current)
        left = call.time_remaining()
        deadline.set(math.inf if left is None else loop_time() + left)
        # Not at the end: once the call was cancelled, asking it for its peer crashes the process (grpcio 1.85).
        peer = call.peer()
        started, code = loop_time(), "OK"
        call.set_trailing_metadata(((REQUEST_ID_KEY, current),))
        try:
            yield
        except PkgerError as error:
            code = error.reason
            await self._abort(call, error, current)
        except asyncio.CancelledError:
            code = "CANCELLED"
            raise
        except Exception:
            code = "INTERNAL"
            log.exception("call failed", extra={"method": method})
            await self._abort(call, Internal(current), current)
        finally:
            log.info(
                "call",
                extra={
                    "method": method,
                    "code": code,
                    "duration_ms": round((loop_time() - started) * 1000, 3),
                    "peer": peer,
                },
            )

    async def _abort(self, call: Call, error: PkgerError, current: str) -> None:
        status = rpc_status.to_status(to_status(error, self._clock))
        # The call that failed, further in, was repeated already. Repeated at each hop, the attempts would multiply, and
        # the last of them run into the deadline of the caller, who would then be told of this service and not of that.
        pushback = [NO_RETRY] if error.reason is Reason.SERVICE_UNAVAILABLE else []
        trailing = (*status.trailing_metadata, (REQUEST_ID_KEY, current), *pushback)
        await call.abort(status.code, status.details, trailing)
