"""Watches a stack across restarts of the store."""

import asyncio
import math
from collections.abc import AsyncGenerator

from pkger.stack.v1 import stack_pb2
from pkger.stack.v1.stack_pb2_grpc import StackServiceStub

from services.core.errors import ServiceUnavailable
from services.rpc.call import loop_time
from services.rpc.client import Peer


async def watch_stack(
    store: Peer, request: stack_pb2.WatchStackRequest
) -> AsyncGenerator[stack_pb2.WatchStackResponse, None]:
    """
    Watch the changes of a stack until it is gone; a broken stream is resumed from its last position.

    Args:
        store: The stack service.
        request: The stack, and the position from which to watch.

    Raises:
        StackNotFound: There is no such stack.
        ServiceUnavailable: The store was unreachable for ``Times.unreachable``.
        PkgerError: The store refuses the request.
    """
    resumed, stub, times = stack_pb2.WatchStackRequest(), StackServiceStub(store.channel), store.times
    resumed.CopyFrom(request)
    give_up = loop_time() + times.unreachable
    while True:
        began = loop_time()
        try:
            async for message in store.stream(stub.WatchStack, resumed, math.inf):
                resumed.position, give_up = message.position, loop_time() + times.unreachable
                yield message
                if message.HasField("gone"):
                    return
        except ServiceUnavailable:
            if loop_time() - began > times.connected:
                # The stream was connected until now, without a change to report.
                give_up = loop_time() + times.unreachable
            elif loop_time() >= give_up:
                raise
        await asyncio.sleep(times.pause)
