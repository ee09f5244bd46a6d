"""Serves the embedded platform over the database of this environment: ``python -m services.drivers.embedded``."""

import asyncio

from services.drivers.embedded.servicer import embedded_platform
from services.rpc.log import log_to_stderr
from services.rpc.server import serve_until_stopped
from services.settings import GRACE_SECONDS, load


async def main() -> None:
    """Serve until stopped."""
    log_to_stderr()
    settings = load()
    with embedded_platform(settings.data / "platform.db") as (register, services):
        await serve_until_stopped(
            "platform", register, services, settings.listen or settings.addresses["platform"], GRACE_SECONDS
        )


if __name__ == "__main__":
    asyncio.run(main())
