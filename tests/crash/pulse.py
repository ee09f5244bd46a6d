"""What happens, counted: so one does a thing in the middle of what others do, without a clock."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Pulse:
    """
    Counts what happens, so that somebody can do a thing in the middle of it.

    Attributes:
        is_over: Whether nothing more happens.
        working: How many there are that make things happen.
    """

    def __init__(self) -> None:
        self.is_over = False
        self.working = 0
        self._count = 0
        self._resting = 0
        self._condition = asyncio.Condition()

    async def beat(self) -> None:
        """Something happened."""
        async with self._condition:
            self._count += 1
            self._condition.notify_all()

    async def end(self) -> None:
        """Nothing more happens."""
        async with self._condition:
            self.is_over = True
            self._condition.notify_all()

    async def passed(self, beats: int) -> bool:
        """Wait until something has happened so many times more; whether more may happen after that."""
        until = self._count + beats
        async with self._condition:
            await self._condition.wait_for(lambda: self.is_over or self._count >= until)
        return not self.is_over

    async def rest(self, beats: int) -> None:
        """As ``passed``, for those that work themselves: no longer than somebody else works."""
        until = self._count + beats
        async with self._condition:
            self._resting += 1
            self._condition.notify_all()
            await self._condition.wait_for(lambda: self._count >= until or self._resting >= self.working)
            self._resting -= 1

    @asynccontextmanager
    async def work(self) -> AsyncIterator[None]:
        """Count as one that works."""
        self.working += 1
        yield
        async with self._condition:
            self.working -= 1
            self._condition.notify_all()
