"""ParserService on the wire."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

import grpc
from google.protobuf.struct_pb2 import Value
from pkger.parser.v1 import parser_pb2
from pkger.parser.v1.parser_pb2_grpc import ParserServiceServicer, add_ParserServiceServicer_to_server

from parser_svc.bounds import Bounds
from parser_svc.gathering import Gatherer, Wanted
from parser_svc.package import Options, Parsed, parse
from parser_svc.rendering import render
from parser_svc.sources import Encoding, Source
from services.core.errors import RequestInvalid
from services.kinds.canonical import canonical_text
from services.kinds.schema import kind_schema, package_schema
from services.kinds.summary import summary_document
from services.kinds.table import KINDS
from services.rpc.convert.objects import credential_to_pb, package_from_pb, package_to_pb, violation_to_pb
from services.rpc.server import Register

SERVICE = "pkger.parser.v1.ParserService"

_ENCODINGS: dict[int, Encoding | None] = {
    parser_pb2.ENCODING_UNSPECIFIED: None,
    parser_pb2.ENCODING_YAML: Encoding.YAML,
    parser_pb2.ENCODING_JSON: Encoding.JSON,
    parser_pb2.ENCODING_JSONNET: Encoding.JSONNET,
}

_WRITTEN: dict[int, Encoding] = {
    parser_pb2.ENCODING_UNSPECIFIED: Encoding.YAML,
    parser_pb2.ENCODING_YAML: Encoding.YAML,
    parser_pb2.ENCODING_JSON: Encoding.JSON,
}


class ParserServicer(ParserServiceServicer):
    """Translates, has sources gathered, and calls ``parse`` and ``render``."""

    def __init__(self, gatherer: Gatherer) -> None:
        self._gatherer = gatherer

    async def ParsePackage(
        self, request: parser_pb2.ParsePackageRequest, context: "grpc.aio.ServicerContext[Any, Any]"
    ) -> parser_pb2.ParsePackageResponse:
        sources = await self._gatherer.gather([_wanted(*numbered) for numbered in enumerate(request.sources)])
        # In a thread of its own, so that health checks are answered while a large package is read.
        return await asyncio.to_thread(_answer, request, sources, self._gatherer.bounds)

    async def RenderPackage(
        self, request: parser_pb2.RenderPackageRequest, context: "grpc.aio.ServicerContext[Any, Any]"
    ) -> parser_pb2.RenderPackageResponse:
        return parser_pb2.RenderPackageResponse(text=await asyncio.to_thread(_rendered, request))

    async def ListKinds(
        self, request: parser_pb2.ListKindsRequest, context: "grpc.aio.ServicerContext[Any, Any]"
    ) -> parser_pb2.ListKindsResponse:
        return parser_pb2.ListKindsResponse(
            kinds=[
                parser_pb2.Kind(
                    name=name,
                    resource_type=kind.resource_type,
                    unique_display_name=kind.unique_display_name,
                    min_display_name_bytes=kind.min_name_bytes,
                    labelled=kind.labelled,
                    schema_json=canonical_text(kind_schema(kind)),
                )
                for name, kind in sorted(KINDS.items())
            ],
            schema_json=canonical_text(package_schema()),
        )


def register(gatherer: Gatherer) -> Register:
    """What a server needs to serve the parser."""
    return partial(add_ParserServiceServicer_to_server, ParserServicer(gatherer))


def _answer(
    request: parser_pb2.ParsePackageRequest, sources: Sequence[Source], bounds: Bounds
) -> parser_pb2.ParsePackageResponse:
    env = {key: _tree(value) for key, value in request.env.items()}
    options = Options(request.allow_empty, request.keep_valid_parts, warn=not request.omit_warnings)
    parsed = parse(sources, env, options, bounds)
    return parser_pb2.ParsePackageResponse(
        package=package_to_pb(parsed.package) if parsed.package else None,
        summary_json="" if request.omit_summary else _summary(parsed),
        violations=map(violation_to_pb, parsed.violations),
        missing_env_refs=parsed.missing_env_refs,
        missing_secrets=parsed.missing_secrets,
        warnings=map(violation_to_pb, parsed.warnings),
        credentials=map(credential_to_pb, parsed.credentials),
    )


def _rendered(request: parser_pb2.RenderPackageRequest) -> str:
    if not request.HasField("package"):
        raise RequestInvalid("package", "is not set; give the package to write")
    encoding = _WRITTEN.get(request.encoding)
    if not encoding:
        raise RequestInvalid("encoding", "packages are written as YAML or JSON")
    return render(package_from_pb(request.package), encoding)


def _wanted(position: int, source: parser_pb2.Source) -> Wanted:
    if not source.HasField("content") or (source.WhichOneof("content") == "url" and not source.url):
        raise RequestInvalid(f"sources[{position}].content", "is not set; give the text of the source, or its address")
    if source.encoding not in _ENCODINGS:
        problem = f"{source.encoding} is no encoding; use YAML, JSON or JSONNET"
        raise RequestInvalid(f"sources[{position}].encoding", problem)
    return Wanted(source.name, _ENCODINGS[source.encoding], source.text, source.url, source.generated)


def _tree(value: Value) -> Any:
    """The JSON value that a message stands for; its numbers are floats, as in JSON sources."""
    match value.WhichOneof("kind"):
        case "list_value":
            return [_tree(item) for item in value.list_value.values]
        case "struct_value":
            return {key: _tree(item) for key, item in value.struct_value.fields.items()}
        case "null_value" | None:
            return None
        case kind:
            return getattr(value, kind)


def _summary(parsed: Parsed) -> str:
    if parsed.package is None:
        return ""
    document = summary_document(
        parsed.package.objects,
        ids={},
        missing_env_refs=parsed.missing_env_refs,
        missing_secrets=parsed.missing_secrets,
    )
    return canonical_text(document)
