"""``pkger admin``: what operators of the services do."""

from collections.abc import Mapping

from pkger.journal.v1 import journal_pb2
from pkger.journal.v1.journal_pb2_grpc import JournalServiceStub
from rich.text import Text

from services.cli.consoles import console, print_lines
from services.cli.errors import told_plainly
from services.cli.session import session

NEEDS = ("stack",)
"""The store alone: an applier would resume operations before they are marked."""


async def restored(environ: Mapping[str, str]) -> None:
    """Mark what a store that was restored from a backup does not know the end of, and print what was marked now."""
    with told_plainly():
        async with session(NEEDS, environ) as services:
            stub = JournalServiceStub(services.stack.channel)
            marked = await services.stack.call(stub.MarkRestored, journal_pb2.MarkRestoredRequest())
    lines = [
        *(Text(f"blocked: {name}") for name in marked.blocked),
        *(Text(f"ended, as it never started: {name}") for name in marked.ended),
        *(Text(f"stale: {name}") for name in marked.stale_plans),
    ]
    print_lines(console(), lines or [Text("nothing to mark: no operation is unfinished, and no plan waits")])
    if marked.blocked:
        console().print(Text("`pkger operations show NAME` tells the way out of each operation"))
