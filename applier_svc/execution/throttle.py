"""How many batches are in flight: fewer when the platform asks for patience, slowly more while it does not."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Self


@dataclass(frozen=True, slots=True)
class Limit:
    """
    Most batches in flight.

    Attributes:
        most: What the driver allows, at least 1.
        now: What is tried now, from 1 to ``most``; the part behind the point is growth that is not a batch yet.
        cuts: How often it was halved.
    """

    most: int
    now: float
    cuts: int = 0

    @classmethod
    def of(cls, most: int) -> Self:
        """The limit of an operation that begins; a driver that allows less than one batch allows one."""
        return cls(max(most, 1), float(max(most, 1)))

    def admits(self, in_flight: int) -> bool:
        """Whether one more may be sent beside *in_flight*."""
        return in_flight < int(self.now)

    def after_success(self) -> Self:
        """A batch was taken: one more is tried when as many were taken as are tried now."""
        return replace(self, now=min(self.now + 1 / self.now, float(self.most)))

    def after_refusal(self, cuts: int) -> Self:
        """
        The platform asked for patience: half as many are tried.

        Args:
            cuts: ``cuts`` when the batch was sent. What was sent before the last cut says nothing of what is left
                since, so that batches that are refused together cut once.
        """
        if cuts < self.cuts:
            return self
        return replace(self, now=max(self.now / 2, 1.0), cuts=self.cuts + 1)


@dataclass(frozen=True, slots=True)
class Budget:
    """
    How long the batches of an operation may still wait because they were asked to.

    Attributes:
        left: Seconds.
        until: When the last wait ends; batches that wait at the same time spend that time once.
    """

    left: float
    until: float = 0.0

    def after_wait(self, now: float, seconds: float) -> Self | None:
        """What is left once a wait of *seconds* from *now* on is spent; None when that is too long."""
        spent = max(now + seconds - max(now, self.until), 0.0)
        if spent > self.left:
            return None
        return replace(self, left=self.left - spent, until=max(self.until, now + seconds))


@dataclass(slots=True)
class Slot:
    """
    One batch in flight.

    Attributes:
        cuts: How often the limit was halved when it was sent.
        was_refused: Whether the platform asked for patience; set by who sent it, as is ``was_taken``.
        was_taken: Whether all of it was answered.
    """

    cuts: int
    was_refused: bool = False
    was_taken: bool = False


class Throttle:
    """Lets batches pass, as many at a time as the limit says."""

    def __init__(self, most: int) -> None:
        self._limit = Limit.of(most)
        self._in_flight = 0
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[Slot]:
        """Wait for a place; the batch is in flight until the block is left."""
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
