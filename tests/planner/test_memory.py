"""The memory of the planner, as a process, while it reads what a faulty driver returns."""

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import partial
from itertools import count
from pathlib import Path

import pytest
from pkger.driver.v1 import driver_pb2
from pkger.driver.v1.driver_pb2_grpc import DriverServiceServicer, add_DriverServiceServicer_to_server
from pkger.model.v1 import object_pb2
from pkger.planner.v1 import planner_pb2
from pkger.planner.v1.planner_pb2_grpc import PlannerServiceStub

from services.core.errors import ServiceUnavailable
from services.drivers.embedded.kinds import EMBEDDED
from services.drivers.servicer import SERVICES
from services.rpc.client import Peer
from services.rpc.convert.drivers import platform_to_pb
from services.rpc.process import Service
from tests import needs
from tests.peak_memory import GIGABYTE, measured
from tests.transport import serving_at_socket

pytestmark = [needs.path("/proc/self/status"), pytest.mark.slow]

Make = Callable[[int], object_pb2.Resource]

SPEC = '{"name":"n"}'


class Endless(DriverServiceServicer):
    """Lists the same part for ever."""

    def __init__(self, resources: list[object_pb2.Resource]) -> None:
        self._part = driver_pb2.ListResourcesResponse(resources=resources)
        self.left = asyncio.Event()

    async def Describe(self, request: object, context: object) -> driver_pb2.DescribeResponse:
        return platform_to_pb(EMBEDDED)

    async def ListResources(self, request: object, context: object) -> AsyncIterator[driver_pb2.ListResourcesResponse]:
        try:
            for _ in count():
                yield self._part
        finally:
            self.left.set()


def small(number: int) -> object_pb2.Resource:
    return object_pb2.Resource(kind="Label", id=f"{number:016x}", spec_json=SPEC, display_name="n")


def wide(number: int) -> object_pb2.Resource:
    """One character makes the text take four times its bytes."""
    spec = '{"description":"\U0001f600' + "d" * 10_000 + '","name":"n"}'
    return object_pb2.Resource(kind="Label", id=f"{number:016x}", spec_json=spec, display_name="n")


def labelled(number: int) -> object_pb2.Resource:
    resource = small(number)
    resource.label_ids.extend(["id"] * 1000)
    return resource


@pytest.mark.parametrize(("make", "number"), [(small, 20_000), (wide, 100), (labelled, 250)])
async def test_a_listing_without_end_takes_less_than_one_and_a_half_gigabytes(
    make: Make, number: int, tmp_path: Path
) -> None:
    driver = Endless([make(each) for each in range(number)])  # type: ignore[abstract]
    register = partial(add_DriverServiceServicer_to_server, driver)
    target = object_pb2.Target(platform="embedded", org="example")
    async with (
        serving_at_socket(Service([register], SERVICES)) as platform,
        measured("planner_svc", tmp_path, {"PKGER_PLATFORM_ADDRESS": platform}) as (address, peak),
        Peer("planner", address) as peer,
    ):
        stub = PlannerServiceStub(peer.channel)
        for _ in range(3):
            # What an earlier call has read is not kept.
            request = planner_pb2.ListLiveResourcesRequest(target=target, kinds=["Label"])
            with pytest.raises(ServiceUnavailable, match=r"platform 'embedded' .* it returned .*more than"):
                await anext(peer.stream(stub.ListLiveResources, request))
            await driver.left.wait()
        assert peak() < 1.5 * GIGABYTE
