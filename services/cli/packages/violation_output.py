"""The findings of a validation: as text with the offending lines, and as JSON."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from pkger.model.v1 import manifest_pb2, object_pb2
from pkger.parser.v1 import parser_pb2
from rich.console import Console
from rich.text import Text

from services.core.masking import masked
from services.core.model import Location, Violation
from services.kinds.registry import KINDS
from services.rpc.convert.objects import violation_from_pb, violation_to_pb
from services.rpc.message_json import document_of
from services.rpc.parsed_definitions import ParsedDefinitions
from services.rpc.parsed_package import ParsedPackage
from services.views.warnings import repeated

_CREDENTIAL = re.compile("tok|pass|user|secret|key|auth|cred", re.IGNORECASE)
"""Matches a line that may hold a credential, even if its field is misspelled."""

_LINE_WIDTH = 120
"""Of a longer line, only the characters around the column are shown."""


@dataclass(frozen=True, slots=True)
class Findings:
    """
    The findings on a package, or on definitions.

    Attributes:
        violations: What makes it invalid; a source that cannot be read has kind "Source" and no path.
        warnings: Remarks that leave it valid.
        kinds: Number of its objects of each kind, or of the definitions; empty if it is invalid.
        missing_env_refs: Keys of environment references that have no value.
        missing_secrets: Secret keys that it refers to.
        unused_env_keys: Keys of given environment values that it does not refer to.
        credentials: Its credentials: their lines are not shown.
        sources: Names of the sources that contribute objects, in order.
        manifest: Its manifest; None if it has none, or is invalid.
        package_references: Its fields that name objects of other packages.
        are_on_definitions: Whether they are on definitions.
    """

    violations: Sequence[Violation] = ()
    warnings: Sequence[Violation] = ()
    kinds: Mapping[str, int] = field(default_factory=dict)
    missing_env_refs: Sequence[str] = ()
    missing_secrets: Sequence[str] = ()
    unused_env_keys: Sequence[str] = ()
    credentials: Sequence[parser_pb2.Credential] = ()
    sources: Sequence[str] = ()
    manifest: manifest_pb2.Manifest | None = None
    package_references: Sequence[parser_pb2.PackageReference] = ()
    are_on_definitions: bool = False

    @classmethod
    def of(cls, answer: ParsedPackage) -> Self:
        """The findings of a response of the parser."""
        return cls(
            tuple(map(_masked_source, map(violation_from_pb, answer.violations))),
            tuple(map(_masked_source, map(violation_from_pb, answer.warnings))),
            dict(answer.header.kind_counts),
            tuple(answer.missing_env_refs),
            tuple(answer.missing_secrets),
            tuple(answer.header.unused_env_keys),
            tuple(answer.credentials),
            tuple(map(masked, answer.header.sources)),
            answer.manifest,
            tuple(answer.package_references),
        )

    @classmethod
    def of_definitions(cls, answer: ParsedDefinitions) -> Self:
        """The findings of a response of the parser on definitions."""
        return cls(
            tuple(map(_masked_source, map(violation_from_pb, answer.violations))),
            kinds=dict(answer.header.kind_counts),
            sources=tuple(map(masked, answer.header.sources)),
            are_on_definitions=True,
        )

    @property
    def valid(self) -> bool:
        """Whether nothing is wrong."""
        return not self.violations


def _masked_source(violation: Violation) -> Violation:
    """*violation* with the address of its source masked; an address may have a credential in its query."""
    location = violation.location
    return replace(violation, location=replace(location, source=masked(location.source))) if location else violation


def findings_documents(findings: Findings) -> Iterator[dict[str, Any]]:
    """The findings as JSON data: the messages of the parser, also for sources that cannot be read."""
    violations = object_pb2.Violations(violations=map(violation_to_pb, findings.violations))
    if findings.are_on_definitions:
        of_definitions = parser_pb2.DefinitionsHeader(
            sources=findings.sources, kind_counts=findings.kinds, violation_count=len(findings.violations)
        )
        yield document_of(parser_pb2.ParseDefinitionsResponse(header=of_definitions))
        if findings.violations:
            yield document_of(parser_pb2.ParseDefinitionsResponse(violations=violations))
        return
    header = parser_pb2.PackageHeader(
        sources=findings.sources,
        object_count=sum(findings.kinds.values()),
        kind_counts=findings.kinds,
        violation_count=len(findings.violations),
        warning_count=len(findings.warnings),
        unused_env_keys=findings.unused_env_keys,
    )
    yield document_of(parser_pb2.ParsePackageResponse(header=header))
    missing = parser_pb2.MissingValues(env_refs=findings.missing_env_refs, secrets=findings.missing_secrets)
    warnings = object_pb2.Violations(violations=map(violation_to_pb, findings.warnings))
    credentials = parser_pb2.Credentials(credentials=findings.credentials)
    references = parser_pb2.PackageReferences(references=findings.package_references)
    for part in (
        parser_pb2.ParsePackageResponse(missing=missing),
        parser_pb2.ParsePackageResponse(violations=violations),
        parser_pb2.ParsePackageResponse(warnings=warnings),
        parser_pb2.ParsePackageResponse(credentials=credentials),
        parser_pb2.ParsePackageResponse(manifest=findings.manifest),
        parser_pb2.ParsePackageResponse(package_references=references),
    ):
        content = part.WhichOneof("part")
        if content and getattr(part, content).ByteSize():
            yield document_of(part)


def print_findings(out: Console, findings: Findings, texts: Mapping[str, str]) -> None:
    """
    Print the findings as a table, each row with its line below; a line that may hold a credential is not shown.

    Warnings that differ only in their places are one row.

    Args:
        out: The console to print to.
        findings: The findings.
        texts: Texts of the sources whose lines are known, by name.
    """
    rows = [
        *((violation, "red", "") for violation in findings.violations),
        *((each.first, "yellow", each.more) for each in repeated(findings.warnings)),
    ]
    lines = {name: text.removeprefix("\ufeff").splitlines() for name, text in texts.items()}
    hidden = {(each.location.source, each.location.line) for each in findings.credentials}
    places = max((len(str(row.location)) for row, _, _ in rows), default=0)
    kinds = max((len(row.kind) for row, _, _ in rows), default=0)
    for row, style, more in rows:
        level = "warning: " if style == "yellow" else ""
        # An action set that the command itself wrote has no source.
        out.print(Text.assemble((f"{row.location!s:<{places}}  {row.kind:<{kinds}}  {row.path}".strip(), "bold")))
        out.print(Text(f"    {level}{row.reason} [{row.code}]{more}", style))
        if (row.location.source, row.location.line) in hidden or _may_hold_credential(row, lines):
            continue
        for line in _excerpt(row.location, lines.get(row.location.source, ())):
            out.print(Text(line, "dim"))
    out.print(Text(_sum(findings), "bold"))
    if findings.missing_env_refs:
        out.print(Text(f"environment values not given: {', '.join(findings.missing_env_refs)}", "yellow"))
    if findings.unused_env_keys:
        unused = ", ".join(findings.unused_env_keys)
        out.print(Text(f"environment values given that the package does not refer to: {unused}", "yellow"))
    if findings.missing_secrets:
        out.print(Text(f"secrets that it needs: {', '.join(findings.missing_secrets)}", "yellow"))


def _may_hold_credential(row: Violation, lines: Mapping[str, Sequence[str]]) -> bool:
    """Whether the line of *row* may hold a credential that is misspelled, or in a source that cannot be read."""
    if row.kind in KINDS:
        return KINDS[row.kind].holds_credentials
    of_source = lines.get(row.location.source, ())
    text = of_source[row.location.line - 1] if 0 < row.location.line <= len(of_source) else ""
    return _CREDENTIAL.search(text) is not None


def _excerpt(location: Location, lines: Sequence[str]) -> list[str]:
    """The line of a location, and a caret below the column."""
    if not 0 < location.line <= len(lines):
        return []
    line, column = masked(lines[location.line - 1]), max(location.column, 1) - 1
    start = max(0, min(column - _LINE_WIDTH // 2, len(line) - _LINE_WIDTH))
    shown = line[start : start + _LINE_WIDTH]
    # Tabs stay tabs, so that the caret stands below its character.
    before = "".join("\t" if character == "\t" else " " for character in shown[: column - start])
    number = str(location.line)
    return [f"    {number} | {shown}", f"    {' ' * len(number)} | {before}^"]


def _sum(findings: Findings) -> str:
    subject, verb, nothing = (
        ("Definitions", "are", "no definitions") if findings.are_on_definitions else ("The package", "is", "no objects")
    )
    warned = f", {_count(len(findings.warnings), 'warning')}" if findings.warnings else ""
    if findings.valid:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(findings.kinds.items()))
        named = f" {findings.manifest.name} {findings.manifest.version}" if findings.manifest else ""
        return f"{subject}{named} {verb} valid: {kinds or nothing}{warned}."
    if unreadable := sum(violation.kind == "Source" for violation in findings.violations):
        others = _count(len(findings.violations) - unreadable, "violation")
        return f"{_count(unreadable, 'source')} cannot be read; the others have {others}{warned}."
    return f"{subject} {verb} invalid: {_count(len(findings.violations), 'violation')}{warned}."


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
