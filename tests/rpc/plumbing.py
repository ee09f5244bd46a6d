"""Servers whose servicers are functions of a test, to test the code around them."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from pkger.driver.v1 import driver_pb2, driver_pb2_grpc
from pkger.model.v1 import object_pb2
from pkger.stack.v1 import stack_pb2, stack_pb2_grpc

from services.rpc.client import Peer
from services.rpc.server import Register, serving
from tests.transport import socket_entrance, socket_in_new_folder

SERVICES = ("pkger.stack.v1.StackService", "pkger.driver.v1.DriverService")

Context = Any
Get = Callable[[stack_pb2.GetStackRequest, Context], Awaitable[stack_pb2.GetStackResponse]]
Delete = Callable[[stack_pb2.DeleteStackRequest, Context], Awaitable[stack_pb2.DeleteStackResponse]]
List = Callable[[driver_pb2.ListResourcesRequest, Context], AsyncIterator[driver_pb2.ListResourcesResponse]]


class _Unary(stack_pb2_grpc.StackServiceServicer):
    """GetStack, which may be retried, and DeleteStack, which may not."""

    def __init__(self, get: Get | None, delete: Delete | None) -> None:
        self._get = get
        self._delete = delete

    async def GetStack(self, request: stack_pb2.GetStackRequest, context: Context) -> stack_pb2.GetStackResponse:
        assert self._get
        return await self._get(request, context)

    async def DeleteStack(
        self, request: stack_pb2.DeleteStackRequest, context: Context
    ) -> stack_pb2.DeleteStackResponse:
        assert self._delete
        return await self._delete(request, context)


class _Streaming(driver_pb2_grpc.DriverServiceServicer):
    def __init__(self, resources: List | None) -> None:
        self._resources = resources

    async def ListResources(
        self, request: driver_pb2.ListResourcesRequest, context: Context
    ) -> AsyncIterator[driver_pb2.ListResourcesResponse]:
        assert self._resources
        async for response in self._resources(request, context):
            yield response


def registered(get: Get | None = None, delete: Delete | None = None, resources: List | None = None) -> list[Register]:
    """Servicers that call the given functions."""
    unary = _Unary(get, delete)  # type: ignore[abstract]
    streaming = _Streaming(resources)  # type: ignore[abstract]
    return [
        partial(stack_pb2_grpc.add_StackServiceServicer_to_server, unary),
        partial(driver_pb2_grpc.add_DriverServiceServicer_to_server, streaming),
    ]


@asynccontextmanager
async def served(
    get: Get | None = None,
    delete: Delete | None = None,
    resources: List | None = None,
    listen: str = "",
    grace: float = 0,
) -> AsyncIterator[str]:
    """A server that calls the given functions, at *listen*, a socket, or at a new one; its address."""
    with socket_in_new_folder() as new:
        address = listen or new
        async with serving(registered(get, delete, resources), SERVICES, [socket_entrance(address)], grace):
            yield address


@asynccontextmanager
async def peer_of(
    get: Get | None = None,
    delete: Delete | None = None,
    resources: List | None = None,
    listen: str = "",
) -> AsyncIterator[Peer]:
    """A server that calls the given functions, and a client of it."""
    async with served(get, delete, resources, listen) as address:
        peer = Peer("other", address)
        yield peer
        await peer.close()


async def get(peer: Peer, stack_id: str = "", seconds: float | None = 60.0) -> stack_pb2.Stack:
    """Call GetStack."""
    stub = stack_pb2_grpc.StackServiceStub(peer.channel)
    return (
        await peer.call(stub.GetStack, stack_pb2.GetStackRequest(stack=object_pb2.StackRef(id=stack_id)), seconds)
    ).stack


async def delete(peer: Peer) -> None:
    """Call DeleteStack."""
    stub = stack_pb2_grpc.StackServiceStub(peer.channel)
    await peer.call(stub.DeleteStack, stack_pb2.DeleteStackRequest())


def list_resources(peer: Peer) -> AsyncGenerator[driver_pb2.ListResourcesResponse, None]:
    """Call ListResources."""
    stub = driver_pb2_grpc.DriverServiceStub(peer.channel)
    return peer.stream(stub.ListResources, driver_pb2.ListResourcesRequest())


def answer(name: str) -> stack_pb2.GetStackResponse:
    """A response with a text in it."""
    return stack_pb2.GetStackResponse(stack=stack_pb2.Stack(name=name))
