"""The applier as a process: ``python -m applier_svc``."""

import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial

from applier_svc import failpoints
from applier_svc.execution.timeouts import Timeouts
from applier_svc.operation.lifecycle import Peers
from applier_svc.operation.registry import Registry
from applier_svc.servicer import SERVICE, register
from services.platforms import read_platforms
from services.rpc.channel import Connect, grpc_channel
from services.rpc.client import Peer, Platforms
from services.rpc.periodic_work import BackgroundLoop
from services.rpc.process import Service, run_process
from services.rpc.sent_token import service_token
from services.settings import Settings
from services.system import Clock, Ids, MachineIds, machine_clock


@asynccontextmanager
async def opened(
    settings: Settings,
    timeouts: Timeouts | None = None,
    connect: Connect = grpc_channel,
    clock: Clock = machine_clock,
    ids: Ids = MachineIds(),
) -> AsyncIterator[Service]:
    """
    The applier with its connections; it ends after its operations.

    Args:
        settings: The settings.
        timeouts: The timeouts of operations; None: the defaults, with leases as *settings* say.
        connect: Makes the channels to the other services.
        clock: Dates events.
        ids: Draws ids of operations, request ids and jitter.
    """

    token = service_token(settings)

    def peer(name: str) -> Peer:
        return Peer(name, settings.addresses[name], connect=connect, ids=ids, times=settings.times, token=token)

    async with AsyncExitStack() as stack:
        peers = Peers(
            planner=await stack.enter_async_context(peer("planner")),
            stack=await stack.enter_async_context(peer("stack")),
            platforms=await stack.enter_async_context(
                Platforms(read_platforms(settings), connect, ids, settings.times, token)
            ),
            timeouts=replace(timeouts or Timeouts.of(settings.lease), jitter=ids.fraction),
        )
        operations = Registry(peers, settings.holder, clock, ids)
        store = await stack.enter_async_context(peer("stack"))
        recovery = BackgroundLoop("recovery", peers.timeouts.recovery, partial(operations.recover, store))
        await stack.enter_async_context(recovery.running())
        yield Service(
            [register(operations, peers)], [SERVICE], partial(operations.drain, settings.times.grace), [recovery]
        )


if __name__ == "__main__":
    failpoints.install(failpoints.deadly(os.environ.get(failpoints.VARIABLE, "")))
    run_process("applier", opened)
