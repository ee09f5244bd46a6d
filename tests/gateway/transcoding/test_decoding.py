"""Requests become messages: path, query and body can express any message, and errors name the field."""

import json
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, cast
from urllib.parse import parse_qsl, quote, unquote, urlencode

import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import given
from hypothesis import strategies as st
from pkger.applier.v1 import applier_pb2
from pkger.model.v1 import object_pb2, operation_pb2
from pkger.planner.v1 import planner_pb2
from pkger.stack.v1 import stack_pb2

from services.core.errors import RequestInvalid
from services.gateway.transcoding.bindings import Binding, bindings
from services.gateway.transcoding.decoding import decode, is_map
from services.rpc.message_json import document_of
from tests.gateway.transcoding.routing import found

BINDINGS = {binding.name: binding for binding in bindings()}

texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=8)

_RANGES = {
    FieldDescriptor.CPPTYPE_INT32: st.integers(-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_INT64: st.integers(-(2**63), 2**63 - 1),
    FieldDescriptor.CPPTYPE_BOOL: st.booleans(),
}


def of(name: str, path: dict[str, str] | None = None, query: str = "", body: Any = b"") -> Any:
    """The message of a request."""
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    return decode(BINDINGS[name], path or {}, parse_qsl(query, keep_blank_values=True), sent)


def test_path_and_query_fill_fields() -> None:
    asked = of(
        "StackService_ListResources_2",
        {"stack_target_platform": "embedded", "stack_target_org": "ops", "stack_name": "a/b"},
        "page_size=7&page_token=x",
    )
    target = object_pb2.Target(platform="embedded", org="ops")
    stack = object_pb2.StackRef(target=target, name="a/b")
    assert asked == stack_pb2.ListResourcesRequest(stack=stack, page_size=7, page_token="x")


def test_an_id_in_the_path_is_joined_with_the_query() -> None:
    asked = of("ApplierService_WatchOperation", {"operation_id": "0123"}, "after_seq=5")
    assert asked == applier_pb2.WatchOperationRequest(operation_id="0123", after_seq=5)


def test_repeated_parameters_are_a_list_and_times_and_enums_are_texts() -> None:
    query = "states=OPERATION_STATE_BLOCKED&states=OPERATION_STATE_FAILED&since=2026-01-31T12:00:00Z&stackId=s"
    asked = of("ApplierService_ListOperations", query=query)
    since = Timestamp(seconds=1769860800)
    states = operation_pb2.OPERATION_STATE_BLOCKED, operation_pb2.OPERATION_STATE_FAILED
    assert asked == applier_pb2.ListOperationsRequest(stack_id="s", states=states, since=since)


def test_a_message_in_a_query_is_json_where_dots_cannot_express_it() -> None:
    resource = json.dumps({"kind": "Label", "id": "a"})
    query = urlencode([("target.org", "ops"), ("resources", resource), ("resources", f"[{resource}]")])
    asked = of("StackService_FindOwners", query=query)
    labels = [object_pb2.ResourceId(kind="Label", id="a")] * 2
    assert asked == stack_pb2.FindOwnersRequest(target=object_pb2.Target(org="ops"), resources=labels)
    everything = of("PlannerService_ExportPackage", query="everything={}")
    assert everything == planner_pb2.ExportPackageRequest(everything=planner_pb2.ExportFilter())
    assert everything.HasField("everything")


@pytest.mark.parametrize("name", ["after_seq", "afterSeq"])
def test_a_field_has_its_name_in_both_forms(name: str) -> None:
    assert of("ApplierService_WatchOperation", {"operation_id": "0"}, f"{name}=3").after_seq == 3


def test_a_body_has_absent_fields_nulls_and_both_forms_of_names() -> None:
    body = {
        "runOptions": {"allowMissing": True, "expected_plan_digest": None},
        "options": {"allow_empty": False},
        "package": {
            "env_json": {"a": "null", "b": "9223372036854775807"},
            "sources": [{"text": "x", "encoding": "ENCODING_YAML"}],
        },
        "secrets": {"k": "v"},
    }
    asked = of("ApplierService_Apply_2", {"stack_id": "0a"}, body=body)
    assert asked.stack.id == "0a"
    assert asked.run_options.allow_missing
    assert asked.package.sources[0].encoding == 1
    assert dict(asked.package.env_json) == {"a": "null", "b": "9223372036854775807"}
    assert dict(asked.secrets) == {"k": "v"}


def test_an_empty_body_sets_nothing() -> None:
    assert of("ApplierService_UninstallStack", {"stack_id": "0a"}).stack.id == "0a"


def test_an_absent_field_differs_from_an_empty_one() -> None:
    assert of("StackService_UpdateStack", {"stack_id": "0a"}, body={"name": ""}).HasField("name")
    assert not of("StackService_UpdateStack", {"stack_id": "0a"}, body={}).HasField("name")


def test_a_body_may_repeat_the_value_of_the_path() -> None:
    assert of("StackService_UpdateStack", {"stack_id": "0a"}, body={"stack": {"id": "0a"}}).stack.id == "0a"


STACK = {"stack_id": "0a"}

WRONG = [
    ("StackService_ListStacks", "page=1", b"", "page: there is no such parameter"),
    ("StackService_ListStacks", "target.x=1", b"", "target.x: there is no such parameter"),
    ("StackService_ListStacks", "names.x=1", b"", "names.x: there is no such parameter"),
    ("StackService_ListStacks", "page_size=x", b"", "page_size: is no whole number from"),
    ("StackService_ListStacks", "page_size=", b"", "page_size: is no whole number"),
    ("StackService_ListStacks", "page_size=2147483648", b"", "page_size: is no whole number from -2147483648 to"),
    ("StackService_ListStacks", "page_size=1&pageSize=2", b"", "pageSize: is set twice"),
    ("StackService_ListStacks", "target={}&target.org=x", b"", None),
    ("StackService_ListStacks", "target=x", b"", "target: is no JSON; the parameter is a message"),
    ("StackService_ListStacks", "target=5", b"", "target: is no object"),
    ("StackService_ListStacks", "target=5&target.org=x", b"", "target.org: target is also set as a whole"),
    (
        "PlannerService_ExportPackage",
        'everything={"kinds":null}&everything.kinds=Label',
        b"",
        "everything.kinds: everything is also set as a whole",
    ),
    (
        "PlannerService_ExportPackage",
        'everything.kinds=Label&everything={"labels":["a"]}',
        b"",
        "everything: is set twice",
    ),
    ("StackService_ListStacks", "", b"{}", "body: is not allowed for GET"),
    ("StackService_GetStack", "stack.id=x", b"", "stack.id: the path and the rest of the request differ"),
    ("PlannerService_ExportPackage", "stack.id=x&target.org=y", b"", "target: conflicts with stack: send only one"),
    ("ApplierService_ListOperations", "states=X", b"", "states: is none of OPERATION_STATE_SUCCEEDED"),
    ("ApplierService_ListOperations", "since=today", b"", "since: is no time such as"),
    ("StackService_CreateStack", "name=x", b"{}", "name: is not a parameter of the query"),
    ("StackService_CreateStack", "", b"{", "body: is no JSON"),
    ("StackService_CreateStack", "", b"[]", "body: is no JSON object"),
    ("StackService_CreateStack", "", b"null", "body: is no JSON object"),
    ("StackService_CreateStack", "", b"NaN", "body: is no JSON"),
    ("StackService_CreateStack", "", b'{"name": "\xff"}', "body: is no JSON"),
    ("StackService_CreateStack", "", b"[" * 10_000, "body: is no JSON"),
    ("StackService_CreateStack", "", b"{} x", "body: is no JSON"),
    ("StackService_CreateStack", "", b'{"nam": "x"}', "nam: there is no such field"),
    ("StackService_CreateStack", "", b'{"name": 5}', "name: is no text"),
    ("StackService_CreateStack", "", b'{"urls": "x"}', "urls: is no list"),
    ("StackService_CreateStack", "", b'{"urls": ["x", 5]}', "urls[1]: is no text"),
    ("StackService_CreateStack", "", b'{"urls": [null]}', "urls[0]: is no text"),
    ("StackService_CreateStack", "", b'{"target": []}', "target: is no object"),
    ("StackService_CreateStack", "", b'{"target": {"orgs": ""}}', "target.orgs: there is no such field"),
    ("StackService_CreateStack", "", b'{"request_id": "a", "requestId": "a"}', "requestId: conflicts with request_id"),
    ("StackService_CreateStack", "", b'{"policy": []}', "policy: is no object"),
    ("StackService_CreateStack", "", b'{"policy": {"protcet": true}}', "policy.protcet: there is no such field"),
    ("StackService_CreateStack", "", b'{"policy": {"protect": "yes"}}', "policy.protect: is neither true nor false"),
    ("StackService_CreateStack", "", b'{"policy": {"history": 2.5}}', "policy.history: is no whole number"),
    ("StackService_CreateStack", "", b'{"policy": {"ignore": ["/a"]}}', "policy.ignore[0]: is no object"),
    (
        "StackService_CreateStack",
        "",
        b'{"policy": {"overrides": [{"match": {"kinds": "Task"}}]}}',
        "policy.overrides[0].match.kinds: there is no such field",
    ),
    ("ApplierService_Apply", "", b'{"options": {"allow_empty": "true"}}', "options.allow_empty: is neither true nor"),
    ("ApplierService_Apply", "", b'{"secrets": {"k": 5}}', "secrets.k: is no text"),
    ("ApplierService_Apply", "", b'{"secrets": []}', "secrets: is no object"),
    ("ApplierService_Apply", "", b'{"package": {"sources": [{"text": "", "url": ""}]}}', "package.sources[0].url: con"),
    ("ApplierService_RollbackStack", "", b'{"revision": 9223372036854775808}', "revision: is no whole number"),
    ("ApplierService_RollbackStack", "", b'{"revision": 1.5}', "revision: is no whole number"),
    ("ApplierService_RollbackStack", "", b'{"revision": true}', "revision: is no whole number"),
    ("ApplierService_RollbackStack", "", b'{"revision": "9007199254740993e0"}', "revision: is no whole number"),
    ("ApplierService_RollbackStack", "", b'{"revision": "1_0"}', "revision: is no whole number"),
    ("ApplierService_RollbackStack", "", '{"revision": "\u0661"}'.encode(), "revision: is no whole number"),
    ("StackService_ListStacks", "page_size=1_0", b"", "page_size: is no whole number"),
    ("StackService_ListStacks", "page_size=1e3", b"", "page_size: is no whole number"),
    ("ApplierService_RollbackStack", "", b'{"revision": 1, "stack": {"id": "x"}}', "stack.id: the path and the rest"),
    ("ApplierService_Apply_2", "", b'{"target": {}}', "stack.id: the path and the rest of the request differ"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "query", "body", "problem"), WRONG, ids=[f"{row[1]}{row[2]!r:.60}" for row in WRONG])
def test_an_error_names_the_field(name: str, query: str, body: bytes, problem: str | None) -> None:
    path = STACK if "stack_id" in BINDINGS[name].path else {}
    if problem is None:
        of(name, path, query, body)
        return
    with pytest.raises(RequestInvalid) as caught:
        of(name, path, query, body)
    assert str(caught.value).startswith(problem)
    assert caught.value.metadata["field"] in problem


def test_no_value_gets_into_an_error() -> None:
    """It may be a secret in the wrong place."""
    for body in (
        {"secrets": {"k": ["canary"]}},
        {"run_options": {"expected_plan_digest": {"canary": 1}}},
        {"package": "canary"},
        {"revision": "canary"},
    ):
        with pytest.raises(RequestInvalid) as caught:
            of("ApplierService_Apply", body=body)
        assert "canary" not in str(caught.value)


def _fields(message: Descriptor, fixed: set[str], where: str = "") -> Any:
    """
    The JSON of messages of a type.

    Args:
        message: The type.
        fixed: Fields of the path, with dots; they are present and not empty.
        where: Path of the message, empty or with a dot at its end.
    """
    wanted: dict[str, Any] = {}
    optional: dict[str, Any] = {}
    ones: dict[str, dict[str, Any]] = {}
    for field in message.fields:
        name = f"{where}{field.name}"
        value = _value(field, fixed, name)
        if name in fixed or any(each.startswith(f"{name}.") for each in fixed):
            wanted[field.name] = value
        elif field.containing_oneof:
            ones.setdefault(field.containing_oneof.name, {})[field.name] = value
        else:
            optional[field.name] = value
    said = {field.containing_oneof.name for field in message.fields if field.containing_oneof and field.name in wanted}
    parts = [st.fixed_dictionaries(wanted, optional=optional)]
    for name, values in ones.items():
        if name not in said:
            chosen = [st.fixed_dictionaries({each: value}) for each, value in values.items()]
            parts.append(st.one_of(st.just({}), *chosen))
    return st.tuples(*parts).map(lambda drawn: {name: value for part in drawn for name, value in part.items()})


def _value(field: FieldDescriptor, fixed: set[str], name: str) -> Any:
    if is_map(field):
        value = cast("Descriptor", field.message_type).fields_by_name["value"]
        return st.dictionaries(texts, _single(value, fixed, name), max_size=2)
    single = _single(field, fixed, name)
    return st.lists(single, max_size=3) if field.is_repeated else single


def _single(field: FieldDescriptor, fixed: set[str], name: str) -> Any:
    if field.message_type:
        if field.message_type.full_name == "google.protobuf.Timestamp":
            return st.datetimes().map(lambda time: f"{time.isoformat(timespec='microseconds')}Z")
        return _fields(field.message_type, fixed, f"{name}.")
    if field.enum_type:
        return st.sampled_from([value.name for value in field.enum_type.values])
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        if name in fixed:
            return texts.filter(bool)
        return texts
    return _RANGES[field.cpp_type] if name not in fixed else st.integers(1, 2**31 - 1)


@st.composite
def requests(draw: st.DrawFn) -> tuple[Binding, Message]:
    """A route, and any message that it can express."""
    binding = BINDINGS[draw(st.sampled_from(sorted(BINDINGS)))]
    document = draw(_fields(binding.rpc.input_type, {each.field for each in binding.parameters}))
    message = GetMessageClass(binding.rpc.input_type)()
    ParseDict(document, message)
    return binding, message


def at(document: dict[str, Any], path: str) -> Any:
    found: Any = document
    for step in path.split("."):
        found = found[step]
    return found


def in_query(
    document: dict[str, Any], message: Descriptor, in_path: set[str], where: str = ""
) -> Iterable[tuple[str, str]]:
    """A document as parameters of a query: with dots where possible, else as JSON."""
    for field in message.fields:
        name = f"{where}{field.name}"
        if field.name not in document or name in in_path:
            continue
        value = document[field.name]
        if field.message_type is None or field.message_type.full_name == "google.protobuf.Timestamp":
            for each in value if field.is_repeated else [value]:
                yield name, str(each).lower() if isinstance(each, bool) else str(each)
        elif is_map(field):
            yield from [(name, json.dumps(value))] if value else []
        elif field.is_repeated:
            yield from ((name, json.dumps(each)) for each in value)
        else:
            inside = list(in_query(value, field.message_type, in_path, f"{name}."))
            yield from inside
            if not inside and not any(each.startswith(f"{name}.") for each in in_path):
                yield name, json.dumps(value)


@given(requests())
def test_a_request_can_express_any_message(request: tuple[Binding, Message]) -> None:
    """Through the real table of routes and a real address, as a client writes it."""
    binding, message = request
    document = document_of(message)
    target = binding.path
    for parameter in binding.parameters:
        written = quote(str(at(document, parameter.field)), safe="")
        target = target.replace(f"{{{parameter.name}}}", written)
    in_path = {parameter.field for parameter in binding.parameters}
    query, body = "", b""
    if binding.has_body:
        body = json.dumps(MessageToDict(message, preserving_proto_field_name=True)).encode()
    else:
        query = urlencode(list(in_query(document, binding.rpc.input_type, in_path)))

    name, parameters = found(binding.method, target)
    assert name == binding.name
    decoded = decode(binding, parameters, parse_qsl(query, keep_blank_values=True), body)
    assert decoded == message


@given(requests(), texts.filter(bool))
def test_the_error_of_an_unknown_field_names_it(request: tuple[Binding, Message], text: str) -> None:
    binding, _ = request
    name = f"no-{text}"
    path = {parameter.name: "1" for parameter in binding.parameters}
    query = [] if binding.has_body else [(name, "1")]
    body = json.dumps({name: 1}).encode() if binding.has_body else b""
    with pytest.raises(RequestInvalid) as caught:
        decode(binding, path, query, body)
    assert caught.value.metadata["field"] == name


@given(st.sampled_from(sorted(BINDINGS)), st.lists(st.tuples(texts, texts), max_size=3), st.binary(max_size=30))
def test_any_request_becomes_a_message_or_an_error(name: str, query: list[tuple[str, str]], body: bytes) -> None:
    path = {parameter.name: unquote("x%2F1") for parameter in BINDINGS[name].parameters}
    with suppress(RequestInvalid):
        assert decode(BINDINGS[name], path, query, body).IsInitialized()
