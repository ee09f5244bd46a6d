"""A parser service to call."""

from collections.abc import AsyncIterator, Collection
from typing import Any

import pytest
from pkger.model.v1 import object_pb2
from pkger.parser.v1 import parser_pb2
from pkger.parser.v1.parser_pb2_grpc import ParserServiceStub

from parser_svc.servicer import SERVICE, register
from parser_svc.source_texts import Gatherer
from services.rpc.client import Peer
from services.rpc.parsed_definitions import ParsedDefinitions, joined_definitions
from services.rpc.parsed_package import ParsedPackage, parse_package
from services.rpc.process import Service
from tests.transport import serving_at_socket

VIEWS = (parser_pb2.PACKAGE_VIEW_OBJECTS, parser_pb2.PACKAGE_VIEW_SUMMARY, parser_pb2.PACKAGE_VIEW_WARNINGS)
"""All views."""


def package_of(parsed: ParsedPackage) -> object_pb2.Package:
    """The parsed objects as one message, to render it."""
    return object_pb2.Package(objects=parsed.objects, sources=parsed.header.sources)


class Parser:
    """A client of the parser."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self._stub = ParserServiceStub(peer.channel)

    async def parse(
        self, *sources: parser_pb2.Source, view: Collection[parser_pb2.PackageView.ValueType] = VIEWS, **options: Any
    ) -> ParsedPackage:
        request = parser_pb2.ParsePackageRequest(sources=sources, view=view, **options)
        return await parse_package(self._peer, request)

    async def definitions(self, *sources: parser_pb2.Source) -> ParsedDefinitions:
        request = parser_pb2.ParseDefinitionsRequest(sources=sources)
        return await joined_definitions(self._peer.stream(self._stub.ParseDefinitions, request))

    async def render(
        self, package: object_pb2.Package | None, encoding: parser_pb2.Encoding.ValueType = parser_pb2.ENCODING_YAML
    ) -> str:
        request = parser_pb2.RenderPackageRequest(package=package, encoding=encoding)
        return "".join([message.text async for message in self._peer.stream(self._stub.RenderPackage, request)])

    async def kinds(self) -> parser_pb2.ListKindsResponse:
        return await self._peer.call(self._stub.ListKinds, parser_pb2.ListKindsRequest())


@pytest.fixture
async def parser() -> AsyncIterator[Parser]:
    async with serving_at_socket(Service([register(Gatherer())], [SERVICE])) as address:
        peer = Peer("parser", address)
        yield Parser(peer)
        await peer.close()
