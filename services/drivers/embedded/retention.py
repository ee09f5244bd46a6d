"""
How long the embedded platform remembers what it needs for requests that arrive again, or late
(docs/reference/engine.md, "Sizes and retention").
"""

from collections.abc import Awaitable, Callable

from services.machine import Clock

DAY = 24 * 60 * 60 * 1_000_000
"""Microseconds for which an idempotency key, and the fence of an operation on behalf of no stack, is kept at least."""

PERIOD_SECONDS = 3600.0
"""Between two sweeps, by a clock that nobody sets and that stands still while the machine sleeps."""

MOST_ROWS = 10_000
"""Rows that one sweep removes at most; the next call goes on."""


class Retention:
    """
    Lets a platform forget what is old, beside its writes.

    Old is what was a day old at the sweep before. So nothing goes in the first hour after a start, or after a machine
    woke up: who has work to resume sends it again before.
    """

    def __init__(self, clock: Clock, steady: Callable[[], float]) -> None:
        """*clock* tells how old something is; *steady* counts the seconds between sweeps."""
        self._clock = clock
        self._steady = steady
        self._last: tuple[float, int] | None = None

    async def sweep(self, forget: Callable[[int, int], Awaitable[int]]) -> None:
        """
        Forget what is old, when it is time to.

        Args:
            forget: Removes what is from before a time, so many rows at most, and tells how many it removed.
        """
        here = (self._steady(), self._clock())
        if self._last is None:
            self._last = here
        last = self._last
        if here[0] - last[0] < PERIOD_SECONDS:
            return
        self._last = here
        if await forget(min(last[1], here[1]) - DAY, MOST_ROWS) >= MOST_ROWS:
            self._last = last
