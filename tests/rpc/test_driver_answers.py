"""The bounds of what drivers return."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any

import pytest
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st
from pkger.driver.v1 import driver_pb2
from pkger.driver.v1.driver_pb2_grpc import DriverServiceServicer, add_DriverServiceServicer_to_server
from pkger.model.v1 import object_pb2

from services.core.errors import ServiceUnavailable
from services.core.model import DesiredSpec, Reference, Resource, Spec
from services.drivers.embedded.kinds import EMBEDDED
from services.rpc import driver_answers
from services.rpc.client import Peer
from services.rpc.dispatcher import Dispatcher
from services.rpc.driver_answers import SMALL_MESSAGE, AnswerSize, TooMuch
from services.rpc.resources import list_orgs, list_resources, list_secret_keys, prepare_specs, read_resources
from services.rpc.wire_fields import has_more_fields
from tests.rpc.in_memory import Network

SPEC = '{"name":"n"}'
FAULTY = "the platform 'lab' at memory cannot serve the request: it returned "


class Endless(DriverServiceServicer):
    """
    Returns more than anybody can use.

    Attributes:
        left: Set when the caller of a listing has left.
        answer: The answer to unary methods, as it is encoded.
    """

    def __init__(self) -> None:
        self.left = asyncio.Event()
        self.answer = b""

    async def ListResources(
        self, request: driver_pb2.ListResourcesRequest, context: object
    ) -> AsyncIterator[driver_pb2.ListResourcesResponse]:
        number = 0
        try:
            while True:
                yield driver_pb2.ListResourcesResponse(resources=map(resource, range(number, number := number + 10)))
                await asyncio.sleep(0)
        finally:
            self.left.set()

    async def ReadResources(
        self, request: driver_pb2.ReadResourcesRequest, context: object
    ) -> driver_pb2.ReadResourcesResponse:
        results = [driver_pb2.ReadResult(resource=resource(int(each.id))) for each in request.ids]
        return driver_pb2.ReadResourcesResponse(results=results)

    async def PrepareSpecs(
        self, request: driver_pb2.PrepareSpecsRequest, context: object
    ) -> driver_pb2.PrepareSpecsResponse:
        changed = '{"description":"' + "d" * 10_000 + '","name":"n"}'
        stored = driver_pb2.StoredSpec(kind="Label", spec_json=changed)
        specs = [driver_pb2.PreparedSpec(position=position, stored=stored) for position in range(len(request.specs))]
        return driver_pb2.PrepareSpecsResponse(specs=specs)

    async def ListSecretKeys(self, request: Any, context: object) -> driver_pb2.ListSecretKeysResponse:
        return driver_pb2.ListSecretKeysResponse.FromString(self.answer)

    async def ListOrgs(self, request: Any, context: object) -> driver_pb2.ListOrgsResponse:
        return driver_pb2.ListOrgsResponse.FromString(self.answer)


def resource(number: int) -> object_pb2.Resource:
    return object_pb2.Resource(kind="Label", id=str(number), spec_json=SPEC, display_name="n")


@pytest.fixture
def endless() -> Endless:
    return Endless()  # type: ignore[abstract]


@pytest.fixture
def driver(endless: Endless) -> Peer:
    network = Network()
    network.serve("memory", Dispatcher([lambda server: add_DriverServiceServicer_to_server(endless, server)]))
    return Peer("platform", "memory", platform="lab", connect=network.connect)


async def test_a_list_without_end_is_cancelled_at_its_bound(
    driver: Peer, endless: Endless, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver_answers, "MOST_RESOURCES", 1000)
    with pytest.raises(ServiceUnavailable) as raised:
        await list_resources(driver, "org", ["Label"])
    assert str(raised.value) == f"{FAULTY}more than 1,000 resources"
    assert raised.value.answered
    await endless.left.wait()


async def test_a_list_is_bounded_by_the_memory_of_its_values(
    driver: Peer, endless: Endless, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver_answers, "MOST_MEMORY", 2**20)
    with pytest.raises(ServiceUnavailable) as raised:
        await list_resources(driver, "org", ["Label"])
    assert str(raised.value) == f"{FAULTY}resources that take more than 1 MiB of memory"
    await endless.left.wait()


async def test_resources_that_are_read_in_many_calls_have_one_bound(
    driver: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [("Label", str(number)) for number in range(1200)]
    monkeypatch.setattr(driver_answers, "MOST_RESOURCES", 1200)
    assert len(await read_resources(driver, "org", ids)) == 1200
    monkeypatch.setattr(driver_answers, "MOST_RESOURCES", 1199)
    with pytest.raises(ServiceUnavailable, match="more than 1,199 resources"):
        await read_resources(driver, "org", ids)


async def test_prepared_specs_are_bounded(driver: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver_answers, "MOST_MEMORY", 2**20)
    desired = [DesiredSpec("Label", "", Spec(SPEC, "n"))] * 200
    with pytest.raises(ServiceUnavailable, match="more than 1 MiB of memory"):
        await prepare_specs(driver, "org", desired, EMBEDDED)


@pytest.mark.parametrize("ask", [list_orgs, lambda driver: list_secret_keys(driver, "org")], ids=["orgs", "keys"])
async def test_a_message_of_many_empty_items_is_not_decoded(driver: Peer, endless: Endless, ask: Any) -> None:
    endless.answer = b"\x0a\x00" * (SMALL_MESSAGE // 2)
    await ask(driver)
    endless.answer += b"\x0a\x00"
    with pytest.raises(ServiceUnavailable) as raised:
        await ask(driver)
    assert str(raised.value) == f"{FAULTY}a message with more than 1,000,000 fields"


async def test_a_large_message_of_few_fields_is_read(driver: Peer, endless: Endless) -> None:
    keys = [letter * 1024 * 1024 for letter in "abcdefgh"]
    endless.answer = driver_pb2.ListSecretKeysResponse(keys=keys).SerializeToString()
    assert await list_secret_keys(driver, "org") == set(keys)


def test_every_text_of_a_resource_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver_answers, "MOST_MEMORY", 10_000)
    long, spec = "x" * 10_000, Spec(SPEC, "n")
    resources: Iterable[Resource] = (
        Resource(long, "1", spec),
        Resource("Label", long, spec),
        Resource("Label", "1", Spec(long, "n")),
        Resource("Label", "1", Spec(SPEC, long)),
        Resource("Label", "1", spec, label_ids=(long,)),
        Resource("Label", "1", spec, references=(Reference("/a", "Label", long),)),
        Resource("Label", "1", spec, references=(Reference("", "", ""),) * 100),
        Resource("Label", "1", spec, unexpressed=(long,)),
        # A character that needs four bytes makes all of them take four.
        Resource("Label", "1", Spec("x" * 2_500 + "\U0001f600", "n")),
    )
    for each in resources:
        with pytest.raises(TooMuch):
            AnswerSize().add([each])
    assert AnswerSize().add([Resource("Label", "1", spec)] * 10)


def count(message: Message) -> int:
    """The fields of a message without maps, with those of nested messages, in another way."""
    fields = 0
    for field, value in message.ListFields():
        values = list(value) if field.is_repeated else [value]
        fields += len(values) + sum(count(each) for each in values if isinstance(each, Message))
    return fields


texts = st.text(max_size=200)
references = st.builds(object_pb2.Reference, pointer=texts, kind=texts, id=texts)
resources = st.builds(
    object_pb2.Resource,
    kind=texts,
    id=texts,
    spec_json=texts,
    label_ids=st.lists(texts, max_size=5),
    references=st.lists(references, max_size=5),
)


@given(st.lists(resources, max_size=5), st.binary(max_size=50))
def test_fields_are_counted_without_decoding(listed: list[object_pb2.Resource], more: bytes) -> None:
    message = driver_pb2.ListResourcesResponse(resources=listed)
    encoded, descriptor, fields = message.SerializeToString(), message.DESCRIPTOR, count(message)
    assert not has_more_fields(encoded, descriptor, fields)
    assert fields == 0 or has_more_fields(encoded, descriptor, fields - 1)
    for invalid in (encoded[:-1], encoded + more, more):
        has_more_fields(invalid, descriptor, fields)
