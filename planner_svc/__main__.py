"""Runs the planner as a process: ``python -m planner_svc``."""

import asyncio

from planner_svc.reading import Platform, Reader
from planner_svc.servicer import SERVICE, register
from services.rpc.client import Peer
from services.rpc.log import log_to_stderr
from services.rpc.server import serve_until_stopped
from services.settings import GRACE_SECONDS, Settings, load


async def run(settings: Settings) -> None:
    """Serve until told to stop."""
    parser = Peer("parser", settings.addresses["parser"])
    stack = Peer("stack", settings.addresses["stack"])
    drivers: dict[str, Platform] = {}

    def platform_of(name: str) -> Platform:
        if name not in drivers:
            drivers[name] = Platform(Peer("platform", settings.platform_address(name)))
        return drivers[name]

    listen = settings.listen or settings.addresses["planner"]
    await serve_until_stopped(
        "planner", [register(Reader(parser, stack), platform_of)], [SERVICE], listen, GRACE_SECONDS
    )


if __name__ == "__main__":
    log_to_stderr()
    asyncio.run(run(load()))
