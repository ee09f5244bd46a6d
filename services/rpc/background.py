"""What a service does again and again beside its calls, and whether that goes well."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import grpc

from services.core.errors import PkgerError
from services.rpc.call import loop_time

log = logging.getLogger("pkger.rpc")

MISSED_PERIODS = 10
"""Periods without a success after which a service is not healthy."""

LONGEST_PAUSE_PERIODS = 4
"""Periods to wait between two attempts at most, however many failed: recovery has to follow the end of an outage."""


class BackgroundLoop:
    """
    Work that is repeated for ever, whatever comes of it: an exception is logged and counted, and never ends the loop.

    Attributes:
        name: What the work is, for the log.
        period: Seconds between two attempts while they succeed.
        failures: How many attempts failed since the last one that succeeded.
    """

    def __init__(self, name: str, period: float, work: Callable[[], Awaitable[None]]) -> None:
        """*work* is one attempt; it fails by raising."""
        self.name = name
        self.period = period
        self.failures = 0
        self._work = work
        self._last_success: float | None = None

    @property
    def is_late(self) -> bool:
        """Whether no attempt has succeeded for ``MISSED_PERIODS``, whether they fail or do not end."""
        return self._last_success is not None and loop_time() - self._last_success > MISSED_PERIODS * self.period

    @property
    def pause(self) -> float:
        """Seconds to wait before the next attempt: longer with each failure in a row."""
        return self.period * min(2.0 ** max(self.failures - 1, 0), LONGEST_PAUSE_PERIODS)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the loop while the block is open."""
        task = asyncio.create_task(self._run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _run(self) -> None:
        self._last_success = loop_time()
        while True:
            try:
                await self._work()
            except Exception as error:
                self.failures += 1
                # The trace of an error of ours says no more than its text; a defect is found by its trace.
                is_defect = not isinstance(error, PkgerError | grpc.aio.AioRpcError)
                extra = {"loop": self.name, "failures": self.failures, "problem": str(error)}
                log.log(logging.ERROR if is_defect else logging.WARNING, "loop failed", extra=extra, exc_info=is_defect)
            else:
                self.failures, self._last_success = 0, loop_time()
            await asyncio.sleep(self.pause)
