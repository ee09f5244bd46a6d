"""The routes of ``/api/pkger/v1`` with a real server whose streams are scripts of a test."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any

import aiohttp
from pkger.applier.v1 import applier_pb2, applier_pb2_grpc
from pkger.model.v1 import operation_pb2
from pkger.stack.v1 import stack_pb2, stack_pb2_grpc

from services.access.listeners import Listener, ListenerKind
from services.gateway.credentials import Tokens
from services.gateway.entrances import HttpEntrance
from services.gateway.middlewares import Site
from services.gateway.server import serving_http
from services.gateway.services import connected
from services.gateway.settings import GatewaySettings
from services.gateway.transcoding.route_table import api_routes
from services.gateway.transcoding.streaming import STREAM_LIMITS, StreamLimits
from services.rpc.process import Service
from tests.transport import serving_at_socket

WATCH = "/api/pkger/v1/stacks/0a:watch"
APPLY = "/api/pkger/v1/packages:apply"

Script = Callable[[Any, Any], AsyncIterator[Any]]
"""Takes the request and the context of a call, and yields its responses."""

NAMES = ("pkger.stack.v1.StackService", "pkger.applier.v1.ApplierService")


async def silent(request: Any, context: Any) -> AsyncIterator[Any]:
    """A stream that ends at once."""
    for never in list[Any]():
        yield never


class _Stacks(stack_pb2_grpc.StackServiceServicer):
    def __init__(self, script: Script) -> None:
        self._script = script

    async def WatchStack(
        self, request: stack_pb2.WatchStackRequest, context: Any
    ) -> AsyncIterator[stack_pb2.WatchStackResponse]:
        async for answer in self._script(request, context):
            yield answer


class _Operations(applier_pb2_grpc.ApplierServiceServicer):
    def __init__(self, script: Script) -> None:
        self._script = script

    async def Apply(
        self, request: applier_pb2.ApplyRequest, context: Any
    ) -> AsyncIterator[operation_pb2.OperationEvent]:
        async for answer in self._script(request, context):
            yield answer


def a_change(position: str, description: str = "") -> stack_pb2.WatchStackResponse:
    """A message of WatchStack."""
    return stack_pb2.WatchStackResponse(position=position, stack=stack_pb2.Stack(id="0a", description=description))


def an_event(seq: int) -> operation_pb2.OperationEvent:
    """A message of Apply."""
    return operation_pb2.OperationEvent(operation_id="operation-0", seq=seq)


@asynccontextmanager
async def scripted(
    watch: Script = silent,
    apply: Script = silent,
    limits: StreamLimits = STREAM_LIMITS,
    requests: int = 100,
    streams: int = 100,
) -> AsyncIterator[aiohttp.ClientSession]:
    """A client of a gateway whose WatchStack and Apply are those scripts."""
    stacks, operations = _Stacks(watch), _Operations(apply)  # type: ignore[abstract]
    register = [
        partial(stack_pb2_grpc.add_StackServiceServicer_to_server, stacks),
        partial(applier_pb2_grpc.add_ApplierServiceServicer_to_server, operations),
    ]
    # The client is closed last, so that it receives the end of its streams.
    async with AsyncExitStack() as clients, serving_at_socket(Service(register, NAMES), 1) as address:
        addresses = dict.fromkeys(("parser", "planner", "applier", "stack"), address)
        async with connected(addresses) as services:
            settings = GatewaySettings(body_bytes=10_000_000, requests=requests, streams=streams)
            site = Site(api_routes(services, limits), settings, "test", {})
            entrance = HttpEntrance(Listener("127.0.0.1:0", ListenerKind.LOOPBACK), Tokens(are_needed=False))
            async with serving_http(site, [entrance], grace=60) as (http,):
                yield await clients.enter_async_context(aiohttp.ClientSession(f"http://{http}"))
