"""
Ids of resources that are not 16 hex digits.

Answers show such an id as 16 hex digits that are derived from it. Clients may send either form.
"""

import asyncio
from collections.abc import Iterable

from pkger.stack.v1 import stack_pb2

from services.core.errors import StackNotFound
from services.gateway.ids import hex_id
from services.gateway.organizations import Organization
from services.gateway.stack_reading import StackReader

READ_AT_ONCE = 16
"""Stacks that one request reads at a time."""


async def native_ids(reader: StackReader, orgs: Iterable[Organization]) -> dict[str, str]:
    """
    The ids that answers show in another form, by that form, of all resources of the stacks of *orgs*.

    Answers show ids of resources of stacks, so a client has no other ids, unless it got them from a dry run.
    """
    places, ids = asyncio.Semaphore(READ_AT_ONCE), dict[str, str]()

    async def read(stack: stack_pb2.Stack) -> None:
        async with places:
            try:
                _, entries = await reader.record(stack)
            except StackNotFound:
                # It was deleted while the others were read.
                return
        ids.update((hex_id(each.resource_id), each.resource_id) for each in entries)

    listed = await asyncio.gather(*(reader.listed(org.target) for org in orgs))
    await asyncio.gather(*(read(stack) for stacks in listed for stack in stacks))
    return {shown: native for shown, native in ids.items() if shown != native}
