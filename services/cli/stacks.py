"""``pkger stacks list`` and ``pkger stacks show``."""

from collections.abc import Mapping

from pkger.model.v1 import object_pb2
from pkger.stack.v1 import stack_pb2
from pkger.stack.v1.stack_pb2_grpc import StackServiceStub

from services.cli.errors import told_plainly
from services.cli.interrupts import Interrupts
from services.cli.session import Session, session
from services.cli.shares import shares_of
from services.cli.show import console, listing_document, print_json, print_stack, print_stacks, stack_document
from services.rpc.convert.objects import target_from_pb
from services.rpc.resources import read_stack

NEEDS = ("stack",)


async def show(name: str, platform: str, org: str, environ: Mapping[str, str], output: str) -> None:
    """
    Print the record of one stack.

    Raises:
        Failed: There is none of that name.
    """
    target = target_from_pb(object_pb2.Target(platform=platform, org=org))
    with Interrupts() as interrupts, told_plainly():
        async with session(NEEDS, environ) as services:
            request = read_stack(services.stack, target, object_pb2.StackRef(name=name))
            stack, resources = await interrupts.or_stop(request)
            shares = await interrupts.or_stop(shares_of(services.stack, stack, resources))
    if output == "json":
        print_json(console(), stack_document(stack, resources, shares))
    else:
        print_stack(console(), stack, resources, shares)


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
