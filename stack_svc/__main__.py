"""The stack service as a process: ``python -m stack_svc``."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from services.database import Database
from services.rpc.process import Service, run_process
from services.settings import Settings
from stack_svc.schema import MIGRATIONS
from stack_svc.servicer import SERVICES, registrations


@asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[Service]:
    """StackService and JournalService over the database of *settings*."""
    database = Database(settings.data / "stack.db", MIGRATIONS)
    try:
        yield Service(registrations(database), SERVICES)
    finally:
        database.close()


if __name__ == "__main__":
    run_process("stack", opened)
