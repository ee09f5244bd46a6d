"""Runs the applier as a process: ``python -m applier_svc``."""

import asyncio
from functools import partial

from applier_svc.operation import Peers
from applier_svc.operations import Operations
from applier_svc.platforms import Platforms
from applier_svc.servicer import SERVICE, register
from services.rpc.client import Peer
from services.rpc.log import log_to_stderr
from services.rpc.server import serve_until_stopped
from services.settings import GRACE_SECONDS, Settings, load


async def run(settings: Settings) -> None:
    """Serve until told to stop, then let running operations end."""
    peers = Peers(
        planner=Peer("planner", settings.addresses["planner"]),
        stack=Peer("stack", settings.addresses["stack"]),
        platforms=Platforms(settings.platform_address),
    )
    operations = Operations(peers)
    listen = settings.listen or settings.addresses["applier"]
    drain = partial(operations.drain, GRACE_SECONDS)
    await serve_until_stopped("applier", [register(operations)], [SERVICE], listen, GRACE_SECONDS, drain)


if __name__ == "__main__":
    log_to_stderr()
    asyncio.run(run(load()))
