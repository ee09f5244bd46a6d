"""ParserService on the wire: translates requests and responses."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from functools import partial
from typing import Any

from pkger.model.v1 import definition_pb2, object_pb2
from pkger.parser.v1 import parser_pb2
from pkger.parser.v1.parser_pb2_grpc import ParserServiceServicer, add_ParserServiceServicer_to_server

from parser_svc.admission import Admission
from parser_svc.definitions import parse_definitions
from parser_svc.document_cache import DocumentCache
from parser_svc.package import ParseOptions, ParseResult, parse
from parser_svc.render import render
from parser_svc.source_texts import Gatherer, SourceSpec
from parser_svc.sources import Encoding, Source, size
from services.actions.canonical import kind_of
from services.core.errors import RequestInvalid
from services.core.masking import masked
from services.kinds.format.canonical import canonical_text
from services.kinds.registry import KINDS
from services.kinds.schema import kind_schema
from services.kinds.summary import summary_document
from services.packages.lifecycle import lifecycle_schema
from services.packages.manifest import document_schema, manifest_schema
from services.rpc.convert.definitions import definition_to_pb
from services.rpc.convert.manifests import manifest_to_pb, package_reference_to_pb
from services.rpc.convert.objects import (
    credential_to_pb,
    object_bytes,
    objects_to_pb,
    package_from_pb,
    violation_to_pb,
)
from services.rpc.gc_pause import gc_paused
from services.rpc.parts import cut, parts, pieces
from services.rpc.server import Register
from services.settings import Bounds
from services.syntax.json_reader import read_value

SERVICE = "pkger.parser.v1.ParserService"

MOST_NAME_BYTES = 256 * 1024
"""The length of the names of all sources of a package together (parser.proto)."""

PACKAGES_AT_ONCE = 2
"""How many of the largest packages are read at the same time; of smaller ones, as many as have the same text."""

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

_VIEWS = frozenset((parser_pb2.PACKAGE_VIEW_OBJECTS, parser_pb2.PACKAGE_VIEW_SUMMARY, parser_pb2.PACKAGE_VIEW_WARNINGS))


class ParserServicer(ParserServiceServicer):
    """Translates messages, has sources gathered, and calls ``parse`` and ``render``."""

    def __init__(
        self, gatherer: Gatherer, cache: DocumentCache | None = None, admission: Admission | None = None
    ) -> None:
        self._gatherer, self._cache = gatherer, cache
        self._admission = admission or Admission(PACKAGES_AT_ONCE * gatherer.bounds.bytes)

    async def ParsePackage(
        self, request: parser_pb2.ParsePackageRequest, context: object
    ) -> AsyncIterator[parser_pb2.ParsePackageResponse]:
        _check_view(request.view)
        _check_names(request.sources)
        specs = [_source_spec(*numbered) for numbered in enumerate(request.sources)]
        clock = asyncio.get_running_loop().time
        async with self._gatherer.place(specs):
            sources = await self._gatherer.gather(specs)
            answer = partial(_answer, request, sources, self._gatherer.bounds, clock, self._cache)
            # In a thread, so that health checks are answered while a large package is read.
            messages = await self._admission.run(_text_bytes(request, sources), answer)
        for message in messages:
            yield message

    async def ParseDefinitions(
        self, request: parser_pb2.ParseDefinitionsRequest, context: object
    ) -> AsyncIterator[parser_pb2.ParseDefinitionsResponse]:
        _check_names(request.sources)
        specs = [_source_spec(*numbered) for numbered in enumerate(request.sources)]
        clock = asyncio.get_running_loop().time
        async with self._gatherer.place(specs):
            sources = await self._gatherer.gather(specs)
            text_bytes = sum(size(source.name, source.text) for source in sources)
            answer = partial(_definitions_answer, sources, self._gatherer.bounds, clock)
            messages = await self._admission.run(text_bytes, answer)
        for message in messages:
            yield message

    async def RenderPackage(
        self, request: parser_pb2.RenderPackageRequest, context: object
    ) -> AsyncIterator[parser_pb2.RenderPackageResponse]:
        for piece in pieces(
            await self._admission.run(request.ByteSize(), partial(_rendered, request, self._gatherer.bounds))
        ):
            yield parser_pb2.RenderPackageResponse(text=piece)

    async def ListKinds(self, request: parser_pb2.ListKindsRequest, context: object) -> parser_pb2.ListKindsResponse:
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
            schema_json=canonical_text(document_schema()),
            manifest_schema_json=canonical_text(manifest_schema()),
            lifecycle_schema_json=canonical_text(lifecycle_schema()),
        )


def register(gatherer: Gatherer, cache: DocumentCache | None = None, admission: Admission | None = None) -> Register:
    """A function that adds the parser to a server; without *admission*, it has one by the bounds of *gatherer*."""
    return partial(add_ParserServiceServicer_to_server, ParserServicer(gatherer, cache, admission))


@gc_paused()
def _answer(
    request: parser_pb2.ParsePackageRequest,
    sources: Sequence[Source],
    bounds: Bounds,
    clock: Callable[[], float],
    cache: DocumentCache | None,
) -> list[parser_pb2.ParsePackageResponse]:
    """All messages of the response."""
    env = _env(request)
    wants_warnings = parser_pb2.PACKAGE_VIEW_WARNINGS in request.view
    options = ParseOptions(request.allow_empty, request.keep_valid_parts, warn=wants_warnings)
    parsed = parse(sources, env, options, bounds, clock, cache)
    messages = [parser_pb2.ParsePackageResponse(header=_header(parsed)), *_findings(parsed)]
    if parsed.package and parser_pb2.PACKAGE_VIEW_OBJECTS in request.view:
        objects = parts(parsed.package.objects, object_bytes)
        messages += (parser_pb2.ParsePackageResponse(objects=objects_to_pb(part)) for part in objects)
    if parsed.package and parser_pb2.PACKAGE_VIEW_SUMMARY in request.view:
        messages += (parser_pb2.ParsePackageResponse(summary_json=piece) for piece in pieces(_summary(parsed)))
    return [*messages, *_manifest(parsed)]


@gc_paused()
def _definitions_answer(
    sources: Sequence[Source], bounds: Bounds, clock: Callable[[], float]
) -> list[parser_pb2.ParseDefinitionsResponse]:
    """All messages of the response to ParseDefinitions."""
    parsed = parse_definitions(sources, bounds, clock)
    header = parser_pb2.DefinitionsHeader(
        sources=parsed.sources,
        kind_counts=Counter(kind_of(definition) for definition in parsed.definitions),
        violation_count=len(parsed.violations),
    )
    violations = cut(object_pb2.Violations(violations=map(violation_to_pb, parsed.violations)))
    definitions = cut(definition_pb2.Definitions(definitions=map(definition_to_pb, parsed.definitions)))
    return [
        parser_pb2.ParseDefinitionsResponse(header=header),
        *(parser_pb2.ParseDefinitionsResponse(violations=part) for part in violations),
        *(parser_pb2.ParseDefinitionsResponse(definitions=part) for part in definitions),
    ]


def _text_bytes(request: parser_pb2.ParsePackageRequest, sources: Sequence[Source]) -> int:
    """The text that is read for a request, in bytes: its sources, and the values for its environment references."""
    texts = sum(size(source.name, source.text) for source in sources)
    return texts + sum(map(len, request.env_json.values()))


def _header(parsed: ParseResult) -> parser_pb2.PackageHeader:
    objects = parsed.package.objects if parsed.package else ()
    return parser_pb2.PackageHeader(
        sources=parsed.sources,
        object_count=len(objects),
        kind_counts=Counter(item.key.kind for item in objects),
        violation_count=len(parsed.violations),
        warning_count=len(parsed.warnings),
        unused_env_keys=parsed.unused_env_keys,
        lifecycle_json=parsed.package.lifecycles.get("", "") if parsed.package else "",
    )


def _findings(parsed: ParseResult) -> Iterator[parser_pb2.ParsePackageResponse]:
    """Missing values, violations, warnings and credentials of the package."""
    for missing in cut(parser_pb2.MissingValues(env_refs=parsed.missing_env_refs, secrets=parsed.missing_secrets)):
        yield parser_pb2.ParsePackageResponse(missing=missing)
    for violations in cut(object_pb2.Violations(violations=map(violation_to_pb, parsed.violations))):
        yield parser_pb2.ParsePackageResponse(violations=violations)
    for warnings in cut(object_pb2.Violations(violations=map(violation_to_pb, parsed.warnings))):
        yield parser_pb2.ParsePackageResponse(warnings=warnings)
    for credentials in cut(parser_pb2.Credentials(credentials=map(credential_to_pb, parsed.credentials))):
        yield parser_pb2.ParsePackageResponse(credentials=credentials)


def _manifest(parsed: ParseResult) -> Iterator[parser_pb2.ParsePackageResponse]:
    """The manifest, and the references to objects of other packages, which only a package with a manifest has."""
    if parsed.manifest:
        yield parser_pb2.ParsePackageResponse(manifest=manifest_to_pb(*parsed.manifest))
    references = parser_pb2.PackageReferences(references=map(package_reference_to_pb, parsed.package_references))
    for part in cut(references):
        yield parser_pb2.ParsePackageResponse(package_references=part)


def _rendered(request: parser_pb2.RenderPackageRequest, bounds: Bounds) -> str:
    if not request.HasField("package"):
        raise RequestInvalid("package", "is not set; give the package to write")
    if len(request.package.objects) > bounds.objects:
        count = len(request.package.objects)
        raise RequestInvalid("package.objects", f"has {count:,} entries; at most {bounds.objects:,} are accepted")
    encoding = _WRITTEN.get(request.encoding)
    if not encoding:
        raise RequestInvalid("encoding", "packages are written as YAML or JSON")
    return render(package_from_pb(request.package), encoding)


def _check_view(view: Sequence[int]) -> None:
    """
    Refuse views that this version does not have.

    Raises:
        RequestInvalid: A view is unspecified, or unknown to this version.
    """
    for position, number in enumerate(view):
        if number not in _VIEWS:
            raise RequestInvalid(f"view[{position}]", f"{number} is no view; use OBJECTS, SUMMARY or WARNINGS")


def _check_names(sources: Sequence[parser_pb2.Source]) -> None:
    """
    Refuse names of sources that would not fit into the header of a plan, which has all of them.

    Raises:
        RequestInvalid: Together they are too long.
    """
    taken = sum(len((source.name or source.url).encode()) for source in sources)
    if taken > MOST_NAME_BYTES:
        raise RequestInvalid("sources", f"their names have {taken:,} bytes together; at most {MOST_NAME_BYTES:,} fit")


def _source_spec(position: int, source: parser_pb2.Source) -> SourceSpec:
    if not source.HasField("content") or (source.WhichOneof("content") == "url" and not source.url):
        raise RequestInvalid(f"sources[{position}].content", "is not set; give the text of the source, or its address")
    if source.encoding not in _ENCODINGS:
        problem = f"{source.encoding} is no encoding; use YAML, JSON or JSONNET"
        raise RequestInvalid(f"sources[{position}].encoding", problem)
    return SourceSpec(source.name, _ENCODINGS[source.encoding], source.text, source.url, source.generated)


def _env(request: parser_pb2.ParsePackageRequest) -> dict[str, Any]:
    """
    The environment values by key.

    Raises:
        RequestInvalid: A text is not JSON; never quotes it, as it may be a credential.
    """
    values = {}
    for key, text in request.env_json.items():
        try:
            values[key] = read_value(text)
        except ValueError as error:
            problem = f"{error}; each value is a JSON text, so a text has quotes"
            raise RequestInvalid(f"env_json.{key[:200]}", problem) from None
    return values


def _summary(parsed: ParseResult) -> str:
    if parsed.package is None:
        return ""
    document = summary_document(
        parsed.package.objects,
        ids={},
        missing_env_refs=parsed.missing_env_refs,
        missing_secrets=parsed.missing_secrets,
    )
    return masked(canonical_text(document))
