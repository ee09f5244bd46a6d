"""A count of events, by which an actor acts in the middle of the work of others without a clock."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Pulse:
    """
    Counts events, so that an actor can wait for a number of them.

    Attributes:
        is_over: Whether no more events will be counted.
        working: How many actors work, and so make events.
    """

    def __init__(self) -> None:
        self.is_over = False
        self.working = 0
        self._count = 0
        self._resting = 0
        self._condition = asyncio.Condition()

    async def beat(self) -> None:
        """Count an event."""
        async with self._condition:
            self._count += 1
            self._condition.notify_all()

    async def end(self) -> None:
        """End the count: no more events follow."""
        async with self._condition:
            self.is_over = True
            self._condition.notify_all()

    async def passed(self, beats: int) -> bool:
        """Wait for *beats* more events; returns whether more may follow."""
        until = self._count + beats
        async with self._condition:
            await self._condition.wait_for(lambda: self.is_over or self._count >= until)
        return not self.is_over

    async def rest(self, beats: int) -> None:
        """As ``passed``, for an actor that works itself: it returns as soon as all working actors rest."""
        until = self._count + beats
        async with self._condition:
            self._resting += 1
            self._condition.notify_all()
            await self._condition.wait_for(lambda: self._count >= until or self._resting >= self.working)
            self._resting -= 1

    @asynccontextmanager
    async def work(self) -> AsyncIterator[None]:
        """Count the caller as an actor that works."""
        self.working += 1
        yield
        async with self._condition:
            self.working -= 1
            self._condition.notify_all()
