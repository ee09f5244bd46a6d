"""Bounds the text of the packages that a parser reads at the same time; what is beyond the bound waits, in order."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

SMALLEST_SHARE = 1 / 16
"""
The share of the bound that a package takes at least: aliases and environment values make more of its text, so their
number is bounded, too.
"""


class Admission:
    """
    Admits work in the order of its arrival while all admitted work together has at most a number of bytes.

    Work that waits has nothing that other work waits for, and admitted work waits for nothing: so all work is admitted
    in the end.
    """

    def __init__(self, most: int) -> None:
        """*most* is the number of bytes that all admitted work may have together."""
        self._most, self._taken = most, 0
        # The bytes of those that wait, in order.
        self._waiting: dict[asyncio.Future[None], int] = {}

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self._waiting)

    async def run(self, size: int, work: Callable[[], T]) -> T:
        """
        Run *work*, of *size* bytes, in a thread, as soon as it is admitted.

        A caller that is cancelled while it waits gives its place up. Once work runs, it counts until its end, whether
        its caller is cancelled or not, as no thread can be stopped.

        Returns:
            The result of *work*, whose errors are raised.
        """
        # Work beyond the bound is admitted alone.
        share = min(max(size, int(self._most * SMALLEST_SHARE)), self._most)
        await self._take(share)
        running = asyncio.create_task(asyncio.to_thread(work))
        running.add_done_callback(lambda _: self._release(share))
        return await asyncio.shield(running)

    async def _take(self, share: int) -> None:
        if not self._waiting and self._taken + share <= self._most:
            self._taken += share
            return
        place = asyncio.get_running_loop().create_future()
        self._waiting[place] = share
        try:
            await place
        except asyncio.CancelledError:
            if place.cancelled():
                self._waiting.pop(place, None)
                self._admit()
            else:
                # It was admitted and cancelled in the same turn of the loop.
                self._release(share)
            raise

    def _release(self, share: int) -> None:
        self._taken -= share
        self._admit()

    def _admit(self) -> None:
        while self._waiting:
            place, share = next(iter(self._waiting.items()))
            if self._taken + share > self._most:
                return
            del self._waiting[place]
            if not place.done():
                self._taken += share
                place.set_result(None)
