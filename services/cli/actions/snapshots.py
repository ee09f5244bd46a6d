"""``pkger snapshots``: list, show, save, verify and delete snapshots."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from pkger.model.v1 import object_pb2
from pkger.parser.v1 import parser_pb2
from pkger.stack.v1 import snapshot_pb2
from pkger.stack.v1.snapshot_pb2_grpc import SnapshotServiceStub
from rich.text import Text

from services.actions.snapshots import PACKAGE, Manifest, is_snapshot_id, read_manifest, snapshot_id
from services.cli.actions.snapshot_text import print_snapshot, print_snapshots
from services.cli.common import caller
from services.cli.errors import CommandFailed, plain_errors
from services.cli.output.consoles import console
from services.cli.output.documents import print_document
from services.cli.output.facts import LARGEST_PAGE, LISTED, print_more
from services.cli.packages.export import write_file
from services.cli.packages.parser import parser
from services.cli.process.interrupts import Interrupts
from services.cli.process.session import Session, session
from services.core.errors import SnapshotCorrupt
from services.kinds.attachment import text_digest
from services.packages.package_text import read_package
from services.rpc.convert.objects import objects_to_pb
from services.rpc.message_json import document_of
from services.rpc.paging import first_items, pages

NEEDS = ("stack",)

_PREFIX = re.compile("[0-9a-f]{12,63}")
"""The first digits of an id."""

_SCHEME = "sha256:"


@dataclass(slots=True)
class WholeSnapshot:
    """
    A snapshot with its contents.

    Attributes:
        snapshot: The snapshot.
        texts: The parts of its contents, by digest.
    """

    snapshot: snapshot_pb2.Snapshot
    texts: dict[str, list[str]] = field(default_factory=dict)

    @property
    def manifest(self) -> Manifest:
        """
        Its manifest.

        Raises:
            SnapshotCorrupt: It cannot be read, or is that of another snapshot.
        """
        if snapshot_id(self.snapshot.manifest_json) != self.snapshot.id:
            raise SnapshotCorrupt(self.snapshot.id, "its manifest does not have the digest that is its id")
        return read_manifest(self.snapshot.manifest_json)

    def verified_texts(self) -> list[str]:
        """
        Its contents, in the order of the manifest.

        Raises:
            SnapshotCorrupt: A content is missing, or does not have its digest or its size.
        """
        texts = []
        for content in self.manifest.contents:
            if content.digest not in self.texts:
                raise SnapshotCorrupt(self.snapshot.id, f"the content {content.digest} is missing")
            text = "".join(self.texts[content.digest])
            if text_digest(text) != content.digest or len(text.encode()) != content.bytes:
                raise SnapshotCorrupt(self.snapshot.id, f"the content {content.digest} does not have its digest")
            texts.append(text)
        return texts


async def list_all(stack: str, environ: Mapping[str, str], output: str, limit: int | None) -> None:
    """Print the newest snapshots, of stacks of that name, empty: of all; at most *limit* of them, None: ``LISTED``."""
    listed = limit or LISTED
    request = snapshot_pb2.ListSnapshotsRequest(stack_name=stack, page_size=min(listed, LARGEST_PAGE))
    with Interrupts() as interrupts, plain_errors():
        async with session(NEEDS, environ) as services:
            stub = SnapshotServiceStub(services.stack.channel)
            listing = first_items(services.stack, stub.ListSnapshots, request, lambda page: page.snapshots, listed)
            snapshots, has_more = await interrupts.or_stop(listing)
    if output == "text":
        print_snapshots(console(), snapshots)
    else:
        print_document([document_of(each) for each in snapshots], output)
    print_more(has_more)


async def show(typed: str, environ: Mapping[str, str], output: str) -> None:
    """
    Print a snapshot.

    Raises:
        CommandFailed: There is none of that id.
    """
    with plain_errors():
        whole = await _read(typed, environ, without_contents=True)
        if output == "text":
            print_snapshot(console(), whole.snapshot, whole.manifest)
        else:
            print_document(document_of(whole.snapshot), output)


async def save(typed: str, file: str, environ: Mapping[str, str], quiet: bool) -> None:
    """
    Write the package of a snapshot; JSON if *file* ends with .json, empty: YAML on standard output.

    Raises:
        CommandFailed: There is no such snapshot, it is corrupt or not of a stack, or the file cannot be written.
    """
    with plain_errors():
        whole = await _read(typed, environ)
        if whole.manifest.media_type != PACKAGE:
            raise CommandFailed(f"snapshot {whole.snapshot.id} has no package: it is {whole.manifest.media_type}")
        [text] = whole.verified_texts()
        package = read_package(text)
        objects = objects_to_pb(package.applied.values()).objects
        is_json = file.lower().endswith(".json")
        request = parser_pb2.RenderPackageRequest(
            package=object_pb2.Package(objects=objects, lifecycle_json=package.lifecycles.get("", "")),
            encoding=parser_pb2.ENCODING_JSON if is_json else parser_pb2.ENCODING_YAML,
        )
        async with parser(environ) as writing:
            texts = await writing.render(request)
    if not file:
        caller().stdout.buffer.writelines(each.encode() for each in texts)
        caller().stdout.buffer.flush()
        return
    write_file(file, texts)
    if not quiet:
        console(stderr=True).print(Text(f"Saved {_objects(len(objects))} to {file}."))


async def verify(typed: str, environ: Mapping[str, str], output: str) -> None:
    """
    Read all contents of a snapshot, and check that each has its digest.

    Raises:
        CommandFailed: There is no such snapshot, or it is corrupt.
    """
    with plain_errors():
        whole = await _read(typed, environ)
        texts = whole.verified_texts()
    if output != "text":
        print_document(document_of(whole.snapshot), output)
        return
    size = sum(len(each.encode()) for each in texts)
    console().print(Text(f"snapshot {whole.snapshot.id} is intact: {_objects(whole.manifest.objects)}, {size:,} bytes"))


async def delete(typed: str, author: str, environ: Mapping[str, str], output: str) -> None:
    """
    Delete a snapshot.

    Raises:
        CommandFailed: There is none of that id.
    """
    with Interrupts() as interrupts, plain_errors():
        async with session(NEEDS, environ) as services:
            whole_id = await interrupts.or_stop(_whole_id(services, typed))
            request = snapshot_pb2.DeleteSnapshotRequest(id=whole_id, author=author)
            stub = SnapshotServiceStub(services.stack.channel)
            answer = await interrupts.or_stop(services.stack.call(stub.DeleteSnapshot, request))
    if output != "text":
        print_document(document_of(answer), output)
    else:
        console().print(Text(f"snapshot {whole_id} {'is' if answer.is_deleted else 'was already'} deleted"))


async def _read(typed: str, environ: Mapping[str, str], without_contents: bool = False) -> WholeSnapshot:
    with Interrupts() as interrupts:
        async with session(NEEDS, environ) as services:
            whole_id = await interrupts.or_stop(_whole_id(services, typed))
            return await interrupts.or_stop(_parts(services, whole_id, without_contents))


async def _parts(services: Session, whole_id: str, without_contents: bool) -> WholeSnapshot:
    request = snapshot_pb2.GetSnapshotRequest(id=whole_id, without_contents=without_contents)
    stub = SnapshotServiceStub(services.stack.channel)
    whole = WholeSnapshot(snapshot_pb2.Snapshot())
    async for message in services.stack.stream(stub.GetSnapshot, request):
        if message.HasField("snapshot"):
            whole.snapshot = message.snapshot
        else:
            whole.texts.setdefault(message.content.digest, []).append(message.content.text)
    return whole


async def _whole_id(services: Session, typed: str) -> str:
    """
    The id that begins with *typed*, which has at least 12 digits; ``sha256:`` may be left out.

    Raises:
        CommandFailed: It is no id, or no snapshot or several have it.
    """
    digits = typed.removeprefix(_SCHEME)
    if is_snapshot_id(f"{_SCHEME}{digits}"):
        return f"{_SCHEME}{digits}"
    if not _PREFIX.fullmatch(digits):
        raise CommandFailed(
            f"{typed!r} is no id of a snapshot: write sha256: and 64 hexadecimal digits, or their first 12 or more;"
            " `pkger snapshots list` lists them"
        )
    stub = SnapshotServiceStub(services.stack.channel)
    request = snapshot_pb2.ListSnapshotsRequest(page_size=LARGEST_PAGE)
    having = [
        each.id
        async for page in pages(services.stack, stub.ListSnapshots, request)
        for each in page.snapshots
        if each.id.startswith(f"{_SCHEME}{digits}")
    ]
    if len(having) == 1:
        return having[0]
    problem = f"{len(having)} snapshots begin so" if having else "there is no such snapshot"
    raise CommandFailed(f"{typed}: {problem}; `pkger snapshots list` lists them")


def _objects(count: int) -> str:
    return "1 object" if count == 1 else f"{count:,} objects"
