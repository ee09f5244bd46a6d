"""Responses in parts: no message is above 1 MiB, however large the package, and the joined parts are complete."""

from collections.abc import AsyncIterator
from typing import Any

import grpc
import orjson
import pytest
from pkger.model.v1 import object_pb2
from pkger.parser.v1 import parser_pb2
from pkger.parser.v1.parser_pb2_grpc import ParserServiceStub

from parser_svc.servicer import SERVICE, register
from parser_svc.source_texts import Gatherer
from services.rpc.client import Peer
from services.rpc.parsed_package import parse_package
from services.rpc.parts import MAX_PART_BYTES
from services.rpc.process import Service
from services.settings import Bounds
from tests.parser.conftest import VIEWS, Parser, package_of
from tests.parser.parsing import document
from tests.transport import serving_at_socket

ORDER = ["header", "missing", "violations", "warnings", "credentials", "objects", "summary_json"]


@pytest.fixture
async def address() -> AsyncIterator[str]:
    bounds = Bounds(bytes=64 * 1024 * 1024, nodes=10_000_000)
    async with serving_at_socket(Service([register(Gatherer(bounds))], [SERVICE])) as address:
        yield address


async def messages(address: str, request: Any, method: str) -> list[Any]:
    """All messages, received by a client with the limits that Python's gRPC has by default: 4 MiB."""
    async with grpc.aio.insecure_channel(address) as channel:
        received = [message async for message in getattr(ParserServiceStub(channel), method)(request)]
    assert max(message.ByteSize() for message in received) <= MAX_PART_BYTES
    return received


def kinds(received: list[parser_pb2.ParsePackageResponse]) -> list[str]:
    """The kinds of parts, each once; parts of one kind follow each other."""
    parts = [str(message.WhichOneof("part")) for message in received]
    assert parts.count("header") == 1
    assert parts == sorted(parts, key=ORDER.index)
    return list(dict.fromkeys(parts))


def request(text: str, **options: Any) -> parser_pb2.ParsePackageRequest:
    source = parser_pb2.Source(name="a.json", text=text)
    return parser_pb2.ParsePackageRequest(sources=[source], view=VIEWS, **options)


def an_object(number: int, kind: str = "Label", **spec: Any) -> dict[str, Any]:
    name, version = {"name": f"n{number}"}, "influxdata.com/v2alpha1"
    return {"apiVersion": version, "kind": kind, "metadata": name, "spec": spec}


@pytest.mark.parametrize(("count", "length"), [(1_000, 1_000), pytest.param(20_000, 100, marks=pytest.mark.faults)])
async def test_many_objects_and_their_text_come_in_parts(address: str, count: int, length: int) -> None:
    spec = {"description": "é" * length, "name": {"envRef": {"key": "k" * 40}}, "type": "constant", "values": ["a"]}
    objects = [an_object(n, "Variable", **spec | {"name": {"envRef": {"key": f"k{n}"}}}) for n in range(count)]
    asked = request(orjson.dumps(objects).decode())
    received = await messages(address, asked, "ParsePackage")
    assert kinds(received) == ["header", "missing", "objects", "summary_json"]
    assert len(received) > 4
    async with Peer("parser", address) as peer:
        parsed = await parse_package(peer, asked)
        assert [item.key.name for item in parsed.objects] == [f"n{n}" for n in range(count)]
        assert {item.display_name for item in parsed.objects[:2]} == {"env-k0", "env-k1"}
        assert (parsed.header.object_count, dict(parsed.header.kind_counts)) == (count, {"Variable": count})
        assert parsed.missing_env_refs == sorted(f"k{n}" for n in range(count))
        assert len(orjson.loads(parsed.summary)["variables"]) == count
        package = package_of(parsed)
        text = await Parser(peer).render(package, parser_pb2.ENCODING_JSON)
    rendering = parser_pb2.RenderPackageRequest(package=package, encoding=parser_pb2.ENCODING_JSON)
    pieces = await messages(address, rendering, "RenderPackage")
    assert "".join(piece.text for piece in pieces) == text
    assert len(orjson.loads(text)) == count


@pytest.mark.parametrize("count", [5_000, pytest.param(50_000, marks=pytest.mark.faults)])
async def test_many_violations_come_in_parts(address: str, count: int) -> None:
    faulty = [an_object(n, name="x", nothing="y") for n in range(count)]
    received = await messages(address, request(orjson.dumps(faulty).decode()), "ParsePackage")
    assert kinds(received) == ["header", "violations", "warnings"]
    assert len(received) > 3
    [header, *rest] = received
    assert (header.header.violation_count, header.header.warning_count) == (count, count)
    violations = [each for message in rest for each in message.violations.violations]
    assert [each.path for each in violations] == [f"root[{n}].spec.name" for n in range(count)]
    assert violations[-1].severity == object_pb2.SEVERITY_ERROR
    assert violations[-1].end.column - violations[-1].location.column == len('"x"')


@pytest.mark.parametrize("count", [5_000, pytest.param(20_000, marks=pytest.mark.faults)])
async def test_credentials_come_in_parts(address: str, count: int) -> None:
    objects = [an_object(n, "NotificationEndpointSlack", url="x", token="canary-8a1f") for n in range(count)]
    received = await messages(address, request(orjson.dumps(objects).decode()), "ParsePackage")
    assert kinds(received) == ["header", "warnings", "credentials", "objects", "summary_json"]
    assert len(received) > 5
    found = [each for message in received for each in message.credentials.credentials]
    assert [each.key.name for each in found] == [f"n{n}" for n in range(count)]


async def test_a_single_object_may_be_above_the_bound(address: str) -> None:
    text = document("Label", f"description: {'x' * 2 * MAX_PART_BYTES}", "a1") + "---\n" + document("Label", "", "b1")
    source = parser_pb2.Source(text=text)
    view = [parser_pb2.PACKAGE_VIEW_OBJECTS]
    async with Peer("parser", address) as peer:
        stub = ParserServiceStub(peer.channel)
        asked = parser_pb2.ParsePackageRequest(sources=[source], view=view)
        received = [message async for message in peer.stream(stub.ParsePackage, asked)]
    assert [[item.key.name for item in message.objects.objects] for message in received[1:]] == [["a1"], ["b1"]]
