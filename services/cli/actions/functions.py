"""``pkger functions``: the functions that phases may call."""

from collections.abc import Mapping, Sequence

from pkger.applier.v1.action_pb2 import ListFunctionsRequest
from pkger.applier.v1.action_pb2_grpc import ActionServiceStub
from pkger.model.v1.action_pb2 import FunctionArgument, FunctionSignature
from rich.console import Console
from rich.text import Text

from services.cli.errors import CommandFailed, plain_errors
from services.cli.output.consoles import console
from services.cli.output.documents import print_document
from services.cli.output.tables import print_table
from services.cli.process.interrupts import Interrupts
from services.cli.process.session import APPLYING, session
from services.kinds.format.shapes import nearest
from services.rpc.message_json import document_of


async def list_functions(name: str, environ: Mapping[str, str], output: str) -> None:
    """
    Print the functions that the applier has, or the versions of the one called *name*.

    Raises:
        CommandFailed: There is none of that name.
    """
    with Interrupts() as interrupts, plain_errors():
        async with session(APPLYING, environ) as services:
            stub = ActionServiceStub(services.applier.channel)
            call = services.applier.call(stub.ListFunctions, ListFunctionsRequest())
            functions = list((await interrupts.or_stop(call)).functions)
    chosen = [each for each in functions if name in ("", each.name)]
    if not chosen:
        names = sorted({each.name for each in functions})
        alike = nearest(name, names)
        hint = f"did you mean {alike}?" if alike else f"functions: {', '.join(names)}"
        raise CommandFailed(f"there is no function {name!r}; {hint}")
    if output != "text":
        print_document([document_of(each) for each in chosen], output)
    else:
        print_functions(console(), chosen)


def print_functions(out: Console, functions: Sequence[FunctionSignature]) -> None:
    """Print functions as a table."""
    rows = [
        (
            f"{each.name} v{each.version}",
            ", ".join(map(_argument, each.arguments)),
            ", ".join(each.outputs),
            each.effect,
            each.recovery,
        )
        for each in functions
    ]
    print_table(out, ("FUNCTION", "ARGUMENTS", "OUTPUTS", "EFFECT", "RECOVERY"), rows)
    out.print(Text("* required"))


def _argument(argument: FunctionArgument) -> str:
    return f"{argument.name}{'*' if argument.required else ''}"
