"""The OpenAPI descriptions are valid: schemas, examples that conform to them, and a description of every member."""

import json
import re
from typing import Any
from urllib.parse import parse_qsl, urlencode

import jsonschema
import pytest
from google.protobuf.descriptor import Descriptor
from google.protobuf.message_factory import GetMessageClass

from services.gateway.services import Services
from services.gateway.transcoding.bindings import Binding, bindings
from services.gateway.transcoding.comments import read_comments
from services.gateway.transcoding.decoding import decode
from services.gateway.transcoding.openapi import Descriptions
from services.gateway.transcoding.route_table import api_components, api_routes
from services.gateway.transcoding.schemas import REF, example_of
from services.rpc.client import Peer
from services.rpc.message_json import document_of

BINDINGS = bindings()

COMPONENTS = api_components()

DESCRIPTIONS = Descriptions(BINDINGS, read_comments())

MESSAGES = [name for name, schema in COMPONENTS.items() if schema["type"] == "object"]


def check(schema: dict[str, Any], value: Any) -> None:
    """Validate *value* by a schema of the document."""
    whole = {**json.loads(json.dumps(schema)), "components": {"schemas": COMPONENTS}}
    jsonschema.Draft202012Validator(whole, format_checker=jsonschema.FormatChecker()).validate(value)


@pytest.mark.parametrize("name", COMPONENTS)
def test_a_schema_is_valid_and_its_references_exist(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(COMPONENTS[name])
    assert COMPONENTS[name]["description"]
    for reference in re.findall(rf'"{REF}([^"]+)"', json.dumps(COMPONENTS[name])):
        assert reference in COMPONENTS


@pytest.mark.parametrize("name", MESSAGES)
def test_examples_conform_and_every_member_has_a_description(name: str) -> None:
    for example in COMPONENTS[name]["examples"]:
        check({"$ref": f"{REF}{name}"}, example)
    assert not [member for member, schema in COMPONENTS[name]["properties"].items() if not schema.get("description")]


@pytest.mark.parametrize("binding", BINDINGS, ids=lambda binding: binding.name)
def test_the_examples_of_an_operation_are_requests_and_answers(binding: Binding) -> None:
    operation = DESCRIPTIONS.operation(binding)
    path, query = {}, []
    for parameter in operation["parameters"]:
        assert parameter["description"]
        shown = parameter.get("content", {}).get("application/json", parameter)
        check(shown["schema"], shown["example"])
        if parameter["in"] == "path":
            path[parameter["name"]] = str(shown["example"])
        elif parameter["in"] == "query":
            texts = shown["example"] if isinstance(shown["example"], list) else [shown["example"]]
            query += [
                (parameter["name"], json.dumps(each) if shown is not parameter else _written(each)) for each in texts
            ]
    body = b""
    if binding.has_body:
        shown = operation["requestBody"]["content"]["application/json"]
        check(shown["schema"], shown["example"])
        body = json.dumps(shown["example"]).encode()
    # Two parameters may set the same field, so each is tried alone.
    for name, text in query or [("", "")]:
        pairs = parse_qsl(urlencode([(name, text)])) if name else []
        assert decode(binding, path, pairs, body).ByteSize() or not path
    for answer in operation["responses"].values():
        for shown in answer.get("content", {}).values():
            check(shown["schema"], shown.get("example", COMPONENTS["pkger.Problem"]["examples"][0]))


def _written(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@pytest.mark.parametrize("binding", BINDINGS, ids=lambda binding: binding.name)
def test_empty_and_full_answers_conform_to_their_schemas(binding: Binding) -> None:
    """The document of any message has the members that its schema requires."""
    message = GetMessageClass(binding.rpc.output_type)()
    schema = {"$ref": f"{REF}{binding.rpc.output_type.full_name}"}
    check(schema, document_of(message))
    _fill(message, binding.rpc.output_type, 0)
    check(schema, document_of(message))


def _fill(message: Any, descriptor: Descriptor, depth: int) -> None:
    """Set all nested messages of a message."""
    for field in descriptor.fields:
        if field.message_type is None or field.message_type.GetOptions().map_entry or depth > 3:
            continue
        inner = getattr(message, field.name).add() if field.is_repeated else getattr(message, field.name)
        if not field.is_repeated:
            inner.SetInParent()
        if not field.message_type.full_name.startswith("google."):
            _fill(inner, field.message_type, depth + 1)


def test_secrets_are_written_and_never_read() -> None:
    assert COMPONENTS["pkger.applier.v1.ApplyRequest"]["properties"]["secrets"]["writeOnly"] is True


def test_the_rows_name_each_operation_once() -> None:
    peer = Peer("any", "127.0.0.1:1", connect=lambda address: _NoChannel())  # type: ignore[arg-type, return-value]
    rows = api_routes(Services(peer, peer, peer, peer))
    assert [row.operation["operationId"] for row in rows] == [binding.name for binding in BINDINGS]
    for row in rows:
        named = {each["name"] for each in row.operation["parameters"] if each["in"] == "path"}
        assert named == set(re.findall(r"\{(\w+)\}", row.path))


class _NoChannel:
    """A channel that is never called."""

    def unary_unary(self, method: str, **more: Any) -> None: ...

    def unary_stream(self, method: str, **more: Any) -> None: ...


def test_an_example_of_a_oneof_has_one_member() -> None:
    [apply] = [each for each in BINDINGS if each.name == "ApplierService_Apply"]
    example = example_of(apply.rpc.input_type)
    assert "target" not in example
    assert list(example["stack"]) == ["target", "name"]
    assert list(example["package"]["sources"][0]) == ["name", "encoding", "text", "generated"]


@pytest.mark.parametrize("name", ["StackService_ListResources", "StackService_ListResources_2"])
def test_a_query_has_no_parameters_for_a_message_that_the_path_fills(name: str) -> None:
    [binding] = [each for each in BINDINGS if each.name == name]
    parameters = DESCRIPTIONS.operation(binding)["parameters"]
    assert [each["name"] for each in parameters if each["in"] == "query"] == ["page_size", "page_token"]
