"""``pkger stacks history`` and ``pkger stacks diff``."""

from collections.abc import Mapping

from pkger.model.v1 import object_pb2, plan_pb2
from pkger.stack.v1 import stack_pb2
from pkger.stack.v1.stack_pb2_grpc import StackServiceStub
from rich.text import Text

from services.cli.errors import plain_errors
from services.cli.find_stack import ref_of
from services.cli.output.consoles import console, print_lines
from services.cli.output.documents import print_document, print_records
from services.cli.output.enum_words import word
from services.cli.output.escapes import one_line
from services.cli.output.facts import moment
from services.cli.output.package_changes import move_texts
from services.cli.output.plan_text import entries_lines
from services.cli.output.tables import print_table
from services.cli.process.interrupts import Interrupts
from services.cli.process.session import Session, session
from services.rpc.message_json import document_of
from services.rpc.paging import pages
from services.views.revisions import difference_entries

NEEDS = ("stack",)


async def history(name: str, platform: str, org: str, environ: Mapping[str, str], output: str, limit: int = 0) -> None:
    """
    Print the revisions of a stack, newest first; at most *limit* of them, 0: all.

    Raises:
        CommandFailed: There is no such stack.
    """
    with Interrupts() as interrupts, plain_errors():
        async with session(NEEDS, environ) as services:
            revisions = await interrupts.or_stop(_revisions(services, _target(platform, org), name, limit))
    if output != "text":
        print_document([document_of(revision) for revision in revisions], output)
        return
    rows = []
    for revision in revisions:
        kind = word(plan_pb2.OperationKind, "OPERATION_KIND", revision.kind)
        notes = f" of {revision.rollback_of}" if revision.rollback_of else ""
        notes += f", {revision.leftover_count} left to do" if revision.leftover_count else ""
        # The sources of a package stack are the files of the packages that changed.
        sources = ", ".join(move_texts(revision.packages)) or ", ".join(revision.sources)
        rows.append((str(revision.number), moment(revision.create_time), kind + notes, revision.author, sources))
    print_table(console(), ("REVISION", "TIME", "KIND", "AUTHOR", "SOURCES"), rows)


async def diff(
    name: str, old: int, new: int, platform: str, org: str, environ: Mapping[str, str], output: str, full: bool
) -> None:
    """
    Print the differences of two revisions of a stack.

    Raises:
        CommandFailed: There is no such stack, or it has no such revision.
    """
    with Interrupts() as interrupts, plain_errors():
        async with session(NEEDS, environ) as services:
            answers = await interrupts.or_stop(_differences(services, _target(platform, org), name, old, new))
    if output != "text":
        print_records(map(document_of, answers), output)
        return
    diffs = plan_pb2.PlanDiffs()
    moves: list[stack_pb2.RevisionPackage] = []
    for answer in answers:
        diffs.MergeFrom(answer.diffs)
        moves += answer.packages
    lines = [*map(Text, move_texts(moves)), *entries_lines(difference_entries(diffs), full)]
    print_lines(console(), lines or [Text(f"Revisions {old} and {new} of stack {one_line(name)} are equal.")])


def _target(platform: str, org: str) -> object_pb2.Target:
    return object_pb2.Target(platform=platform, org=org)


async def _revisions(services: Session, target: object_pb2.Target, name: str, limit: int) -> list[stack_pb2.Revision]:
    ref = await ref_of(services.stack, target, name)
    request = stack_pb2.ListRevisionsRequest(stack=ref)
    revisions: list[stack_pb2.Revision] = []
    async for page in pages(services.stack, StackServiceStub(services.stack.channel).ListRevisions, request):
        revisions += page.revisions
        if len(revisions) >= limit > 0:
            break
    return revisions[: limit or None]


async def _differences(
    services: Session, target: object_pb2.Target, name: str, old: int, new: int
) -> list[stack_pb2.DiffRevisionsResponse]:
    ref = await ref_of(services.stack, target, name)
    request = stack_pb2.DiffRevisionsRequest(stack=ref, old=old, new=new)
    stub = StackServiceStub(services.stack.channel)
    return [answer async for answer in services.stack.stream(stub.DiffRevisions, request)]
