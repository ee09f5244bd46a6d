"""A server between the command line and the services: it records calls, and replays them with a status of its own."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
from google.protobuf import descriptor_pool

from services.rpc.dispatcher import NO_RETRY

Pairs = tuple[tuple[str, str | bytes], ...]


@dataclass(frozen=True, slots=True)
class Fault:
    """
    Where a call ends early, and how.

    Attributes:
        method: Its full name.
        number: Which call of this method, from 0 on.
        after: The number of messages before the end.
        code: The status.
    """

    method: str
    number: int
    after: int
    code: grpc.StatusCode

    @property
    def name(self) -> str:
        """The method without its service."""
        return self.method.rpartition("/")[2]


@dataclass(slots=True)
class Recorded:
    """A call: its messages, and its status."""

    method: str
    messages: list[bytes] = field(default_factory=list)
    code: grpc.StatusCode = grpc.StatusCode.OK
    details: str = ""
    trailing: Pairs = ()


class Replaying(grpc.GenericRpcHandler):
    """
    Handles all calls of all services.

    Attributes:
        calls: The calls that are recorded, in order.
        replayed: The calls to answer with; None: calls are passed to the services, and recorded.
        fault: The call that ends early.
        streaming: Set when a recorded stream has a message.
    """

    def __init__(self, channels: Mapping[str, grpc.aio.Channel]) -> None:
        """*channels* are the connections to the services, by the full names of the services."""
        self.calls: list[Recorded] = []
        self.replayed: list[Recorded] | None = None
        self.fault: Fault | None = None
        self.streaming = asyncio.Event()
        self._channels = channels
        self._counts: dict[str, int] = {}

    def replay(self, calls: list[Recorded], fault: Fault | None) -> None:
        """Answer the next calls of each method with *calls*, the last one again and again, except for *fault*."""
        self.replayed, self.fault, self._counts = calls, fault, {}

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> "grpc.RpcMethodHandler[Any, Any]":
        """A handler that knows messages as bytes only."""
        method = str(handler_call_details.method)
        if is_stream(method):

            async def stream(request: bytes, context: Any) -> AsyncIterator[bytes]:
                async for message in self._answered(method, request, context):
                    yield message

            return grpc.unary_stream_rpc_method_handler(stream)

        async def unary(request: bytes, context: Any) -> bytes:
            [message] = [message async for message in self._answered(method, request, context)]
            return message

        return grpc.unary_unary_rpc_method_handler(unary)

    async def _answered(self, method: str, request: bytes, context: Any) -> AsyncIterator[bytes]:
        number = self._counts[method] = self._counts.get(method, -1) + 1
        fault = self.fault if self.fault and (self.fault.method, self.fault.number) == (method, number) else None
        if self.replayed is None:
            messages = self._passed_on(method, request, context)
        else:
            known = [call for call in self.replayed if call.method == method]
            messages = _again(known[min(number, len(known) - 1)], context)
        left = fault.after if fault else -1
        while left:
            try:
                yield await anext(messages)
            except StopAsyncIteration:
                return
            left -= 1
        if fault:
            # Two lines, as a proxy may send; a client of gRPC would repeat some calls after UNAVAILABLE.
            await context.abort(fault.code, "somebody\nelse", (NO_RETRY,))

    async def _passed_on(self, method: str, request: bytes, context: Any) -> AsyncIterator[bytes]:
        call = Recorded(method)
        self.calls.append(call)
        channel: Any = self._channels[method.split("/")[1]]
        try:
            if is_stream(method):
                async for message in channel.unary_stream(method)(request):
                    self.streaming.set()
                    call.messages.append(message)
                    yield message
            else:
                call.messages.append(await channel.unary_unary(method)(request))
                yield call.messages[0]
        except grpc.aio.AioRpcError as error:
            call.code, call.details, call.trailing = (
                error.code(),
                str(error.details()),
                tuple(error.trailing_metadata()),
            )
            await context.abort(call.code, call.details, call.trailing)


async def _again(call: Recorded, context: Any) -> AsyncIterator[bytes]:
    for message in call.messages:
        yield message
    if call.code is not grpc.StatusCode.OK:
        await context.abort(call.code, call.details, call.trailing)


def is_stream(method: str) -> bool:
    """Whether the response of *method*, a full name, is a stream."""
    service, name = method.strip("/").split("/")
    return bool(descriptor_pool.Default().FindServiceByName(service).methods_by_name[name].server_streaming)


@asynccontextmanager
async def replaying(channels: Mapping[str, grpc.aio.Channel]) -> AsyncIterator[tuple[Replaying, str]]:
    """The handler and the address of a server in front of *channels*."""
    handler, server = Replaying(channels), grpc.aio.server()
    server.add_generic_rpc_handlers((handler,))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield handler, f"127.0.0.1:{port}"
    finally:
        await server.stop(0)
