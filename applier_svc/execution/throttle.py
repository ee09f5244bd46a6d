"""The limit of batches in flight: halved when the platform throttles, and raised slowly while it does not."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Self


@dataclass(frozen=True, slots=True)
class Limit:
    """
    The limit of batches in flight.

    Attributes:
        most: The limit of the driver, at least 1.
        now: The current limit, from 1 to ``most``; the fraction is growth that does not make a whole batch yet.
        cuts: How often the limit was halved.
    """

    most: int
    now: float
    cuts: int = 0

    @classmethod
    def of(cls, most: int) -> Self:
        """The limit at the start of an operation; a driver that allows less than one batch allows one."""
        return cls(max(most, 1), float(max(most, 1)))

    def admits(self, in_flight: int) -> bool:
        """Whether another batch may be sent while *in_flight* are."""
        return in_flight < int(self.now)

    def after_success(self) -> Self:
        """The limit after a success: it grows by one with each full window of successes."""
        return replace(self, now=min(self.now + 1 / self.now, float(self.most)))

    def after_refusal(self, cuts: int) -> Self:
        """
        The limit after the platform throttled a batch: half of it.

        Args:
            cuts: ``cuts`` when the batch was sent. A batch that was sent before the last cut does not cut again, so
                batches that are throttled together cut once.
        """
        if cuts < self.cuts:
            return self
        return replace(self, now=max(self.now / 2, 1.0), cuts=self.cuts + 1)


@dataclass(frozen=True, slots=True)
class Budget:
    """
    How long the batches of an operation may still wait because the platform throttles them.

    Attributes:
        left: Seconds.
        until: When the last wait ends; waits that overlap are counted once.
    """

    left: float
    until: float = 0.0

    def after_wait(self, now: float, seconds: float) -> Self | None:
        """The budget after a wait of *seconds* from *now* on; None: the wait is too long."""
        spent = max(now + seconds - max(now, self.until), 0.0)
        if spent > self.left:
            return None
        return replace(self, left=self.left - spent, until=max(self.until, now + seconds))


@dataclass(slots=True)
class Slot:
    """
    One batch in flight.

    Attributes:
        cuts: How often the limit had been halved when the batch was sent.
        was_refused: Whether the platform throttled it; set by the sender, as is ``was_taken``.
        was_taken: Whether it had a response to each mutation.
    """

    cuts: int
    was_refused: bool = False
    was_taken: bool = False


class Throttle:
    """Admits as many batches at a time as the limit says."""

    def __init__(self, most: int) -> None:
        self._limit = Limit.of(most)
        self._in_flight = 0
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[Slot]:
        """Wait for a free slot; the batch is in flight until the block is left."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._limit.admits(self._in_flight))
            self._in_flight += 1
            slot = Slot(self._limit.cuts)
        try:
            yield slot
        finally:
            self._in_flight -= 1
            if slot.was_refused:
                self._limit = self._limit.after_refusal(slot.cuts)
            elif slot.was_taken:
                self._limit = self._limit.after_success()
            async with self._changed:
                self._changed.notify_all()
