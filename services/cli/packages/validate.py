"""``pkger validate``: all violations of a package or of definitions, each with its location."""

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pkger.parser.v1 import parser_pb2

from services.cli.errors import CommandFailed, plain_errors
from services.cli.output.consoles import console, print_warnings
from services.cli.output.documents import print_records
from services.cli.packages.address_warnings import address_warnings
from services.cli.packages.definition_sources import has_definitions
from services.cli.packages.parser import Parser, parser
from services.cli.packages.sources import expanded, is_address, read_sources, sendable
from services.cli.packages.violation_output import Findings, findings_documents, print_findings
from services.cli.process.interrupts import Interrupts
from services.core.errors import EncodingInvalid, PkgerError, SourceTooLarge, SourceUndecodable, SourceUnreadable
from services.core.masking import masked
from services.core.model import Location, Violation
from services.kinds.diagnostics import Code
from services.settings import Bounds, load

_UNREADABLE = (SourceUndecodable, SourceTooLarge, SourceUnreadable, EncodingInvalid)
"""Errors of one source, after which the other sources can still be checked."""

_ELSEWHERE = {Code.LABEL_NOT_FOUND, Code.ENDPOINT_NOT_FOUND, Code.PACKAGE_EMPTY}
"""Violations that do not count if a source cannot be read: the missing object may be in it."""


@dataclass(frozen=True, slots=True)
class ValidateInput:
    """
    What to validate.

    Attributes:
        files: Package files, addresses and, if recursive, folders; together one package.
        recursive: Whether to read folders.
        env: Environment values by key: JSON values.
        encoding: Encoding of sources whose names do not show it; empty: the parser detects it.
        libraries: Folders in which Jsonnet imports are looked up, the first one first.
    """

    files: Sequence[str]
    recursive: bool
    env: Mapping[str, Any]
    encoding: str = ""
    libraries: Sequence[Path] = ()


async def validate(validate_input: ValidateInput, environ: Mapping[str, str], output: str) -> bool:
    """
    Validate a package, definitions or both, and print the findings.

    Returns:
        Whether all of them are valid.

    Raises:
        CommandFailed: They cannot be checked.
    """
    with Interrupts() as interrupts, plain_errors():
        sources, unreadable = await interrupts.or_stop(_read(validate_input, load(environ).bounds))
        async with parser(environ) as reading:
            findings = await interrupts.or_stop(_findings(reading, sources, unreadable, validate_input.env))
    if output != "text":
        print_records((document for each in findings for document in findings_documents(each)), output)
    else:
        texts = {source.name: source.text for source in sources if source.text and not source.generated}
        for each in findings:
            print_findings(console(), each, texts)
    print_warnings(address_warnings(filter(is_address, validate_input.files)))
    return all(each.valid for each in findings)


async def _read(validate_input: ValidateInput, bounds: Bounds) -> tuple[list[parser_pb2.Source], list[Violation]]:
    """The sources, and a violation for each source that cannot be read or evaluated."""
    sources: list[parser_pb2.Source] = []
    unreadable: list[Violation] = []
    failures: list[CommandFailed] = []
    for argument in validate_input.files:
        try:
            for name in expanded((argument,), validate_input.recursive):
                try:
                    sources += await read_sources(
                        (name,), False, bounds, validate_input.encoding, validate_input.libraries
                    )
                except _UNREADABLE as error:
                    unreadable.append(_violation(error))
                except CommandFailed as error:
                    failures.append(error)
                    unreadable.append(_missing(name, error))
        except CommandFailed as error:
            failures.append(error)
            unreadable.append(_missing(argument, error))
    if failures and not sources and len(failures) == len(unreadable) == 1:
        # Nothing else was given.
        raise failures[0]
    return sources, unreadable


async def _findings(
    reading: Parser, sources: Sequence[parser_pb2.Source], unreadable: Sequence[Violation], env: Mapping[str, Any]
) -> list[Findings]:
    """The findings on the package, unless all sources have definitions, then those on definitions, if there are any."""

    async def of_package(left: Sequence[parser_pb2.Source]) -> Findings:
        request = parser_pb2.ParsePackageRequest(sources=left, view=[parser_pb2.PACKAGE_VIEW_WARNINGS])
        request.env_json.update(sendable(env))
        return Findings.of(await reading.parse(request))

    async def of_definitions(left: Sequence[parser_pb2.Source]) -> Findings:
        return Findings.of_definitions(
            await reading.parse_definitions(parser_pb2.ParseDefinitionsRequest(sources=left))
        )

    definitions: list[parser_pb2.Source] = []
    package: list[parser_pb2.Source] = []
    for source in sources:
        (definitions if has_definitions(source) else package).append(source)
    findings = []
    if package or unreadable or not definitions:
        findings.append(await _check(of_package, package, unreadable))
    if definitions:
        findings.append(await _check(of_definitions, definitions, ()))
    return findings


async def _check(
    ask: Callable[[Sequence[parser_pb2.Source]], Awaitable[Findings]],
    sources: Sequence[parser_pb2.Source],
    unreadable: Sequence[Violation],
) -> Findings:
    """All violations: first of sources that cannot be read, then of the others."""
    broken = list(unreadable)
    left = list(sources)
    while left or not broken:
        try:
            findings = await ask(left)
        except _UNREADABLE as error:
            broken.append(_violation(error))
            # A service masks addresses in its errors.
            unread = masked(error.metadata["source"])
            spared = [source for source in left if masked(source.name or source.url) != unread]
            # If no source is named, all sources together exceed a bound.
            left = spared if len(spared) < len(left) else []
            continue
        if not broken:
            return findings
        rest = [violation for violation in findings.violations if violation.code not in _ELSEWHERE]
        return replace(findings, violations=(*broken, *rest), kinds={}, sources=())
    return Findings(tuple(broken))


def _missing(name: str, error: CommandFailed) -> Violation:
    """The violation for a file that cannot be read."""
    shown = os.fsencode(name).decode(errors="replace")
    return Violation("Source", "", error.message.removeprefix(f"{shown}: "), Location(shown), "source-unreadable")


def _violation(error: PkgerError) -> Violation:
    data = error.metadata
    location = Location(masked(data["source"]), int(data.get("line", 0)), int(data.get("column", 0)))
    reason = data.get("problem") or str(error).removeprefix(f"{data['source']}: ")
    return Violation("Source", "", reason, location, error.reason.lower().replace("_", "-"))
