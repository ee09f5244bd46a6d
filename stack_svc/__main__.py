"""Serves StackService and JournalService over the database of this environment: ``python -m stack_svc``."""

import asyncio

from services.database import Database
from services.rpc.log import log_to_stderr
from services.rpc.server import serve_until_stopped
from services.settings import GRACE_SECONDS, load
from stack_svc.schema import MIGRATIONS
from stack_svc.servicer import SERVICES, registrations


async def main() -> None:
    """Serve until stopped."""
    log_to_stderr()
    settings = load()
    database = Database(settings.data / "stack.db", MIGRATIONS)
    try:
        await serve_until_stopped(
            "stack", registrations(database), SERVICES, settings.listen or settings.addresses["stack"], GRACE_SECONDS
        )
    finally:
        database.close()


if __name__ == "__main__":
    asyncio.run(main())
