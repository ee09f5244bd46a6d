"""Serves calls of any transport: request id, deadline, translation of errors to statuses, one log line each."""

import asyncio
import logging
import math
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Never, Protocol, TypeAlias, cast

import grpc
from grpc_status import rpc_status

from services.core.errors import Internal, PkgerError, Reason, ServiceUnavailable
from services.rpc.call import (
    ENDLESS,
    LONGEST_CALL_SECONDS,
    REQUEST_ID_KEY,
    caller,
    deadline,
    loop_time,
    request_id,
    usable_request_id,
)
from services.rpc.errors import to_status
from services.rpc.undecodable import marking, refuse_undecodable
from services.system import Clock, Ids, MachineIds, machine_clock

log = logging.getLogger("pkger.rpc")

NO_RETRY = ("grpc-retry-pushback-ms", "-1")
"""Trailing metadata that keeps gRPC clients from retrying the call."""

STOPPING = "the server is stopping"

Metadata = Sequence[tuple[str, str | bytes]]

Register = Callable[[grpc.aio.Server], None]
"""Adds one servicer to a server, or to a ``Dispatcher``: ``functools.partial(add_XServicer_to_server, servicer)``."""

Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
"""``unary_unary`` or ``unary_stream`` takes a request and a ``Call``. The handler also has the serializers."""


class Call(Protocol):
    """The call that a servicer serves, as the servicer sees it. ``grpc.aio.ServicerContext`` is one."""

    def invocation_metadata(self) -> Iterable[tuple[str, str | bytes]] | None:
        """The metadata of the request."""

    def time_remaining(self) -> float | None:
        """Seconds until the deadline; None: there is none."""

    def peer(self) -> str:
        """The address of the caller, for the log."""

    def set_trailing_metadata(self, trailing_metadata: Metadata, /) -> None:
        """Set the metadata that is sent after the last message."""

    async def abort(self, code: grpc.StatusCode, details: str = "", trailing_metadata: Metadata = (), /) -> Never:
        """End the call with a status other than OK, by an exception that the transport handles."""


class Dispatcher:
    """
    The handlers of the servicers of one process.

    A transport runs a handler in a new task for each call, and cancels the task when the caller disconnects or the
    deadline passes.

    Attributes:
        handlers: By full method name, such as ``/pkger.stack.v1.StackService/GetStack``.
        idle: Set while no call is in flight.
        refuse_new: Whether new calls are refused, because the server is about to stop.
    """

    def __init__(self, register: Collection[Register], clock: Clock = machine_clock, ids: Ids = MachineIds()) -> None:
        """
        Args:
            register: Functions that add the servicers.
            clock: The time of day, for errors with a retry delay.
            ids: Draws request ids for calls without a usable one.
        """
        self.handlers: dict[str, Handler] = {}
        self.idle = asyncio.Event()
        self.idle.set()
        self.refuse_new = False
        self._clock = clock
        self._ids = ids
        self._in_flight = 0
        for add in register:
            # Generated code calls only the two methods below.
            add(cast("grpc.aio.Server", self))

    def add_generic_rpc_handlers(self, handlers: object) -> None:
        """Ignore these; ``add_registered_method_handlers`` receives the same handlers by name."""

    def add_registered_method_handlers(self, service: str, handlers: Mapping[str, Handler]) -> None:
        """Add the handlers of a service, by name of the method."""
        for name, handler in handlers.items():
            method = f"/{service}/{name}"
            self.handlers[method] = self._wrapped(method, handler)

    def _wrapped(self, method: str, handler: Handler) -> Handler:
        if handler.response_streaming:
            served, make = self._stream(handler.unary_stream, method), grpc.unary_stream_rpc_method_handler
        else:
            served, make = self._unary(handler.unary_unary, method), grpc.unary_unary_rpc_method_handler
        return make(served, marking(handler.request_deserializer), handler.response_serializer)

    def _unary(self, behaviour: Any, method: str) -> Any:
        async def serve(request: Any, call: Call) -> Any:
            if self.refuse_new:
                await call.abort(grpc.StatusCode.UNAVAILABLE, STOPPING)
            with self._counted():
                async with self._served(method, call):
                    refuse_undecodable(request, method)
                    return await behaviour(request, call)

        return serve

    def _stream(self, behaviour: Any, method: str) -> Any:
        async def serve(request: Any, call: Call) -> AsyncIterator[Any]:
            if self.refuse_new:
                await call.abort(grpc.StatusCode.UNAVAILABLE, STOPPING)
            with self._counted():
                async with self._served(method, call):
                    refuse_undecodable(request, method)
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
        current = usable_request_id(metadata.get(REQUEST_ID_KEY), self._ids)
        request_id.set(current)
        left = call.time_remaining()
        if left is None and method not in ENDLESS:
            left = LONGEST_CALL_SECONDS
        deadline.set(math.inf if left is None else loop_time() + left)
        # Not later: after a cancellation, grpcio 1.85 crashes in peer().
        peer = call.peer()
        started, code = loop_time(), "OK"
        call.set_trailing_metadata(((REQUEST_ID_KEY, current),))
        try:
            yield
        except PkgerError as error:
            code = error.reason
            await self._abort(call, error, current)
        except (asyncio.CancelledError, GeneratorExit):
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
                    "principal": caller.get().principal,
                    **({"token": token} if (token := caller.get().token_id) else {}),
                },
            )

    async def _abort(self, call: Call, error: PkgerError, current: str) -> None:
        if isinstance(error, ServiceUnavailable) and caller.get().token_id:
            log.warning("a service that the call needs is unavailable", extra={"problem": str(error)})
            error = error.without_address()
        status = rpc_status.to_status(to_status(error, self._clock))
        # The service that called the unreachable one has retried already. If each hop retried, the retries would
        # multiply and reach the deadline of the caller, whose error would then name this service instead of the
        # unreachable one.
        pushback = [NO_RETRY] if error.reason is Reason.SERVICE_UNAVAILABLE else []
        trailing = (*status.trailing_metadata, (REQUEST_ID_KEY, current), *pushback)
        await call.abort(status.code, status.details, trailing)
