"""The error names a platform that hangs, whichever services are in between."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from pkger.applier.v1 import applier_pb2
from pkger.applier.v1.applier_pb2_grpc import ApplierServiceStub
from pkger.driver.v1 import driver_pb2_grpc
from pkger.planner.v1 import planner_pb2
from pkger.planner.v1.planner_pb2_grpc import PlannerServiceStub

from services.core.errors import ServiceUnavailable
from services.rpc.process import Service
from services.settings import Settings
from tests.apply.packages import LABEL, text
from tests.cluster import Cluster, cluster, sources
from tests.virtual_time import VirtualLoop

SECONDS = 3.0


class _Hanging(driver_pb2_grpc.DriverServiceServicer):
    """Answers no call."""

    async def Describe(self, request: object, context: object) -> Any:
        await asyncio.Event().wait()

    async def ListResources(self, request: object, context: object) -> AsyncIterator[Any]:
        await asyncio.Event().wait()
        yield None


@asynccontextmanager
async def _hanging(settings: Settings) -> AsyncIterator[Service]:
    servicer = _Hanging()  # type: ignore[abstract]
    yield Service(
        [lambda server: driver_pb2_grpc.add_DriverServiceServicer_to_server(servicer, server)],
        ["pkger.driver.v1.DriverService"],
    )


def with_services(folder: Path, test: Callable[[Cluster], Awaitable[None]]) -> None:
    """Run *test* on virtual time."""

    async def run() -> None:
        async with cluster(folder, {"platform": _hanging}) as services:
            await test(services)

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(run())


def _check(error: ServiceUnavailable, services: Cluster) -> None:
    assert error.metadata == {
        "service": "platform",
        "platform": "embedded",
        "address": services.addresses["platform"],
        "problem": "no answer in time",
    }


def test_a_plan_names_the_platform_that_hangs(tmp_path: Path) -> None:
    async def test(services: Cluster) -> None:
        planner = services.peers["planner"]
        request = planner_pb2.CreatePlanRequest(validate_only=True)
        request.package.sources.extend(sources([text(LABEL)]))
        with pytest.raises(ServiceUnavailable) as raised:
            async for _ in planner.stream(PlannerServiceStub(planner.channel).CreatePlan, request, SECONDS):
                pass
        _check(raised.value, services)

    with_services(tmp_path, test)


def test_an_apply_names_the_platform_that_hangs_and_leaves_the_stack_free(tmp_path: Path) -> None:
    async def test(services: Cluster) -> None:
        applier = services.peers["applier"]
        request = applier_pb2.ApplyRequest()
        request.stack.name = "s"
        request.package.sources.extend(sources([text(LABEL)]))
        for _ in range(2):
            with pytest.raises(ServiceUnavailable) as raised:
                async for _ in applier.stream(ApplierServiceStub(applier.channel).Apply, request, SECONDS):
                    pass
            _check(raised.value, services)
        assert await services.stack_names() == []

    with_services(tmp_path, test)
