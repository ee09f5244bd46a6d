"""The stack service as a process: ``python -m stack_svc``."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from services.rpc.call import MESSAGE_LIMIT
from services.rpc.periodic_work import BackgroundLoop
from services.rpc.process import Service, run_process
from services.settings import STACK_DATABASE, Settings
from services.system import Clock, Ids, MachineIds, machine_clock
from stack_svc.housekeeping import sweep
from stack_svc.notify import Watchers
from stack_svc.rules.leases import SECOND
from stack_svc.servicer import SERVICES, registrations
from stack_svc.sqlite.store import SqliteStore
from stack_svc.store.store import RetentionLimits

DAY = 24 * 3600 * SECOND
"""In microseconds."""


@asynccontextmanager
async def opened(
    settings: Settings, clock: Clock = machine_clock, ids: Ids = MachineIds(), limit: int = MESSAGE_LIMIT
) -> AsyncIterator[Service]:
    """
    All services of the stack service over the database of *settings*.

    Args:
        settings: The settings.
        clock: Times the leases.
        ids: Generates the ids of stacks.
        limit: Largest message, in bytes, between the services.
    """
    store = SqliteStore(settings.data / STACK_DATABASE, clock)
    keep = settings.keep
    limits = RetentionLimits(
        operations=keep.operations, age=keep.days * DAY, bytes=keep.bytes, action_sets=keep.action_sets
    )
    sweeping = BackgroundLoop("sweep", settings.times.sweep, partial(sweep, store, limits))
    watchers = Watchers(settings.times.watch)
    register = registrations(store, ids, limit, settings.allow_jsonnet, watchers)
    try:
        async with sweeping.running():
            yield Service(register, SERVICES, watchers.close, [sweeping])
    finally:
        await store.close()


if __name__ == "__main__":
    run_process("stack", opened)
