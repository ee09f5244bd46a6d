"""The parser of a command: a configured one, or one in this process, as a parser has no state and calls no service."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Protocol

from pkger.parser.v1 import parser_pb2
from pkger.parser.v1.parser_pb2_grpc import ParserServiceStub

from services.rpc.client import Peer
from services.rpc.parsed_definitions import ParsedDefinitions, joined_definitions
from services.rpc.parsed_package import ParsedPackage, joined_package, parse_package
from services.settings import Settings, is_configured, load


class Parser(Protocol):
    """Reads packages and definitions."""

    async def parse(self, request: parser_pb2.ParsePackageRequest) -> ParsedPackage:
        """
        Parse a package.

        Raises:
            PkgerError: A source cannot be read.
        """

    async def parse_definitions(self, request: parser_pb2.ParseDefinitionsRequest) -> ParsedDefinitions:
        """
        Parse definitions.

        Raises:
            PkgerError: A source cannot be read.
        """

    async def render(self, request: parser_pb2.RenderPackageRequest) -> list[str]:
        """
        Write a package; the texts joined are the package.

        Raises:
            PkgerError: It cannot be written.
        """

    async def kinds(self) -> parser_pb2.ListKindsResponse:
        """The kinds of objects."""


@asynccontextmanager
async def parser(environ: Mapping[str, str]) -> AsyncIterator[Parser]:
    """The parser that *environ* configures; without one, a parser in this process, with the same settings."""
    settings = load(environ)
    if not is_configured(environ):
        yield _Local(settings)
        return
    async with Peer("parser", settings.addresses["parser"]) as peer:
        yield _Remote(peer)


class _Remote:
    """A parser at an address."""

    def __init__(self, peer: Peer) -> None:
        self._peer, self._stub = peer, ParserServiceStub(peer.channel)

    async def parse(self, request: parser_pb2.ParsePackageRequest) -> ParsedPackage:
        """Parse a package."""
        return await parse_package(self._peer, request)

    async def parse_definitions(self, request: parser_pb2.ParseDefinitionsRequest) -> ParsedDefinitions:
        """Parse definitions."""
        return await joined_definitions(self._peer.stream(self._stub.ParseDefinitions, request))

    async def render(self, request: parser_pb2.RenderPackageRequest) -> list[str]:
        """Write a package."""
        return [part.text async for part in self._peer.stream(self._stub.RenderPackage, request)]

    async def kinds(self) -> parser_pb2.ListKindsResponse:
        """The kinds of objects."""
        return await self._peer.call(self._stub.ListKinds, parser_pb2.ListKindsRequest())


class _Local:
    """The servicer of the parser, without a server."""

    def __init__(self, settings: Settings) -> None:
        from parser_svc.servicer import ParserServicer
        from parser_svc.source_texts import Gatherer

        self._servicer = ParserServicer(Gatherer.of(settings))

    async def parse(self, request: parser_pb2.ParsePackageRequest) -> ParsedPackage:
        """Parse a package."""
        return await joined_package(self._servicer.ParsePackage(request, None))

    async def parse_definitions(self, request: parser_pb2.ParseDefinitionsRequest) -> ParsedDefinitions:
        """Parse definitions."""
        return await joined_definitions(self._servicer.ParseDefinitions(request, None))

    async def render(self, request: parser_pb2.RenderPackageRequest) -> list[str]:
        """Write a package."""
        return [part.text async for part in self._servicer.RenderPackage(request, None)]

    async def kinds(self) -> parser_pb2.ListKindsResponse:
        """The kinds of objects."""
        return await self._servicer.ListKinds(parser_pb2.ListKindsRequest(), None)
