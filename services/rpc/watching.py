"""Watches a stack across restarts of the store."""

import asyncio
from collections.abc import AsyncGenerator

from pkger.stack.v1 import stack_pb2
from pkger.stack.v1.stack_pb2_grpc import StackServiceStub

from services.core.errors import ServiceUnavailable
from services.rpc.call import loop_time
from services.rpc.client import Peer

UNREACHABLE_SECONDS = 60.0
"""How long an unreachable store is retried."""

CONNECTED_SECONDS = 10.0
"""A stream that breaks after a longer time was connected, as an attempt to connect takes less."""

PAUSE_SECONDS = 0.5
"""Pause between two attempts."""


async def watch_stack(
    store: Peer, request: stack_pb2.WatchStackRequest, retry_seconds: float = UNREACHABLE_SECONDS
) -> AsyncGenerator[stack_pb2.WatchStackResponse, None]:
    """
    Watch the changes of a stack until it is gone; a broken stream is resumed from its last position.

    Args:
        store: The stack service.
        request: The stack, and the position from which to watch.
        retry_seconds: How long an unreachable store is retried.

    Raises:
        StackNotFound: There is no such stack.
        ServiceUnavailable: The store was unreachable for that time.
        PkgerError: The store refuses the request.
    """
    asked, stub = stack_pb2.WatchStackRequest(), StackServiceStub(store.channel)
    asked.CopyFrom(request)
    give_up = loop_time() + retry_seconds
    while True:
        began = loop_time()
        try:
            with store.answering():
                async for message in store.stream(stub.WatchStack, asked, None):
                    asked.position, give_up = message.position, loop_time() + retry_seconds
                    yield message
                    if message.HasField("gone"):
                        return
        except ServiceUnavailable:
            if loop_time() - began > CONNECTED_SECONDS:
                # The stream was connected until now, without a change to report.
                give_up = loop_time() + retry_seconds
            elif loop_time() >= give_up:
                raise
        await asyncio.sleep(PAUSE_SECONDS)
