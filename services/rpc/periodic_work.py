"""Periodic work of a service beside its calls, and its health."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from services.core.errors import PkgerError
from services.rpc.call import loop_time

log = logging.getLogger("pkger.rpc")

MISSED_PERIODS = 10
"""Periods without a success after which a service is unhealthy."""

LONGEST_PAUSE_PERIODS = 4
"""Most periods between two attempts, however many failed, so that recovery soon follows the end of an outage."""


class BackgroundLoop:
    """
    Work that is repeated without end; an exception is logged and counted, and does not end the loop.

    Attributes:
        name: Name of the work, for the log.
        period: Seconds between two attempts while they succeed.
        failures: Number of failed attempts since the last success.
    """

    def __init__(self, name: str, period: float, work: Callable[[], Awaitable[None]]) -> None:
        """*work* is one attempt; it raises an exception if it fails."""
        self.name = name
        self.period = period
        self.failures = 0
        self._work = work
        self._last_success: float | None = None

    @property
    def is_late(self) -> bool:
        """Whether there was no success for ``MISSED_PERIODS``, because attempts fail or one does not end."""
        return self._last_success is not None and loop_time() - self._last_success > MISSED_PERIODS * self.period

    @property
    def pause(self) -> float:
        """Seconds until the next attempt: longer with each consecutive failure."""
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
                # For an error of pkger the text is enough; to find a defect takes the trace.
                is_defect = not isinstance(error, PkgerError)
                extra = {"loop": self.name, "failures": self.failures, "problem": str(error)}
                log.log(logging.ERROR if is_defect else logging.WARNING, "loop failed", extra=extra, exc_info=is_defect)
            else:
                self.failures, self._last_success = 0, loop_time()
            await asyncio.sleep(self.pause)
