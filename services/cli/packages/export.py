"""``pkger export``: resources of a platform as a package, in a file or on standard output."""

import contextlib
import os
import shlex
import stat
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pkger.model.v1 import object_pb2
from pkger.parser.v1 import parser_pb2
from pkger.planner.v1 import planner_pb2
from pkger.planner.v1.planner_pb2_grpc import PlannerServiceStub
from rich.text import Text

from services.cli.common import caller
from services.cli.errors import CommandFailed, plain_errors
from services.cli.find_stack import ref_of
from services.cli.output.consoles import console, print_warnings
from services.cli.output.facts import LISTED
from services.cli.process.interrupts import Interrupts
from services.cli.process.session import Session, session
from services.cli.resource_args import ResourceArg
from services.core.text_lists import and_more

EXPORTING = ("planner", "stack", "platform")

_ENCODINGS = {"yml": parser_pb2.ENCODING_YAML, "json": parser_pb2.ENCODING_JSON}


@dataclass(frozen=True, slots=True)
class ExportInput:
    """
    What to export, and how to write it.

    Attributes:
        platform: Platform; empty for the default one.
        org: Organization; empty for the default one.
        stack: Name or id of a stack; empty for none.
        everything: Whether to export all resources of the target that match *kinds* and *labels*.
        kinds: Kinds and families to export; empty for all.
        labels: Names of labels of which a resource must have one; empty: no such condition.
        named: Single resources.
        encoding: ``yml`` or ``json``; empty: as the ending of *file* says.
        schema: JSON Schema that the first line of YAML names for editors; empty: no such line.
        file: Where to write; empty for standard output.
        full: Whether all warnings are printed.
        strict: Whether a warning makes the command fail, after the package is written.
        quiet: Whether only data, warnings and errors are printed.
    """

    platform: str = ""
    org: str = ""
    stack: str = ""
    everything: bool = False
    kinds: Sequence[str] = ()
    labels: Sequence[str] = ()
    named: Sequence[ResourceArg] = ()
    encoding: str = ""
    schema: str = ""
    file: str = ""
    full: bool = False
    strict: bool = False
    quiet: bool = False

    def request(self) -> planner_pb2.ExportPackageRequest:
        """The request to the planner, in which *stack* is a name."""
        encoding = self.encoding or ("json" if self.file.lower().endswith(".json") else "yml")
        request = planner_pb2.ExportPackageRequest(
            encoding=_ENCODINGS[encoding],
            schema=self.schema,
            resources=[
                planner_pb2.NamedResource(kind=each.kind, id_or_name=each.id_or_name, new_name=each.new_name)
                for each in self.named
            ],
        )
        target = object_pb2.Target(platform=self.platform, org=self.org)
        if self.stack:
            request.stack.CopyFrom(object_pb2.StackRef(target=target, name=self.stack))
        else:
            request.target.CopyFrom(target)
        if self.everything or self.kinds or self.labels:
            request.everything.CopyFrom(planner_pb2.ExportFilter(kinds=self.kinds, labels=self.labels))
        return request


@dataclass(slots=True)
class _Export:
    """The parts of the response of the planner, joined."""

    header: planner_pb2.ExportHeader = field(default_factory=planner_pb2.ExportHeader)
    warnings: list[str] = field(default_factory=list)
    secret_keys: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def add(self, message: planner_pb2.ExportPackageResponse) -> None:
        """Add one message of the response."""
        match message.WhichOneof("part"):
            case "header":
                self.header = message.header
            case "warnings":
                self.warnings += [warning.text for warning in message.warnings.warnings]
            case "secrets":
                self.secret_keys += message.secrets.keys
            case "text":
                self.texts.append(message.text)
            case None:
                """A part that this version does not know."""


async def export(export_input: ExportInput, environ: Mapping[str, str]) -> None:
    """
    Write a package of resources; its warnings, and the secrets that it refers to, go to standard error.

    Raises:
        CommandFailed: There is no export, or it cannot be written; an existing file is unchanged. Or a strict export
            has warnings; it is written.
    """
    with Interrupts() as interrupts, plain_errors():
        async with session(EXPORTING, environ, export_input.platform) as services:
            package = await interrupts.or_stop(_make(services, export_input))
    if export_input.file:
        write_file(export_input.file, package.texts)
    else:
        out = caller().stdout.buffer
        out.writelines(text.encode() for text in package.texts)
        out.flush()
    _print_remarks(package, export_input)
    if export_input.strict and (count := len(package.warnings)):
        raise CommandFailed(
            "--strict makes the warning an error" if count == 1 else f"--strict makes the {count:,} warnings errors"
        )


async def _make(services: Session, export_input: ExportInput) -> _Export:
    request = export_input.request()
    if request.HasField("stack"):
        request.stack.CopyFrom(await ref_of(services.stack, request.stack.target, request.stack.name))
    package, stub = _Export(), PlannerServiceStub(services.planner.channel)
    async for message in services.planner.stream(stub.ExportPackage, request):
        package.add(message)
    return package


def _print_remarks(package: _Export, export_input: ExportInput) -> None:
    out, file = console(stderr=True), export_input.file
    shown = package.warnings if export_input.full else package.warnings[:LISTED]
    print_warnings(shown)
    if more := and_more(len(package.warnings) - len(shown), "", "warnings"):
        out.print(Text(f"{more}; --full shows all", "yellow"))
    if package.secret_keys:
        options = " ".join(f"--secret {shlex.quote(key)}" for key in package.secret_keys)
        out.print(Text(f"Another target needs secrets that the package names: pkger apply {options}"))
    if export_input.quiet:
        return
    if file or not package.header.object_count:
        objects = "1 object" if package.header.object_count == 1 else f"{package.header.object_count:,} objects"
        out.print(Text(f"Exported {objects}" + (f" to {file}." if file else ".")))


def write_file(file: str, texts: Iterable[str]) -> None:
    """
    Write a file that only its owner can read, whole or not at all.

    Raises:
        CommandFailed: It cannot be written; an existing file is unchanged.
    """
    try:
        # A pipe or a device cannot be replaced: it gets the text directly.
        if Path(file).exists() and not stat.S_ISREG(Path(file).stat().st_mode):
            with Path(file).open("wb") as other:
                other.writelines(text.encode() for text in texts)
            return
        # A symbolic link stays, and its target is replaced. mkstemp creates the new file with mode 0600.
        path = Path(os.path.realpath(file))
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
        try:
            with os.fdopen(descriptor, "wb") as new:
                new.writelines(text.encode() for text in texts)
            Path(name).replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(name).unlink()
            raise
    except OSError as error:
        raise CommandFailed(f"{file}: {error.strerror or error}; nothing was written") from error
