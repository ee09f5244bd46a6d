"""Every request with a StackRef follows its rule: an id, or a name with its target (object.proto)."""

from typing import Any

import pytest
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message_factory import GetMessageClass
from pkger.applier.v1 import applier_pb2
from pkger.applier.v1.applier_pb2_grpc import ApplierServiceStub
from pkger.model.v1 import object_pb2
from pkger.planner.v1 import planner_pb2
from pkger.planner.v1.planner_pb2_grpc import PlannerServiceStub
from pkger.stack.v1 import stack_pb2
from pkger.stack.v1.stack_pb2_grpc import StackServiceStub

from services.core.errors import RequestInvalid
from tests.apply.packages import LABEL, text
from tests.cluster import Cluster, sources

STUBS: dict[str, Any] = {"planner": PlannerServiceStub, "applier": ApplierServiceStub, "stack": StackServiceStub}

RPCS: list[tuple[str, MethodDescriptor]] = [
    (service, rpc)
    for service, file in (("planner", planner_pb2), ("applier", applier_pb2), ("stack", stack_pb2))
    for rpc in file.DESCRIPTOR.services_by_name[f"{service.capitalize()}Service"].methods
    if "stack" in rpc.input_type.fields_by_name
]
"""The RPCs whose request has a StackRef, each with its service."""

MORE: dict[str, dict[str, Any]] = {
    "CreatePlan": {"package": planner_pb2.PackageSources(sources=sources([text(LABEL)]))},
    "ImportResources": {"resources": [applier_pb2.ResourceImport(kind="Label", id="0")]},
}
"""Other fields that a request needs, by the name of its RPC."""

WRONG = [
    ({}, "stack", "name it by id, or by name with its target"),
    ({"target": object_pb2.Target(org="o")}, "stack", "name it by id, or by name with its target"),
    ({"id": "0" * 16, "name": "s"}, "stack", "id and name exclude each other: set only one of them"),
    ({"id": "0" * 16, "target": object_pb2.Target()}, "stack.target", "leave it out: the stack with this id has its"),
]


@pytest.mark.parametrize(("fields", "field", "problem"), WRONG, ids=["none", "target", "two", "id-target"])
@pytest.mark.parametrize(("service", "rpc"), RPCS, ids=[rpc.name for _, rpc in RPCS])
async def test_a_reference_that_names_no_stack_or_two_is_refused(
    services: Cluster, service: str, rpc: MethodDescriptor, fields: dict[str, Any], field: str, problem: str
) -> None:
    with pytest.raises(RequestInvalid, match=f"{field}: {problem}") as raised:
        await _call(services, service, rpc, object_pb2.StackRef(**fields))
    assert raised.value.metadata["field"] == field
    assert await services.stack_names() == []


async def _call(services: Cluster, service: str, rpc: MethodDescriptor, ref: object_pb2.StackRef) -> None:
    request, peer = GetMessageClass(rpc.input_type)(stack=ref, **MORE.get(rpc.name, {})), services.peers[service]
    method = getattr(STUBS[service](peer.channel), rpc.name)
    if rpc.server_streaming:
        async for _ in peer.stream(method, request):
            pass
    else:
        await peer.call(method, request)
