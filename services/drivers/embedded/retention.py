"""
How long the embedded platform retains the rows that repeated or late requests need (docs/reference/engine.md, "Sizes
and retention").
"""

from collections.abc import Awaitable, Callable

from services.system import Clock

DAY = 24 * 60 * 60 * 1_000_000
"""Microseconds for which an idempotency key, or the fence of an operation on behalf of no stack, is kept at least."""

PERIOD_SECONDS = 3600.0
"""Between two sweeps, by a monotonic clock that stops while the machine sleeps."""

MOST_ROWS = 10_000
"""Most rows of each table that one sweep removes; the next call removes more."""


class Retention:
    """
    Removes old rows of a platform, beside its writes.

    A row is old if it was a day old at the previous sweep. So nothing is removed in the first hour after a start or
    after the machine wakes up; an interrupted operation has that hour to resume and send its requests again.
    """

    def __init__(self, clock: Clock, steady: Callable[[], float]) -> None:
        """*clock* is the time of day, for the age of rows; *steady* is monotonic, for the time between sweeps."""
        self._clock = clock
        self._steady = steady
        self._last: tuple[float, int] | None = None

    async def sweep(self, forget: Callable[[int, int], Awaitable[int]]) -> None:
        """
        Remove old rows, if a sweep is due.

        Args:
            forget: Removes rows from before a time, at most a number of them; returns how many it removed.
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
