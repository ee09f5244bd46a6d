"""
The routes: every public RPC has one, no two match the same request, and a golden file shows all of them.

``pytest --update-golden`` rewrites the golden file.
"""

import re
from pathlib import Path
from typing import Any

import pytest
from google.api import annotations_pb2, http_pb2
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto, MethodOptions
from google.protobuf.descriptor_pool import DescriptorPool
from pkger.driver.v1 import driver_pb2
from pkger.journal.v1 import action_set_pb2, journal_pb2, planning_pb2

from services.gateway.transcoding.bindings import PUBLIC_SERVICES, AnnotationInvalid, Binding, bindings
from tests.conftest import ROOT
from tests.gateway.transcoding.routing import found

GOLDEN = Path(__file__).with_name("golden") / "routes.txt"

BINDINGS = bindings()

WHOLE_PACKAGES = {"ParsePackage", "ParseDefinitions", "RenderPackage", "PlanImport", "ResolvePackages"}
"""Free of side effects, with requests that do not fit into an address."""


def rpcs() -> list[MethodDescriptor]:
    return [rpc for service in PUBLIC_SERVICES for rpc in service.methods]


def test_every_service_is_public_or_for_services_only() -> None:
    private = {driver_pb2.DESCRIPTOR.services_by_name["DriverService"].full_name}
    for file in (action_set_pb2, journal_pb2, planning_pb2):
        private |= {service.full_name for service in file.DESCRIPTOR.services_by_name.values()}
    declared = {
        f"{package}.{name}"
        for proto in (ROOT / "protos" / "pkger").rglob("*.proto")
        for package in re.findall(r"^package (.*);", proto.read_text(), re.MULTILINE)
        for name in re.findall(r"^service (\w+)", proto.read_text(), re.MULTILINE)
    }
    assert declared == private | {service.full_name for service in PUBLIC_SERVICES}


def test_every_public_rpc_has_a_route() -> None:
    assert {binding.rpc.full_name for binding in BINDINGS} == {rpc.full_name for rpc in rpcs()}


@pytest.mark.parametrize("rpc", rpcs(), ids=lambda rpc: rpc.name)
def test_an_rpc_has_get_only_if_it_has_no_side_effects(rpc: MethodDescriptor) -> None:
    methods = [binding.method for binding in BINDINGS if binding.rpc.full_name == rpc.full_name]
    is_safe = rpc.GetOptions().idempotency_level == MethodOptions.NO_SIDE_EFFECTS
    assert ("GET" in methods) == (is_safe and rpc.name not in WHOLE_PACKAGES)
    assert methods[0] == "GET" or not is_safe or rpc.name in WHOLE_PACKAGES


@pytest.mark.parametrize("binding", BINDINGS, ids=lambda binding: binding.name)
def test_a_path_leads_to_its_own_route(binding: Binding) -> None:
    """A percent-encoded slash or colon in a segment starts neither another segment nor a verb."""
    for text, written in (("word", "word"), ("a/b:watch", "a%2Fb%3Awatch")):
        name, parameters = found(binding.method, re.sub(r"\{\w+\}", written, binding.path))
        assert name == binding.name
        assert parameters == {parameter.name: text for parameter in binding.parameters}


def test_no_two_routes_are_the_same_request() -> None:
    shapes = [(binding.method, re.sub(r"\{\w+\}", "*", binding.path)) for binding in BINDINGS]
    assert len(set(shapes)) == len(shapes)
    assert len({binding.name for binding in BINDINGS}) == len(BINDINGS)


def test_the_parameters_of_a_path_are_fields_of_the_request_that_are_texts_or_numbers() -> None:
    for binding in BINDINGS:
        for parameter in binding.parameters:
            *outer, last = parameter.field.split(".")
            message: Any = binding.rpc.input_type
            for step in outer:
                message = message.fields_by_name[step].message_type
            field = message.fields_by_name[last]
            assert field.message_type is None
            assert not field.is_repeated


def test_the_routes_are_those_of_the_golden_file(request: pytest.FixtureRequest) -> None:
    lines = [
        f"{binding.method:6} {binding.path:95} {binding.rpc.containing_service.name}.{binding.rpc.name}"
        f"{' *' if binding.has_body else ''}{' stream' if binding.rpc.server_streaming else ''}\n"
        for binding in BINDINGS
    ]
    if request.config.getoption("--update-golden"):
        GOLDEN.write_text("".join(lines))
    assert "".join(lines) == GOLDEN.read_text()


def an_rpc(**rule: str) -> MethodDescriptor:
    """An RPC with that annotation."""
    file = FileDescriptorProto(name="a.proto", package="a", syntax="proto3", message_type=[DescriptorProto(name="M")])
    method = file.service.add(name="S").method.add(name="Do", input_type=".a.M", output_type=".a.M")
    if rule:
        method.options.Extensions[annotations_pb2.http].CopyFrom(http_pb2.HttpRule(**rule))
    pool = DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return pool.FindServiceByName("a.S").methods_by_name["Do"]


@pytest.mark.parametrize(
    "rule",
    [
        {},
        {"get": "/a", "response_body": "b"},
        {"post": "/a", "body": "b"},
        {"get": "/{a=**}"},
        {"get": "/{a=b/*/c/*}"},
    ],
    ids=str,
)
def test_an_unsupported_annotation_is_refused_at_the_start(rule: dict[str, str]) -> None:
    rpc = an_rpc(**rule)
    with pytest.raises(AnnotationInvalid, match=r"a\.S\.Do"):
        bindings([rpc.containing_service])


def test_no_message_of_a_stream_looks_like_its_error() -> None:
    """``{"error": ...}`` is the last line of a stream that ends with an error."""
    assert not [rpc.name for rpc in rpcs() if rpc.server_streaming and "error" in rpc.output_type.fields_by_name]
