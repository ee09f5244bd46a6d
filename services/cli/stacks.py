"""``pkger stacks list`` and ``pkger stacks show``."""

from collections.abc import Mapping

from pkger.model.v1 import object_pb2
from pkger.stack.v1 import stack_pb2
from pkger.stack.v1.stack_pb2_grpc import StackServiceStub

from services.cli.errors import told_plainly
from services.cli.interrupts import Interrupts
from services.cli.session import Session, session
from services.cli.show import console, listing_document, print_json, print_stack, print_stacks, stack_document

NEEDS = ("stack",)


async def show(name: str, org: str, environ: Mapping[str, str], output: str) -> None:
    """
    Print the record of one stack.

    Raises:
        Failed: There is none of that name.
    """
    named = stack_pb2.NamedStack(target=object_pb2.Target(org=org), name=name)
    with Interrupts() as interrupts, told_plainly():
        async with session(NEEDS, environ) as services:
            stub = StackServiceStub(services.stack.channel)
            request = stack_pb2.GetStackRequest(named=named)
            answer = await interrupts.or_stop(services.stack.call(stub.GetStack, request))
    if output == "json":
        print_json(console(), stack_document(answer.stack))
    else:
        print_stack(console(), answer.stack)


async def list_all(environ: Mapping[str, str], output: str) -> None:
    """Print all stacks, of all organisations."""
    with Interrupts() as interrupts, told_plainly():
        async with session(NEEDS, environ) as services:
            stacks = await interrupts.or_stop(_all(services))
    if output == "json":
        print_json(console(), [listing_document(stack) for stack in stacks])
    else:
        print_stacks(console(), stacks)


async def _all(services: Session) -> list[stack_pb2.Stack]:
    stub = StackServiceStub(services.stack.channel)
    found: list[stack_pb2.Stack] = []
    request = stack_pb2.ListStacksRequest()
    while True:
        page = await services.stack.call(stub.ListStacks, request)
        found += page.stacks
        if not page.next_page_token:
            return found
        request.page_token = page.next_page_token
