"""Runs the parser as a process: ``python -m parser_svc``."""

import asyncio

from parser_svc.servicer import SERVICE, register
from services.rpc.log import log_to_stderr
from services.rpc.server import serve_until_stopped
from services.settings import GRACE_SECONDS, Settings, load


async def run(settings: Settings) -> None:
    """Serve until told to stop."""
    listen = settings.listen or settings.addresses["parser"]
    await serve_until_stopped("parser", [register()], [SERVICE], listen, GRACE_SECONDS)


if __name__ == "__main__":
    log_to_stderr()
    asyncio.run(run(load()))
