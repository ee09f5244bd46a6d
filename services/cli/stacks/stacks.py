"""``pkger stacks list`` and ``pkger stacks show``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pkger.model.v1 import object_pb2
from pkger.stack.v1 import stack_pb2
from pkger.stack.v1.stack_pb2_grpc import StackServiceStub

from services.cli.errors import plain_errors
from services.cli.find_stack import ref_of
from services.cli.output.consoles import console
from services.cli.output.documents import print_document
from services.cli.output.facts import LARGEST_PAGE, print_more
from services.cli.process.interrupts import Interrupts
from services.cli.process.session import Session, session
from services.cli.stacks.resource_holders import holders_of
from services.cli.stacks.stack_text import print_stack, print_stacks, stack_document
from services.rpc.message_json import document_of
from services.rpc.paging import first_items
from services.rpc.stack_records import read_stack

NEEDS = ("stack",)


async def show(name: str, platform: str, org: str, environ: Mapping[str, str], output: str) -> None:
    """
    Print the record of one stack.

    Raises:
        CommandFailed: There is no stack of that name or id.
    """
    target = object_pb2.Target(platform=platform, org=org)
    with Interrupts() as interrupts, plain_errors():
        async with session(NEEDS, environ) as services:
            ref = await interrupts.or_stop(ref_of(services.stack, target, name))
            request = read_stack(services.stack, ref)
            stack, resources = await interrupts.or_stop(request)
            shares = await interrupts.or_stop(holders_of(services.stack, stack, resources))
    if output == "text":
        print_stack(console(), stack, resources, shares)
    else:
        print_document(stack_document(stack, resources, shares), output)


@dataclass(frozen=True, slots=True)
class StackFilter:
    """
    The filter of a list of stacks.

    Attributes:
        platform: Platform; empty: the default one, or any target if *org* is empty, too.
        org: Organization; empty: the default one, or any target if *platform* is empty, too.
        ids: Ids, one of which a stack must have; empty: no such condition.
        names: Names, one of which a stack must have; empty: no such condition.
        pattern: Pattern that the name must match; empty: no such condition.
    """

    platform: str = ""
    org: str = ""
    ids: Sequence[str] = ()
    names: Sequence[str] = ()
    pattern: str = ""

    def request(self) -> stack_pb2.ListStacksRequest:
        """The request for the first page."""
        target = object_pb2.Target(platform=self.platform, org=self.org) if self.platform or self.org else None
        return stack_pb2.ListStacksRequest(target=target, stack_ids=self.ids, names=self.names, name_glob=self.pattern)


async def list_all(environ: Mapping[str, str], output: str, limit: int | None, chosen: StackFilter) -> None:
    """Print the stacks that pass the filter *chosen*; at most *limit* of them."""
    with Interrupts() as interrupts, plain_errors():
        async with session(NEEDS, environ) as services:
            stacks, has_more = await interrupts.or_stop(_all(services, limit, chosen.request()))
    if output == "text":
        print_stacks(console(), stacks)
    else:
        print_document([document_of(stack) for stack in stacks], output)
    print_more(has_more)


async def _all(
    services: Session, limit: int | None, request: stack_pb2.ListStacksRequest
) -> tuple[list[stack_pb2.Stack], bool]:
    """The stacks, and whether there are more."""
    stub = StackServiceStub(services.stack.channel)
    request.page_size = LARGEST_PAGE if limit is None else min(limit, LARGEST_PAGE)
    return await first_items(services.stack, stub.ListStacks, request, lambda page: page.stacks, limit)
