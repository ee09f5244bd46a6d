"""All services in one process, on dispatchers that are called without gRPC (docs/architecture.md, "Seams")."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import pytest
from pkger.applier.v1 import applier_pb2
from pkger.applier.v1.applier_pb2_grpc import ApplierServiceStub
from pkger.model.v1 import operation_pb2

import applier_svc.__main__ as applier
import planner_svc.__main__ as planner
from services.core.errors import PlanNotFound
from services.rpc.client import Peer
from services.rpc.dispatcher import Dispatcher
from services.rpc.process import Opened
from services.settings import Settings
from tests.apply.packages import an_object, text
from tests.cluster import OPENED, Cluster
from tests.rpc.in_memory import Network, Numbered

PACKAGE = text(
    an_object("Label", "red", "red"),
    an_object("Bucket", "raw", "raw", ["red"]),
    an_object("Dashboard", "cpu", "cpu", ["red"]),
)

MONDAY = 1_764_000_000_000_000
"""Microseconds since 1970."""


@asynccontextmanager
async def connected(data: Path) -> AsyncIterator[Cluster]:
    """The services; each address is the name of one."""
    network, addresses = Network(), {name: name for name in OPENED}
    settings = Settings(addresses, data, data, data, holder="applier-1")
    given: Mapping[str, Callable[..., Any]] = {
        "planner": partial(planner.opened, connect=network.connect, ids=Numbered("a")),
        "applier": partial(applier.opened, connect=network.connect, ids=Numbered("b"), clock=lambda: MONDAY),
    }
    opened: Mapping[str, Opened] = {**OPENED, **given}
    async with AsyncExitStack() as running:
        for name in OPENED:
            service = await running.enter_async_context(opened[name](settings))
            network.serve(name, Dispatcher(service.register, ids=Numbered("c")))
        peers = {name: Peer(name, name, connect=network.connect, ids=Numbered("d")) for name in OPENED}
        yield Cluster(addresses, peers)


@pytest.fixture
async def services(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Cluster]:
    """The services, in a process in which gRPC servers and channels cannot be created."""
    for name in ("server", "insecure_channel"):
        monkeypatch.delattr(grpc.aio, name)
    async with connected(tmp_path) as running:
        yield running


async def test_a_package_is_applied_twice_and_uninstalled(services: Cluster) -> None:
    first = await services.apply(PACKAGE, stack="s")
    assert first.state == operation_pb2.OPERATION_STATE_SUCCEEDED, first.cause
    assert (first.counts.creates, first.counts.attaches) == (3, 2)
    assert len(await services.resources()) == 3

    again = await services.apply(PACKAGE, stack="s")
    assert again.state == operation_pb2.OPERATION_STATE_SUCCEEDED, again.cause
    assert again.no_change
    assert set((await services.record("s")).ids) == {("Label", "red"), ("Bucket", "raw"), ("Dashboard", "cpu")}

    gone = await services.uninstall("s")
    assert gone.state == operation_pb2.OPERATION_STATE_SUCCEEDED, gone.cause
    assert await services.resources() == []
    assert await services.stack_names() == []


async def test_what_services_draw_and_read_is_what_they_were_given(services: Cluster) -> None:
    plan = await services.plan(PACKAGE, stack="s", store=True)
    assert plan.name.startswith("a")
    events = [event async for event in services.apply_plan(plan.name)]
    assert {event.operation_id[0] for event in events} == {"b"}
    assert {event.time.ToMicroseconds() for event in events} == {MONDAY}
    assert (await services.newest_operation()).holder == "applier-1"


async def test_an_error_comes_from_the_innermost_service(services: Cluster) -> None:
    peer = services.peers["applier"]
    request = applier_pb2.ApplyPlanRequest(plan_id="plan-none")
    with pytest.raises(PlanNotFound, match="plan-none"):
        [answer async for answer in peer.stream(ApplierServiceStub(peer.channel).ApplyPlan, request)]
