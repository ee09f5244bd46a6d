"""``pkger stacks watch``: the changes of a stack, line by line, until it is deleted."""

from collections.abc import Mapping
from contextlib import aclosing

from pkger.model.v1 import object_pb2, operation_pb2, plan_pb2
from pkger.stack.v1 import stack_pb2
from rich.text import Text

from services.cli.errors import plain_errors
from services.cli.find_stack import ref_of
from services.cli.output.consoles import console
from services.cli.output.documents import print_records
from services.cli.output.enum_words import word
from services.cli.process.interrupts import Interrupts
from services.cli.process.session import Session, session
from services.rpc.message_json import document_of
from services.rpc.watching import watch_stack

NEEDS = ("stack",)


async def watch(name: str, platform: str, org: str, environ: Mapping[str, str], output: str) -> None:
    """
    Print the record of a stack, then each change, also across restarts of the store; data is one object a line.

    Raises:
        CommandFailed: There is no such stack, or the store does not come back.
    """
    target = object_pb2.Target(platform=platform, org=org)
    with Interrupts() as interrupts, plain_errors():
        async with session(NEEDS, environ) as services:
            await interrupts.or_stop(_watch(services, target, name, output))


async def _watch(services: Session, target: object_pb2.Target, name: str, output: str) -> None:
    ref = await ref_of(services.stack, target, name)
    request = stack_pb2.WatchStackRequest(stack=ref)
    async with aclosing(watch_stack(services.stack, request)) as changes:
        async for change in changes:
            if output == "text":
                console().print(Text(line_of(change)))
            else:
                print_records([document_of(change)], output)


def line_of(change: stack_pb2.WatchStackResponse) -> str:
    """A change as one line of text."""
    match change.WhichOneof("change"):
        case "stack":
            stack = change.stack
            return f"stack {stack.name or stack.id}: generation {stack.generation}, {stack.resource_count} resources"
        case "operation_begun":
            return f"operation {change.operation_begun.id} began: {_kind(change.operation_begun)}"
        case "operation_blocked":
            return f"operation {change.operation_blocked.id} is blocked; `pkger operations show` lists the causes"
        case "operation_ended":
            ended = change.operation_ended
            return f"operation {ended.id} ended: {word(operation_pb2.OperationState, 'OPERATION_STATE', ended.state)}"
        case _:
            return "the stack is gone"


def _kind(operation: operation_pb2.Operation) -> str:
    return word(plan_pb2.OperationKind, "OPERATION_KIND", operation.kind)
