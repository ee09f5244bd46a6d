"""The checks of the responses of a driver (docs/reference/engine.md, "Driver answers")."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import grpc
import pytest
from pkger.driver.v1 import driver_pb2
from pkger.driver.v1.driver_pb2_grpc import DriverServiceServicer, add_DriverServiceServicer_to_server
from pkger.model.v1 import object_pb2, operation_pb2, plan_pb2

from services.core.errors import ServiceUnavailable
from services.core.model import DesiredSpec, Identity, PlatformTraits, Spec
from services.drivers.embedded.kinds import EMBEDDED
from services.engine.outcome import Failed, RejectionReason
from services.kinds.format.canonical import spec_of
from services.rpc.client import Peer
from services.rpc.convert.drivers import platform_to_pb
from services.rpc.dispatcher import Dispatcher
from services.rpc.process import Service
from services.rpc.resources import list_resources, live_resources, platform_traits, prepare_specs, read_resources
from tests.older_platform import older
from tests.rpc.in_memory import Network
from tests.transport import serving_at_socket

Context = grpc.aio.ServicerContext[Any, Any]

RED, BLUE = ("Label", "1"), ("Label", "2")


def resource(key: tuple[str, str]) -> object_pb2.Resource:
    return object_pb2.Resource(kind=key[0], id=key[1], spec_json='{"name":"n"}', display_name="n")


def found(key: tuple[str, str]) -> driver_pb2.ReadResult:
    return driver_pb2.ReadResult(resource=resource(key))


GONE = driver_pb2.ReadResult(gone=driver_pb2.Gone())


class Scripted(DriverServiceServicer):
    """Lists, reads and prepares what a test sets; it holds specs unchanged unless a test sets others."""

    def __init__(
        self,
        listed: Sequence[tuple[str, str]] = (),
        read: Sequence[driver_pb2.ReadResult] = (),
        prepared: Sequence[driver_pb2.PreparedSpec] | None = None,
    ) -> None:
        self.asked: list[tuple[str, str]] = []
        self.batches: list[int] = []
        self.prepared = prepared
        self.traits = EMBEDDED
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
        self.batches.append(len(request.specs))
        if self.prepared is not None:
            return driver_pb2.PrepareSpecsResponse(specs=self.prepared)
        held = [driver_pb2.StoredSpec(kind=spec.kind) for spec in request.specs]
        prepared = [driver_pb2.PreparedSpec(stored=each, position=at) for at, each in enumerate(held)]
        return driver_pb2.PrepareSpecsResponse(specs=prepared)

    async def Mutate(self, request: driver_pb2.MutateRequest, context: Context) -> driver_pb2.MutateResponse:
        raise NotImplementedError

    async def Describe(self, request: driver_pb2.DescribeRequest, context: Context) -> driver_pb2.DescribeResponse:
        return platform_to_pb(self.traits)

    async def ListSecretKeys(
        self, request: driver_pb2.ListSecretKeysRequest, context: Context
    ) -> driver_pb2.ListSecretKeysResponse:
        raise NotImplementedError

    async def ListOrgs(self, request: driver_pb2.ListOrgsRequest, context: Context) -> driver_pb2.ListOrgsResponse:
        raise NotImplementedError

    async def Check(self, request: driver_pb2.CheckRequest, context: Context) -> driver_pb2.CheckResponse:
        raise NotImplementedError


def driver(scripted: Scripted) -> Peer:
    network = Network()
    network.serve("there", Dispatcher([partial(add_DriverServiceServicer_to_server, scripted)]))
    return Peer("platform", "there", connect=network.connect)


@pytest.mark.parametrize(
    ("read", "problem"),
    [
        ([], "0 results for 1 ids"),
        ([found(RED), GONE], "2 results for 1 ids"),
        ([driver_pb2.ReadResult()], "it returned no result for Label 1"),
        ([found(BLUE)], "asked for Label 1, it returned Label 2"),
        ([found(("Bucket", "1"))], "asked for Label 1, it returned Bucket 1"),
    ],
)
async def test_a_read_that_does_not_fit_its_request_is_an_error(
    read: list[driver_pb2.ReadResult], problem: str
) -> None:
    with pytest.raises(ServiceUnavailable, match=problem):
        await read_resources(driver(Scripted([], read)), "org", [RED])


@pytest.mark.parametrize(
    ("listed", "read", "problem"),
    [
        ([RED, RED], [], "has a resource twice"),
        ([("Bucket", "1")], [], "has the kind 'Bucket', which was not requested"),
        ([RED], [found(BLUE)], "lacks Label 2, which exists"),
    ],
)
async def test_an_inconsistent_list_is_an_error(
    listed: list[tuple[str, str]], read: list[driver_pb2.ReadResult], problem: str
) -> None:
    with pytest.raises(ServiceUnavailable, match=problem):
        await list_resources(driver(Scripted(listed, read)), "org", ["Label"], [RED, BLUE])


async def test_only_resources_missing_in_the_list_are_read() -> None:
    scripted = Scripted([RED], [GONE])
    live = await list_resources(driver(scripted), "org", ["Label"], [RED, BLUE, ("Bucket", "3")])
    assert [(each.kind, each.id) for each in live] == [RED]
    assert scripted.asked == [BLUE]
    complete = Scripted([RED, BLUE], [])
    await list_resources(driver(complete), "org", ["Label"], [RED, BLUE])
    assert complete.asked == []


@pytest.mark.parametrize("field", ["identity", "name_uniqueness", "delete_undo"])
async def test_an_unknown_trait_is_an_error_of_the_driver(field: str) -> None:
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


def costly(kind: str) -> PlatformTraits:
    """The embedded platform with a costly list of *kind*."""
    return replace(EMBEDDED, kinds={**EMBEDDED.kinds, kind: replace(EMBEDDED.kinds[kind], costly_listing=True)})


async def test_known_resources_of_a_kind_with_a_costly_list_are_read() -> None:
    scripted = Scripted([RED], [found(("Dashboard", "4")), GONE])
    known = [("Dashboard", "5"), RED, ("Task", "3"), ("Dashboard", "4")]
    live = await live_resources(driver(scripted), "org", ["Label"], known, costly("Dashboard"))
    assert [(each.kind, each.id) for each in live] == [RED, ("Dashboard", "4")]
    assert scripted.asked == [("Dashboard", "4"), ("Dashboard", "5")]


async def test_a_kind_that_is_listed_is_not_read() -> None:
    scripted = Scripted([("Dashboard", "4")])
    live = await live_resources(driver(scripted), "org", ["Dashboard"], [("Dashboard", "4")], costly("Dashboard"))
    assert len(live) == 1
    assert await live_resources(driver(scripted), "org", [], [RED], costly("Dashboard")) == []
    assert scripted.asked == []


async def test_a_kind_with_unique_names_has_no_costly_list() -> None:
    scripted = Scripted()
    scripted.traits = costly("Dashboard")
    assert await platform_traits(driver(scripted)) == scripted.traits
    scripted.traits = costly("Bucket")
    with pytest.raises(ServiceUnavailable, match="the list of Bucket is costly, but its names are unique"):
        await platform_traits(driver(scripted))


async def test_a_kind_that_is_found_by_its_name_has_unique_names() -> None:
    scripted = Scripted()
    dashboard = replace(EMBEDDED.kinds["Dashboard"], identity=Identity.NATURAL_KEY)
    scripted.traits = replace(EMBEDDED, kinds={**EMBEDDED.kinds, "Dashboard": dashboard})
    with pytest.raises(ServiceUnavailable, match="a Dashboard is found by its name, but its names may repeat"):
        await platform_traits(driver(scripted))


def wanted(name: str, kind: str = "Label", **content: str) -> DesiredSpec:
    return DesiredSpec(kind, "", spec_of({"name": name, **content}))


def held(text: str = "", kind: str = "Label", position: int = 0) -> driver_pb2.PreparedSpec:
    return driver_pb2.PreparedSpec(stored=driver_pb2.StoredSpec(kind=kind, spec_json=text), position=position)


def rejected(message: str, position: int = 0, **more: Any) -> driver_pb2.PreparedSpec:
    refusal = driver_pb2.Rejected(reason=operation_pb2.REJECTION_REASON_CONTENT_REFUSED, message=message, **more)
    return driver_pb2.PreparedSpec(rejected=refusal, position=position)


async def prepared(scripted: Scripted, *specs: DesiredSpec) -> list[Spec | Failed]:
    return await prepare_specs(driver(scripted), "org", specs, EMBEDDED)


async def test_a_spec_is_prepared_or_refused() -> None:
    answers = [held(position=0), held(' {"name": "b", "color": "red"}', position=1), rejected("too\nlong", position=2)]
    specs = [wanted("a"), wanted("b"), wanted("c")]
    found = await prepared(Scripted(prepared=answers), *specs)
    assert found == [
        specs[0].spec,
        spec_of({"color": "red", "name": "b"}),
        Failed("too long", RejectionReason.CONTENT_REFUSED),
    ]


@pytest.mark.parametrize(
    ("answers", "problem"),
    [
        ([], "0 results for 1 specs"),
        ([held(), held(position=1)], "2 results for 1 specs"),
        ([held(position=1)], "out of order"),
        ([driver_pb2.PreparedSpec()], "returned no prepared spec of NotificationEndpointSlack 'chat'"),
        ([held(kind="Label")], "returned no prepared spec"),
        ([rejected("later", retry_after={"seconds": 1})], "returned no prepared spec"),
        ([held("[]", "NotificationEndpointSlack")], "is invalid"),
        ([held("[" * 2000, "NotificationEndpointSlack")], "is invalid"),
        ([held('{"name":"talk"}', "NotificationEndpointSlack")], "has another name, 'talk'"),
        ([held('{"name":"chat","token":"canary"}', "NotificationEndpointSlack")], "has a credential at /token"),
    ],
)
async def test_an_inconsistent_prepared_spec_is_an_error(answers: list[driver_pb2.PreparedSpec], problem: str) -> None:
    with pytest.raises(ServiceUnavailable, match=problem) as raised:
        await prepared(Scripted(prepared=answers), wanted("chat", "NotificationEndpointSlack"))
    assert "canary" not in str(raised.value)


async def test_prepared_specs_out_of_order_are_an_error() -> None:
    with pytest.raises(ServiceUnavailable, match="out of order"):
        await prepared(Scripted(prepared=[held(position=1), held(position=0)]), wanted("a"), wanted("b"))


async def test_specs_are_prepared_in_batches_below_the_message_limit() -> None:
    scripted = Scripted()
    specs = [wanted(str(number), description="x" * 100_000) for number in range(12)]
    specs.insert(3, wanted("large", description="x" * 2_000_000))
    assert await prepared(scripted, *specs) == [each.spec for each in specs]
    assert scripted.batches == [3, 1, 5, 4]
    assert await prepared(scripted) == []
    assert len(scripted.batches) == 4


async def test_a_driver_without_prepare_specs_holds_specs_unchanged() -> None:
    scripted, specs = Scripted(prepared=[]), [wanted("a"), wanted("b")]
    async with (
        serving_at_socket(Service([older(scripted)], ["pkger.driver.v1.DriverService"])) as address,
        Peer("platform", address) as peer,
    ):
        assert await prepare_specs(peer, "org", specs, EMBEDDED) == [each.spec for each in specs]
    assert scripted.batches == []
