"""``pkger admin``: commands for operators of the services."""

from collections.abc import Mapping

from pkger.journal.v1 import journal_pb2
from pkger.journal.v1.journal_pb2_grpc import JournalServiceStub
from rich.text import Text

from services.cli.errors import plain_errors
from services.cli.output.consoles import console, print_lines
from services.cli.output.documents import print_document
from services.cli.process.session import session
from services.rpc.message_json import document_of

NEEDS = ("stack",)
"""The store alone: an applier would resume operations before they are marked."""


async def restored(environ: Mapping[str, str], output: str) -> None:
    """Mark the unfinished operations and pending plans of a store that was restored from a backup, and print them."""
    with plain_errors():
        async with session(NEEDS, environ) as services:
            stub = JournalServiceStub(services.stack.channel)
            marked = await services.stack.call(stub.MarkRestored, journal_pb2.MarkRestoredRequest())
    if output != "text":
        print_document(document_of(marked), output)
        return
    lines = [
        *(Text(f"blocked: operation {each}") for each in marked.blocked_operation_ids),
        *(Text(f"ended, as it had not started: operation {each}") for each in marked.ended_operation_ids),
        *(Text(f"stale: plan {each}") for each in marked.stale_plan_ids),
    ]
    print_lines(console(), lines or [Text("nothing to mark: there is no unfinished operation and no pending plan")])
    if marked.blocked_operation_ids:
        console().print(Text("`pkger operations show ID` shows how to recover an operation"))
