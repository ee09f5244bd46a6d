"""Servers in this process and channels to them, without gRPC: messages pass as bytes, and calls are tasks."""

import asyncio
import contextvars
import math
from collections.abc import Awaitable, Callable, Sequence
from itertools import count
from typing import Any, Never

import grpc

from services.machine import MachineIds
from services.rpc.call import loop_time
from services.rpc.dispatcher import Dispatcher, Handler

Pairs = Sequence[tuple[str, str | bytes]]


class Numbered(MachineIds):
    """Draws a letter and a counter; salts and jitter are random."""

    def __init__(self, letter: str) -> None:
        self._letter, self._numbers = letter, count(1)

    def token(self, size: int) -> str:
        return f"{self._letter}{next(self._numbers):0{2 * size - 1}x}"


class Aborted(Exception):
    """A servicer or the dispatcher ended a call with a status."""

    def __init__(self, code: grpc.StatusCode, details: str, trailing: Pairs) -> None:
        super().__init__(code, details)
        self.code, self.details, self.trailing = code, details, trailing


class ServedCall:
    """
    One call as its servicer sees it, a ``Call``.

    Attributes:
        initial: The initial metadata that was sent.
        trailing: The trailing metadata that was set.
    """

    def __init__(self, metadata: Pairs = (), seconds: float | None = None) -> None:
        self.initial: Pairs = ()
        self.trailing: Pairs = ()
        self._metadata = metadata
        self._end = math.inf if seconds is None else loop_time() + seconds

    def invocation_metadata(self) -> Pairs:
        return self._metadata

    def time_remaining(self) -> float | None:
        return None if math.isinf(self._end) else max(self._end - loop_time(), 0.0)

    def peer(self) -> str:
        return "in-memory"

    def set_trailing_metadata(self, trailing_metadata: Pairs) -> None:
        self.trailing = trailing_metadata

    async def send_initial_metadata(self, initial_metadata: Pairs) -> None:
        self.initial = initial_metadata

    async def abort(self, code: grpc.StatusCode, details: str = "", trailing_metadata: Pairs = ()) -> Never:
        raise Aborted(code, details, trailing_metadata)


class Network:
    """Dispatchers by address; ``connect`` makes channels to them."""

    def __init__(self) -> None:
        self.servers: dict[str, Dispatcher] = {}

    def connect(self, address: str) -> "InMemoryChannel":
        return InMemoryChannel(self.servers, address)


class InMemoryChannel:
    """A connection to the server that is at an address at the time of a call."""

    def __init__(self, servers: dict[str, Dispatcher], address: str) -> None:
        self._servers = servers
        self._address = address

    def unary_unary(
        self,
        method: str,
        request_serializer: Callable[[Any], bytes] | None = None,
        response_deserializer: Callable[[bytes], Any] | None = None,
        _registered_method: bool | None = False,
    ) -> Any:
        def call(request: Any, timeout: float | None = None, metadata: Pairs = ()) -> Awaitable[Any]:
            return anext(self._stream(method, request_serializer, response_deserializer, request, timeout, metadata))

        return call

    def unary_stream(
        self,
        method: str,
        request_serializer: Callable[[Any], bytes] | None = None,
        response_deserializer: Callable[[bytes], Any] | None = None,
        _registered_method: bool | None = False,
    ) -> Any:
        def call(request: Any, timeout: float | None = None, metadata: Pairs = ()) -> "_Stream":
            return self._stream(method, request_serializer, response_deserializer, request, timeout, metadata)

        return call

    async def channel_ready(self) -> None:
        pass

    async def close(self) -> None:
        pass

    def _stream(
        self, method: str, serialize: Any, deserialize: Any, request: Any, timeout: float | None, metadata: Pairs
    ) -> "_Stream":
        if self._address not in self._servers:
            raise _error(grpc.StatusCode.UNAVAILABLE, "no connection")
        handler = self._servers[self._address].handlers[method]
        return _Stream(handler, serialize(request), deserialize, ServedCall(metadata, timeout), timeout)


class _Stream:
    """A call in flight: its responses arrive in order while the caller waits."""

    def __init__(
        self, handler: Handler, request: bytes, deserialize: Any, call: ServedCall, seconds: float | None
    ) -> None:
        self._deserialize = deserialize
        self._end = None if seconds is None else loop_time() + seconds
        self._answers: asyncio.Queue[bytes | None] = asyncio.Queue()
        work = self._serve(handler, request, call)
        # The servicer learns of its caller only through the request.
        self._task = asyncio.create_task(work, context=contextvars.Context())

    def cancel(self) -> None:
        self._task.cancel()

    def __aiter__(self) -> "_Stream":
        return self

    async def __anext__(self) -> Any:
        try:
            async with asyncio.timeout_at(self._end):
                answer = await self._answers.get()
                if answer is None:
                    await self._task
        except TimeoutError:
            self.cancel()
            raise _error(grpc.StatusCode.DEADLINE_EXCEEDED, "no answer in time") from None
        except Aborted as error:
            raise _error(error.code, error.details, error.trailing) from None
        except asyncio.CancelledError:
            self.cancel()
            raise
        if answer is None:
            raise StopAsyncIteration
        return self._deserialize(answer)

    async def _serve(self, handler: Handler, request: bytes, call: ServedCall) -> None:
        behaviour: Any = handler
        try:
            message = behaviour.request_deserializer(request)
            if handler.response_streaming:
                async for answer in behaviour.unary_stream(message, call):
                    self._answers.put_nowait(behaviour.response_serializer(answer))
            else:
                answer = await behaviour.unary_unary(message, call)
                self._answers.put_nowait(behaviour.response_serializer(answer))
        finally:
            self._answers.put_nowait(None)


def _error(code: grpc.StatusCode, details: str, trailing: Pairs = ()) -> grpc.aio.AioRpcError:
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(*trailing), details)
