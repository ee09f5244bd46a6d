"""Finds a stack by its name or its id."""

import re
from contextlib import suppress

from pkger.model.v1 import object_pb2

from services.cli.errors import CommandFailed
from services.core.errors import StackNotFound
from services.rpc.client import Peer
from services.rpc.stack_records import read_header

_ID = re.compile("[0-9a-f]{16}")


async def ref_of(stacks: Peer, target: object_pb2.Target, name: str) -> object_pb2.StackRef:
    """
    A reference to the stack with that name, else to the stack with that id, as a stack may have no name.

    Args:
        stacks: The stack service.
        target: Where the name is looked up.
        name: A name or an id; if there is no such stack, the reference is by name.

    Raises:
        CommandFailed: The stack with that id is in another target.
    """
    by_name, by_id = object_pb2.StackRef(target=target, name=name), object_pb2.StackRef(id=name)
    if not _ID.fullmatch(name):
        return by_name
    with suppress(StackNotFound):
        await read_header(stacks, by_name)
        return by_name
    try:
        own = (await read_header(stacks, by_id)).target
    except StackNotFound:
        return by_name
    if target.platform not in ("", own.platform) or target.org not in ("", own.org):
        raise CommandFailed(f"stack {name} is for {own.platform}/{own.org}; use --target {own.platform}/{own.org}")
    return by_id
