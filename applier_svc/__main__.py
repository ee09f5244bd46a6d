"""The applier as a process: ``python -m applier_svc``."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial

from applier_svc import action_servicer, failpoints
from applier_svc.actions.call import FunctionTable, Services
from applier_svc.actions.creating import ActionSetCreator
from applier_svc.actions.functions.table import PRODUCT_FUNCTIONS
from applier_svc.actions.holders import Holders
from applier_svc.actions.run import RUNNING_PHASES, ActionPeers
from applier_svc.actions.secrets import SecretPlaces
from applier_svc.execution.timeouts import Timeouts
from applier_svc.operation.lifecycle import Peers
from applier_svc.registry import Registry
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
    functions: FunctionTable = PRODUCT_FUNCTIONS,
) -> AsyncIterator[Service]:
    """
    The applier with its connections; it ends after its operations.

    Args:
        settings: The settings.
        timeouts: The timeouts of operations; None: the defaults, with leases as *settings* say.
        connect: Makes the channels to the other services.
        clock: Dates events.
        ids: Draws ids of operations, request ids and jitter.
        functions: The functions that phases may call.
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
        actions = action_peers(peers, functions, settings, clock)
        operations = Registry(peers, actions, settings.holder, clock, ids, settings.max_action_sets)
        creator = ActionSetCreator(operations, actions, ids)
        store = await stack.enter_async_context(peer("stack"))
        recovery = BackgroundLoop("recovery", peers.timeouts.recovery, partial(operations.recover, store))
        await stack.enter_async_context(recovery.running())
        yield Service(
            [register(operations, peers), action_servicer.register(creator, peers.stack, functions.signatures)],
            [SERVICE, action_servicer.SERVICE],
            partial(operations.drain, settings.times.grace),
            [recovery],
        )


def action_peers(peers: Peers, functions: FunctionTable, settings: Settings, clock: Clock) -> ActionPeers:
    """What the action sets of an applier share."""
    return ActionPeers(
        services=Services(planner=peers.planner, stack=peers.stack),
        functions=functions,
        places=SecretPlaces(settings.secret_variables, settings.secrets_folder),
        holders=Holders(),
        slots=asyncio.Semaphore(RUNNING_PHASES),
        timeouts=peers.timeouts,
        clock=clock,
    )


if __name__ == "__main__":
    failpoints.install(failpoints.deadly(os.environ.get(failpoints.VARIABLE, "")))
    run_process("applier", opened)
