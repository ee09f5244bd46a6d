"""The embedded platform as a process: ``python -m services.drivers.embedded``."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from services.drivers.embedded.servicer import embedded_platform
from services.rpc.process import Service, run_process
from services.settings import Settings


@asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[Service]:
    """The platform in the database of *settings*."""
    with embedded_platform(settings.data / "platform.db") as (register, names):
        yield Service(register, names)


if __name__ == "__main__":
    run_process("platform", opened)
