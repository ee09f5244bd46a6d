"""
A status that no pkger service returns, at each call between services: the error names the service that was called.

A proxy returns such a status, or gRPC when a service ends during a call.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any, Never

import grpc
import pytest
from pkger.applier.v1 import applier_pb2
from pkger.applier.v1.applier_pb2_grpc import ApplierServiceStub
from pkger.model.v1 import object_pb2
from pkger.planner.v1 import planner_pb2
from pkger.planner.v1.planner_pb2_grpc import PlannerServiceStub

from services.core.errors import ServiceUnavailable
from services.rpc.channel import Channel
from tests.apply.packages import BUCKET, LABEL, an_object, text
from tests.cluster import Cluster, cluster
from tests.drivers.client import create
from tests.drivers.platforms import sample
from tests.transport import InMemory, transport_of_loop

CODES = [
    code
    for code in grpc.StatusCode
    if code not in (grpc.StatusCode.OK, grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)
]

OWN = text(LABEL, BUCKET)
TARGET = object_pb2.Target(platform="embedded", org="default")


def changed(description: str) -> str:
    """The package with another description of its bucket."""
    return text(LABEL, an_object("Bucket", "pristine_noir", "bucket_1", ["lucid_einstein"], description=description))


NAMES = {"ParserService": "parser", "PlannerService": "planner", "DriverService": "platform"}
"""The services by their classes in the contracts; the stack service has two others."""


@dataclass(frozen=True)
class Fault:
    """The status that call number *number* of *method* ends with."""

    method: str
    number: int
    code: grpc.StatusCode


class Intruder(InMemory):
    """
    Connects services in memory, and ends one call in place of the called service.

    Attributes:
        calls: The calls so far.
        fault: The call to end.
    """

    calls: list[str]
    fault: Fault | None = None

    def connect(self, address: str) -> Channel:
        return _Intruded(self, super().connect(address))

    def is_next(self, method: str) -> bool:
        """Note a call; whether it is the one to end."""
        self.calls.append(method)
        return self.fault is not None and (self.fault.method, self.fault.number) == (method, self.calls.count(method))


class _Intruded:
    """A channel of an intruder."""

    def __init__(self, intruder: Intruder, behind: Channel) -> None:
        self._intruder, self._behind = intruder, behind

    def unary_unary(self, method: str, *more: Any, **named: Any) -> Any:
        return self._either(method, self._behind.unary_unary(method, *more, **named))

    def unary_stream(self, method: str, *more: Any, **named: Any) -> Any:
        return self._either(method, self._behind.unary_stream(method, *more, **named))

    def _either(self, method: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def made(*request: Any, **named: Any) -> Any:
            if not self._intruder.is_next(method):
                return call(*request, **named)
            assert self._intruder.fault
            return _Ended(self._intruder.fault.code)

        return made

    async def channel_ready(self) -> None:
        await self._behind.channel_ready()

    async def wait_for_state_change(self, last_observed_state: grpc.ChannelConnectivity) -> None:
        await self._behind.wait_for_state_change(last_observed_state)

    async def close(self) -> None:
        await self._behind.close()


class _Ended:
    """A call that ends at once."""

    def __init__(self, code: grpc.StatusCode) -> None:
        self._error = grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(), "not found")

    def __await__(self) -> Any:
        return self._raise().__await__()

    def __aiter__(self) -> "_Ended":
        return self

    async def __anext__(self) -> Never:
        await self._raise()

    def cancel(self) -> None:
        pass

    async def _raise(self) -> Never:
        raise self._error


@dataclass(frozen=True)
class World:
    """Services with the stack "s"."""

    services: Cluster
    intruder: Intruder

    async def drift(self) -> None:
        peer = self.services.peers["planner"]
        request = planner_pb2.DetectDriftRequest(stack=object_pb2.StackRef(target=TARGET, name="s"))
        [_ async for _ in peer.stream(PlannerServiceStub(peer.channel).DetectDrift, request)]

    async def add(self, name: str) -> None:
        """Import a new resource into the stack."""
        made = await self.services.mutate(create("Label", sample("Label", name, "")))
        self.intruder.calls.clear()
        peer = self.services.peers["applier"]
        request = applier_pb2.ImportResourcesRequest(
            stack=object_pb2.StackRef(target=TARGET, name="s"),
            resources=[applier_pb2.ResourceImport(kind="Label", id=made.results[0].done.id)],
        )
        [_ async for _ in peer.stream(ApplierServiceStub(peer.channel).ImportResources, request)]


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    intruder = Intruder(transport_of_loop().clock)
    intruder.calls = []
    async with cluster(tmp_path, transport=intruder) as services:
        await services.apply(OWN, stack="s")
        yield World(services, intruder)


ACTS: dict[str, Callable[[World, str], Awaitable[Any]]] = {
    "plan": lambda world, name: world.services.plan(changed(name), stack="s"),
    "stored plan": lambda world, name: world.services.plan(changed(name), stack="s", store=True),
    "removal": lambda world, _: world.services.plan(stack="s", destroy=True),
    "export": lambda world, _: world.services.export(stack="s"),
    "drift": lambda world, _: world.drift(),
    "import": lambda world, name: world.add(name),
}

TOLERATED = {("drift", "DriverService/ListResources")}
"""Calls without which the act succeeds: a report of drift says which kinds it could not list."""


@pytest.mark.parametrize("act", ACTS)
async def test_the_error_of_a_call_between_services_names_the_service(world: World, act: str) -> None:
    world.intruder.calls.clear()
    await ACTS[act](world, "first")
    outer, *inner = world.intruder.calls
    assert inner
    codes = cycle(CODES)
    for place, method in enumerate(inner):
        code = next(codes)
        world.intruder.calls.clear()
        world.intruder.fault = Fault(method, inner[: place + 1].count(method) + (method == outer), code)
        called = method.strip("/").rpartition(".")[2]
        if (act, called) in TOLERATED:
            await ACTS[act](world, f"{place}")
            continue
        with pytest.raises(ServiceUnavailable) as raised:
            await ACTS[act](world, f"{place}")
        named = NAMES.get(called.partition("/")[0], "stack")
        assert (raised.value.metadata["service"], raised.value.status) == (named, code.name), method
        assert raised.value.metadata["problem"] == f"the call ended with status {code.name}: not found"


async def test_an_apply_survives_the_status_or_names_the_service(world: World) -> None:
    world.intruder.calls.clear()
    await world.services.apply(two_objects("first"), stack="first")
    for number, method in enumerate(dict.fromkeys(world.intruder.calls[1:])):
        world.intruder.fault = Fault(method, 1, CODES[number % len(CODES)])
        world.intruder.calls.clear()
        with suppress(ServiceUnavailable):
            finished = await world.services.apply(two_objects(f"{number}"), stack=f"{number}")
            assert "defect" not in finished.cause, method
        assert method in world.intruder.calls


def two_objects(name: str) -> str:
    """A package whose names begin with *name*."""
    return text(an_object("Label", f"{name}-l", f"{name} label"), an_object("Bucket", f"{name}-b", f"{name} bucket"))
