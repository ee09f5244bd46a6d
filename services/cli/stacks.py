"""``pkger stacks list`` and ``pkger stacks show``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pkger.model.v1 import object_pb2
from pkger.stack.v1 import stack_pb2
from pkger.stack.v1.stack_pb2_grpc import StackServiceStub

from services.cli.errors import told_plainly
from services.cli.interrupts import Interrupts
from services.cli.session import Session, session
from services.cli.shares import shares_of
from services.cli.show import console, listing_document, print_json, print_stack, print_stacks, stack_document
from services.cli.stack_records import ref_of
from services.rpc.convert.objects import target_from_pb
from services.rpc.resources import read_stack

NEEDS = ("stack",)


async def show(name: str, platform: str, org: str, environ: Mapping[str, str], output: str) -> None:
    """
    Print the record of one stack.

    Raises:
        Failed: There is none of that name or id.
    """
    target = target_from_pb(object_pb2.Target(platform=platform, org=org))
    with Interrupts() as interrupts, told_plainly():
        async with session(NEEDS, environ) as services:
            ref = await interrupts.or_stop(ref_of(services.stack, target, name))
            request = read_stack(services.stack, target, ref)
            stack, resources = await interrupts.or_stop(request)
            shares = await interrupts.or_stop(shares_of(services.stack, stack, resources))
    if output == "json":
        print_json(console(), stack_document(stack, resources, shares) | _said(stack))
    else:
        print_stack(console(), stack, resources, shares)


@dataclass(frozen=True, slots=True)
class Chosen:
    """
    Which stacks are listed: of those of a target, if one is named, the ones that ids, names or a pattern choose.

    Attributes:
        platform: Platform; empty, with *org* empty, too: any target. Else the default one.
        org: Organisation, likewise.
        ids: Those with one of these ids.
        names: Those with one of these names.
        pattern: Those with a name like this; empty: without one.
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


async def list_all(environ: Mapping[str, str], output: str, chosen: Chosen = Chosen()) -> None:
    """Print all stacks that are *chosen*."""
    with Interrupts() as interrupts, told_plainly():
        async with session(NEEDS, environ) as services:
            stacks = await interrupts.or_stop(_all(services, chosen.request()))
    if output == "json":
        print_json(console(), [listing_document(stack) for stack in stacks])
    else:
        print_stacks(console(), stacks)


def _said(stack: stack_pb2.Stack) -> dict[str, Any]:
    """What people say of a stack, as JSON data."""
    return {"description": stack.description, "urls": list(stack.urls), "etag": stack.etag}


async def _all(services: Session, request: stack_pb2.ListStacksRequest) -> list[stack_pb2.Stack]:
    stub = StackServiceStub(services.stack.channel)
    found: list[stack_pb2.Stack] = []
    while True:
        page = await services.stack.call(stub.ListStacks, request)
        found += page.stacks
        if not page.next_page_token:
            return found
        request.page_token = page.next_page_token
