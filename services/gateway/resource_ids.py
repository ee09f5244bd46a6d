"""Ids of resources that are not 16 hex digits: clients may send them as they are, or as answers write them."""

import asyncio
from collections.abc import Iterable

from pkger.stack.v1 import stack_pb2

from services.core.errors import StackNotFound
from services.gateway.documents.ids import hex_id
from services.gateway.organisations import Organisation
from services.gateway.stack_reading import StackReader

READ_AT_ONCE = 16
"""Stacks that one request reads at the same time."""


async def true_ids(reader: StackReader, orgs: Iterable[Organisation]) -> dict[str, str]:
    """
    The ids that answers write otherwise, by what they write: those of all resources that stacks of *orgs* have.

    Answers tell ids of resources of stacks, so a client has no others, unless it kept those of a dry run.
    """
    places, found = asyncio.Semaphore(READ_AT_ONCE), dict[str, str]()

    async def read(stack: stack_pb2.Stack) -> None:
        async with places:
            try:
                _, entries = await reader.record(stack)
            except StackNotFound:
                # It went while the others were read.
                return
        found.update((hex_id(each.resource_id), each.resource_id) for each in entries)

    listed = await asyncio.gather(*(reader.listed(org.target) for org in orgs))
    await asyncio.gather(*(read(stack) for stacks in listed for stack in stacks))
    return {written: true for written, true in found.items() if written != true}
