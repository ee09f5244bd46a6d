"""A request without the fields that the contracts declare as REQUIRED is refused."""

from typing import Any

import pytest
from google.api import field_behavior_pb2
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message_factory import GetMessageClass
from pkger.applier.v1 import applier_pb2
from pkger.applier.v1.applier_pb2_grpc import ApplierServiceStub
from pkger.model.v1 import object_pb2
from pkger.parser.v1 import parser_pb2
from pkger.parser.v1.parser_pb2_grpc import ParserServiceStub
from pkger.planner.v1 import planner_pb2
from pkger.planner.v1.planner_pb2_grpc import PlannerServiceStub
from pkger.stack.v1 import repository_pb2, stack_pb2
from pkger.stack.v1.repository_pb2_grpc import RepositoryServiceStub
from pkger.stack.v1.stack_pb2_grpc import StackServiceStub

from services.core.errors import OperationNotFound, PkgerError, PlanNotFound, RequestInvalid
from tests.apply.packages import LABEL, text
from tests.cluster import Cluster

SERVICES: dict[str, tuple[Any, Any]] = {
    "parser": (parser_pb2, ParserServiceStub),
    "planner": (planner_pb2, PlannerServiceStub),
    "applier": (applier_pb2, ApplierServiceStub),
    "stack": (stack_pb2, StackServiceStub),
    "repository": (repository_pb2, RepositoryServiceStub),
}

PEERS = {"repository": "stack"}
"""The servers of services that have none of their own."""

RPCS: list[tuple[str, MethodDescriptor]] = [
    (service, rpc)
    for service, (file, _) in SERVICES.items()
    for rpc in file.DESCRIPTOR.services_by_name[f"{service.capitalize()}Service"].methods
]

ONE_OF_SEVERAL = {"Apply", "CreatePlan", "ExportPackage", "ListRevisions"}
"""RPCs whose request needs one of several fields, such as sources or a stack that has URLs."""


def required(rpc: MethodDescriptor) -> list[str]:
    """The names of the required fields of a request."""
    behavior = field_behavior_pb2.field_behavior
    return [
        field.name
        for field in rpc.input_type.fields
        if field_behavior_pb2.REQUIRED in field.GetOptions().Extensions[behavior]
    ]


@pytest.mark.parametrize(("service", "rpc"), RPCS, ids=[rpc.name for _, rpc in RPCS])
async def test_an_empty_request_is_refused_if_fields_are_required(
    services: Cluster, service: str, rpc: MethodDescriptor
) -> None:
    error = await refusal(services, service, rpc)
    match error, required(rpc):
        case RequestInvalid(), _ if rpc.name in ONE_OF_SEVERAL:
            pass
        case RequestInvalid(), fields:
            assert error.metadata["field"] in fields
        case OperationNotFound() | PlanNotFound(), [field]:
            assert error.metadata[field.removesuffix("_id")] == ""
        case None, []:
            pass
        case _, fields:
            pytest.fail(f"{fields} are required; an empty request: {error!r}")


FILLED: dict[str, Any] = {
    "address": "https://packages.example.com",
    "key": object_pb2.ObjectKey(kind="Label", name="lucid_einstein"),
    "name": "main",
    "new_name": "m",
    "package": planner_pb2.PackageSources(sources=[parser_pb2.Source(name="p.json", text="[]")]),
    "resources": [applier_pb2.ResourceImport(kind="Label", id="0")],
    "stack": object_pb2.StackRef(name="s"),
}
"""Values of required fields that are not alone in their request."""


@pytest.mark.parametrize(
    ("service", "rpc", "field"),
    [(service, rpc, field) for service, rpc in RPCS for field in required(rpc) if required(rpc)[1:]],
    ids=lambda value: getattr(value, "name", value),
)
async def test_each_of_several_required_fields_is_required(
    services: Cluster, service: str, rpc: MethodDescriptor, field: str
) -> None:
    await services.apply(text(LABEL), stack="s")
    FILLED["stack"].target.CopyFrom(services.target())
    others = {name: FILLED[name] for name in required(rpc) if name != field}
    error = await refusal(services, service, rpc, **others)
    assert isinstance(error, RequestInvalid), error
    assert error.metadata["field"].partition(".")[0] == field


async def refusal(services: Cluster, service: str, rpc: MethodDescriptor, **fields: Any) -> PkgerError | None:
    """The error for a request with these fields only; None: it is accepted."""
    request, peer = GetMessageClass(rpc.input_type)(**fields), services.peers[PEERS.get(service, service)]
    method = getattr(SERVICES[service][1](peer.channel), rpc.name)
    try:
        if rpc.server_streaming:
            async for _ in peer.stream(method, request):
                pass
        else:
            await peer.call(method, request)
    except PkgerError as error:
        return error
    return None
