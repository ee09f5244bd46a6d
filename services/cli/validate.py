"""``pkger validate``: every mistake of a package, each where it stands."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pkger.parser.v1 import parser_pb2
from pkger.parser.v1.parser_pb2_grpc import ParserServiceStub

from services.cli.errors import Failed, told_plainly
from services.cli.findings import Findings, findings_document, print_findings
from services.cli.interrupts import Interrupts
from services.cli.session import Session, session
from services.cli.show import console, print_json
from services.cli.sources import expanded, read_sources
from services.core.errors import EncodingInvalid, PkgerError, SourceTooLarge, SourceUndecodable, SourceUnreadable
from services.core.model import Location, Violation
from services.rpc.parsing import parse_package
from services.settings import Bounds, load

_UNREADABLE = (SourceUndecodable, SourceTooLarge, SourceUnreadable, EncodingInvalid)
"""Errors of one source, which leave the other sources to be looked at."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """
    What the user asks for.

    Attributes:
        files: Package files, addresses and, if recursive, folders; together one package.
        recursive: Whether to look into folders.
        env: Environment values by key.
    """

    files: Sequence[str]
    recursive: bool
    env: Mapping[str, str]


async def validate(wanted: Wanted, environ: Mapping[str, str], output: str) -> bool:
    """
    Check a package and print what is found.

    Returns:
        Whether it is valid.

    Raises:
        Failed: It could not be checked.
    """
    with Interrupts() as interrupts, told_plainly():
        sources, unreadable = await interrupts.or_stop(_read(wanted, load(environ).bounds))
        async with session(("parser",), environ) as services:
            found = await interrupts.or_stop(_check(services, sources, unreadable, wanted.env))
    if output == "json":
        print_json(console(), findings_document(found))
    else:
        texts = {source.name: source.text for source in sources if source.text and not source.generated}
        print_findings(console(), found, texts)
    return found.valid


async def print_schema(kind: str, environ: Mapping[str, str]) -> None:
    """
    Print the JSON Schema of a kind, or of an object of any kind.

    Raises:
        Failed: There is no such kind.
    """
    with Interrupts() as interrupts, told_plainly():
        async with session(("parser",), environ) as services:
            stub = ParserServiceStub(services.parser.channel)
            request = services.parser.call(stub.ListKinds, parser_pb2.ListKindsRequest())
            answer = await interrupts.or_stop(request)
    schemas = {found.name: found.schema_json for found in answer.kinds}
    if kind and kind not in schemas:
        raise Failed(f"there is no kind {kind!r}; there are {', '.join(schemas)}")
    print_json(console(), json.loads(schemas[kind] if kind else answer.schema_json))


async def _read(wanted: Wanted, bounds: Bounds) -> tuple[list[parser_pb2.Source], list[Violation]]:
    """The sources, and what is wrong with the programs that cannot be evaluated."""
    sources: list[parser_pb2.Source] = []
    unreadable: list[Violation] = []
    for name in expanded(wanted.files, wanted.recursive):
        try:
            sources += await read_sources((name,), bounds=bounds)
        except _UNREADABLE as error:
            unreadable.append(_violation(error))
    return sources, unreadable


async def _check(
    services: Session, sources: Sequence[parser_pb2.Source], unreadable: Sequence[Violation], env: Mapping[str, str]
) -> Findings:
    """All violations; or, when sources cannot be read at all, what is wrong with each of these."""
    broken = list(unreadable)
    left = list(sources)
    while left:
        request = parser_pb2.ParsePackageRequest(sources=left, view=[parser_pb2.PACKAGE_VIEW_WARNINGS])
        for key, value in env.items():
            request.env[key].string_value = value
        try:
            answer = await parse_package(services.parser, request)
        except _UNREADABLE as error:
            broken.append(_violation(error))
            spared = [source for source in left if (source.name or source.url) != error.metadata["source"]]
            # A bound that all sources exceed together is the fault of no single one.
            left = spared if len(spared) < len(left) else []
            continue
        if not broken:
            return Findings.of(answer)
        break
    return Findings(tuple(broken))


def _violation(error: PkgerError) -> Violation:
    data = error.metadata
    location = Location(data["source"], int(data.get("line", 0)), int(data.get("column", 0)))
    reason = data.get("problem") or str(error).removeprefix(f"{data['source']}: ")
    return Violation("Source", "", reason, location, error.reason.lower().replace("_", "-"))
