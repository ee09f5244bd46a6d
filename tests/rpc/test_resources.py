"""What a driver says of resources is believed as far as it can be (engine.md 11.3)."""

from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Any

import grpc
import pytest
from pkger.driver.v1 import driver_pb2
from pkger.driver.v1.driver_pb2_grpc import DriverServiceServicer, add_DriverServiceServicer_to_server
from pkger.model.v1 import object_pb2, plan_pb2

from services.core.errors import ServiceUnavailable
from services.rpc.client import Peer
from services.rpc.dispatcher import Dispatcher
from services.rpc.resources import list_resources, platform_traits, read_resources
from tests.rpc.in_memory import Network

Context = grpc.aio.ServicerContext[Any, Any]

RED, BLUE = ("Label", "1"), ("Label", "2")


def resource(key: tuple[str, str]) -> object_pb2.Resource:
    return object_pb2.Resource(kind=key[0], id=key[1], spec_json='{"name":"n"}', display_name="n")


def found(key: tuple[str, str]) -> driver_pb2.ReadResult:
    return driver_pb2.ReadResult(resource=resource(key))


GONE = driver_pb2.ReadResult(gone=driver_pb2.Gone())


class Scripted(DriverServiceServicer):
    """Lists and reads what it is told to."""

    def __init__(self, listed: Sequence[tuple[str, str]], read: Sequence[driver_pb2.ReadResult]) -> None:
        self.asked: list[tuple[str, str]] = []
        self._listed, self._read = listed, read

    async def ListResources(
        self, request: driver_pb2.ListResourcesRequest, context: Context
    ) -> AsyncIterator[driver_pb2.ListResourcesResponse]:
        yield driver_pb2.ListResourcesResponse(resources=map(resource, self._listed))

    async def ReadResources(
        self, request: driver_pb2.ReadResourcesRequest, context: Context
    ) -> driver_pb2.ReadResourcesResponse:
        self.asked += [(each.kind, each.id) for each in request.ids]
        return driver_pb2.ReadResourcesResponse(results=self._read)

    async def PrepareSpecs(
        self, request: driver_pb2.PrepareSpecsRequest, context: Context
    ) -> driver_pb2.PrepareSpecsResponse:
        raise NotImplementedError

    async def Mutate(self, request: driver_pb2.MutateRequest, context: Context) -> driver_pb2.MutateResponse:
        raise NotImplementedError

    async def Describe(self, request: driver_pb2.DescribeRequest, context: Context) -> driver_pb2.DescribeResponse:
        raise NotImplementedError

    async def ListSecretKeys(
        self, request: driver_pb2.ListSecretKeysRequest, context: Context
    ) -> driver_pb2.ListSecretKeysResponse:
        raise NotImplementedError


def driver(scripted: Scripted) -> Peer:
    network = Network()
    network.servers["there"] = Dispatcher([partial(add_DriverServiceServicer_to_server, scripted)])
    return Peer("platform", "there", connect=network.connect)


@pytest.mark.parametrize(
    ("read", "problem"),
    [
        ([], "0 answers to 1 questions"),
        ([found(RED), GONE], "2 answers to 1 questions"),
        ([driver_pb2.ReadResult()], "it says nothing of Label 1"),
        ([found(BLUE)], "asked for Label 1, it gave Label 2"),
        ([found(("Bucket", "1"))], "asked for Label 1, it gave Bucket 1"),
    ],
)
async def test_an_answer_to_something_else_is_none(read: list[driver_pb2.ReadResult], problem: str) -> None:
    with pytest.raises(ServiceUnavailable, match=problem):
        await read_resources(driver(Scripted([], read)), "org", [RED])


@pytest.mark.parametrize(
    ("listed", "read", "problem"),
    [
        ([RED, RED], [], "names a resource twice"),
        ([("Bucket", "1")], [], "has the kind 'Bucket', which was not asked for"),
        ([RED], [found(BLUE)], "lacks Label 2, which is there"),
    ],
)
async def test_a_listing_that_cannot_be_right_is_none(
    listed: list[tuple[str, str]], read: list[driver_pb2.ReadResult], problem: str
) -> None:
    with pytest.raises(ServiceUnavailable, match=problem):
        await list_resources(driver(Scripted(listed, read)), "org", ["Label"], [RED, BLUE])


async def test_only_what_a_listing_lacks_is_read() -> None:
    scripted = Scripted([RED], [GONE])
    live = await list_resources(driver(scripted), "org", ["Label"], [RED, BLUE, ("Bucket", "3")])
    assert [(each.kind, each.id) for each in live] == [RED]
    assert scripted.asked == [BLUE]
    complete = Scripted([RED, BLUE], [])
    await list_resources(driver(complete), "org", ["Label"], [RED, BLUE])
    assert complete.asked == []


@pytest.mark.parametrize("field", ["identity", "name_uniqueness", "delete_undo"])
async def test_a_trait_that_nobody_knows_is_no_fault_of_the_caller(field: str) -> None:
    known: dict[str, Any] = {
        "identity": driver_pb2.IDENTITY_SEARCH,
        "name_uniqueness": driver_pb2.NAME_UNIQUENESS_NONE,
        "delete_undo": plan_pb2.UNDO_RECREATE,
    }

    class Described(Scripted):
        async def Describe(self, request: driver_pb2.DescribeRequest, context: Context) -> driver_pb2.DescribeResponse:
            traits = driver_pb2.KindTraits(kind="Label", **(known | {field: 77}))
            return driver_pb2.DescribeResponse(platform="p", kinds=[traits])

    with pytest.raises(ServiceUnavailable, match=r"its description has an unknown .*: 77 is not a value to send"):
        await platform_traits(driver(Described([], [])))
