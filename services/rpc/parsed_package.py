"""Calls the parser, and joins its streamed responses."""

from collections.abc import AsyncIterable
from dataclasses import dataclass, field

from pkger.model.v1 import manifest_pb2, object_pb2
from pkger.parser.v1 import parser_pb2
from pkger.parser.v1.parser_pb2_grpc import ParserServiceStub

from services.rpc.client import Peer


@dataclass(slots=True)
class ParsedPackage:
    """
    The joined response of ``ParsePackage``.

    Attributes:
        header: The header of the package.
        missing_env_refs: Environment keys referred to without a supplied value, sorted.
        missing_secrets: Secret keys referred to, sorted.
        violations: All violations; empty for a valid package.
        warnings: All warnings; empty unless they were requested.
        credentials: Positions of credentials in the package.
        objects: Its objects; empty unless they were requested.
        summary: Its summary as JSON text; empty unless it was requested.
        manifest: Its manifest; None without one.
        package_references: The fields that name objects of other packages.
    """

    header: parser_pb2.PackageHeader = field(default_factory=parser_pb2.PackageHeader)
    missing_env_refs: list[str] = field(default_factory=list)
    missing_secrets: list[str] = field(default_factory=list)
    violations: list[object_pb2.Violation] = field(default_factory=list)
    warnings: list[object_pb2.Violation] = field(default_factory=list)
    credentials: list[parser_pb2.Credential] = field(default_factory=list)
    objects: list[object_pb2.Object] = field(default_factory=list)
    summary: str = ""
    manifest: manifest_pb2.Manifest | None = None
    package_references: list[parser_pb2.PackageReference] = field(default_factory=list)

    @property
    def lifecycles(self) -> dict[str, str]:
        """Its Lifecycle document, as ``services.core.model.Package`` has it."""
        return {"": self.header.lifecycle_json} if self.header.lifecycle_json else {}

    def add(self, message: parser_pb2.ParsePackageResponse, pieces: list[str]) -> None:
        """Add a message of the response; pieces of the summary are appended to *pieces*."""
        match message.WhichOneof("part"):
            case "header":
                self.header = message.header
            case "missing":
                self.missing_env_refs += message.missing.env_refs
                self.missing_secrets += message.missing.secrets
            case "violations":
                self.violations += message.violations.violations
            case "warnings":
                self.warnings += message.warnings.violations
            case "credentials":
                self.credentials += message.credentials.credentials
            case "objects":
                self.objects += message.objects.objects
            case "summary_json":
                pieces.append(message.summary_json)
            case "manifest":
                self.manifest = message.manifest
            case "package_references":
                self.package_references += message.package_references.references
            case None:
                """A part that this version does not know."""


async def parse_package(peer: Peer, request: parser_pb2.ParsePackageRequest) -> ParsedPackage:
    """
    Parse a package with the parser at *peer*.

    Raises:
        PkgerError: The error of the parser, or ``ServiceUnavailable``.
    """
    return await joined_package(peer.stream(ParserServiceStub(peer.channel).ParsePackage, request))


async def joined_package(answers: AsyncIterable[parser_pb2.ParsePackageResponse]) -> ParsedPackage:
    """Join the messages of a response."""
    parsed, pieces = ParsedPackage(), list[str]()
    async for message in answers:
        parsed.add(message, pieces)
    parsed.summary = "".join(pieces)
    return parsed
