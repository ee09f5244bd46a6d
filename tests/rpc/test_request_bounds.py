"""The bounds of lists, maps and texts in requests, of all requests of the public services."""

import importlib
from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor, MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from pkger.applier.v1 import action_pb2, applier_pb2
from pkger.journal.v1 import planning_pb2
from pkger.model.v1 import object_pb2
from pkger.parser.v1 import parser_pb2
from pkger.planner.v1 import package_pb2, planner_pb2
from pkger.stack.v1 import definition_pb2, repository_pb2, snapshot_pb2, stack_pb2

from services.core.errors import RequestInvalid
from services.core.limits import LONGEST_ADDRESS, LONGEST_DESCRIPTION, LONGEST_NAME, MOST_ENTRIES
from services.rpc.client import Peer
from services.rpc.dispatcher import Dispatcher
from services.rpc.request_bounds import BOUNDED_ELSEWHERE, LONGEST_TEXTS, refuse_beyond_bounds
from tests.rpc.in_memory import Network

PUBLIC: tuple[Any, ...] = (
    parser_pb2,
    package_pb2,
    planner_pb2,
    applier_pb2,
    action_pb2,
    stack_pb2,
    repository_pb2,
    definition_pb2,
    snapshot_pb2,
)

Path = tuple[FieldDescriptor, ...]


def paths(message: Descriptor, before: Path = ()) -> Iterator[Path]:
    """The way to each field of a message, and of the messages in it."""
    for field in message.fields:
        yield (*before, field)
        inner = field.message_type
        if (
            inner is not None
            and not inner.GetOptions().map_entry
            and inner not in {each.message_type for each in before}
        ):
            yield from paths(inner, (*before, field))


METHODS = [
    method for file in PUBLIC for service in file.DESCRIPTOR.services_by_name.values() for method in service.methods
]

LISTS = [(method, path) for method in METHODS for path in paths(method.input_type) if path[-1].is_repeated]
"""Every list and map of every request, whether it is a field of the request or of a message in it."""


def name_of(case: Any) -> str:
    return case.name if isinstance(case, MethodDescriptor) else ".".join(field.name for field in case)


def is_exempt(path: Path) -> bool:
    return any(field.full_name in BOUNDED_ELSEWHERE for field in path)


def request_with(method: MethodDescriptor, path: Path, count: int) -> Message:
    """A request with *count* entries in the list at *path*, and one in each list on the way."""
    request: Message = GetMessageClass(method.input_type)()
    message: Any = request
    for field in path[:-1]:
        value = getattr(message, field.name)
        message = value.add() if field.is_repeated else value
        message.SetInParent()
    field, value = path[-1], getattr(message, path[-1].name)
    if field.message_type is None:
        value.extend(["x" if field.type == FieldDescriptor.TYPE_STRING else 1] * count)
    elif field.message_type.GetOptions().map_entry:
        value.update({str(number): "1" for number in range(count)})
    else:
        value.extend([GetMessageClass(field.message_type)()] * count)
    return request


@pytest.mark.parametrize(("method", "path"), LISTS, ids=name_of)
def test_every_list_of_every_request_is_bounded(method: MethodDescriptor, path: Path) -> None:
    request = request_with(method, path, MOST_ENTRIES + 1)
    refuse_beyond_bounds(request_with(method, path, MOST_ENTRIES))
    if is_exempt(path):
        refuse_beyond_bounds(request)
        return
    with pytest.raises(RequestInvalid) as raised:
        refuse_beyond_bounds(request)
    assert raised.value.metadata["field"].replace("[0]", "") == name_of(path)
    assert raised.value.metadata["problem"] == "has 10,001 entries; at most 10,000 are accepted"


def test_there_are_lists_in_requests_and_few_exceptions() -> None:
    assert len(LISTS) > 30
    exempt = {path[-1].full_name for _, path in LISTS if path[-1].full_name in BOUNDED_ELSEWHERE}
    assert exempt == BOUNDED_ELSEWHERE.keys()


TEXTS = [
    (method, path)
    for method in METHODS
    for path in paths(method.input_type)
    if path[-1].full_name in LONGEST_TEXTS and not is_exempt(path)
]


@pytest.mark.parametrize(("method", "path"), TEXTS, ids=name_of)
def test_names_and_descriptions_are_bounded(method: MethodDescriptor, path: Path) -> None:
    def request_of(text: str) -> Message:
        request: Message = GetMessageClass(method.input_type)()
        message: Any = request
        for field in path[:-1]:
            value = getattr(message, field.name)
            message = value.add() if field.is_repeated else value
        setattr(message, path[-1].name, text)
        return request

    most = LONGEST_TEXTS[path[-1].full_name]
    refuse_beyond_bounds(request_of("é" * most))
    with pytest.raises(RequestInvalid, match=f"at most {most:,} are accepted") as raised:
        refuse_beyond_bounds(request_of("é" * (most + 1)))
    assert raised.value.metadata["field"].replace("[0]", "") == name_of(path)


def test_every_text_with_a_bound_is_in_a_request() -> None:
    assert {path[-1].full_name for _, path in TEXTS} == LONGEST_TEXTS.keys()
    assert {LONGEST_NAME, LONGEST_DESCRIPTION, LONGEST_ADDRESS} == set(LONGEST_TEXTS.values())


@pytest.mark.parametrize("method", METHODS, ids=name_of)
async def test_servers_refuse_before_their_servicers_see_a_request(method: MethodDescriptor) -> None:
    """The servicer has no method, so a request that reaches it is UNIMPLEMENTED."""
    path = next((path for each, path in LISTS if each is method and not is_exempt(path)), None)
    if path is None:
        return
    service, file = method.containing_service, method.containing_service.file.name.removesuffix(".proto")
    generated = importlib.import_module(f"{file.replace('/', '.')}_pb2_grpc")
    servicer, network = getattr(generated, f"{service.name}Servicer")(), Network()
    add = getattr(generated, f"add_{service.name}Servicer_to_server")
    network.serve("memory", Dispatcher([lambda server: add(servicer, server)]))
    peer = Peer("other", "memory", connect=network.connect)
    call = getattr(getattr(generated, f"{service.name}Stub")(peer.channel), method.name)
    request = request_with(method, path, MOST_ENTRIES + 1)
    answer = anext(peer.stream(call, request)) if method.server_streaming else peer.call(call, request)
    with pytest.raises(RequestInvalid, match="10,001 entries"):
        await answer


def test_a_request_for_a_plan_has_the_bounds_of_its_client() -> None:
    skip = planner_pb2.PlanOptions(skip=[planner_pb2.Skip(kind="Label")] * (MOST_ENTRIES + 1))
    plan = planner_pb2.CreatePlanRequest(options=skip)
    for request in (
        planning_pb2.PlanOperationRequest(request=plan),
        planning_pb2.PlanStandalonePackageRequest(request=plan),
    ):
        with pytest.raises(RequestInvalid, match=r"^request\.options\.skip: "):
            refuse_beyond_bounds(request)


def test_responses_and_packages_are_not_bounded() -> None:
    objects = [object_pb2.Object()] * (MOST_ENTRIES + 1)
    refuse_beyond_bounds(object_pb2.Package(objects=objects))
    refuse_beyond_bounds(parser_pb2.RenderPackageRequest(package=object_pb2.Package(objects=objects)))
    refuse_beyond_bounds(stack_pb2.FindOwnersResponse(owners=[stack_pb2.ResourceHolder()] * (MOST_ENTRIES + 1)))
