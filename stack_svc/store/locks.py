"""
The order within a transaction, the same in every store: lock stacks, then read the clock (docs/reference/engine.md,
"Store").
"""

from collections.abc import Callable


class LockedTooLateError(AssertionError):
    """A rule locked a stack after it read the clock: while it waited for the lock, its time may have become stale."""


class LockedClock:
    """The clock of one transaction: read once, after the last lock."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._now: int | None = None

    def before_lock(self) -> None:
        """
        Check that a lock may be taken.

        Raises:
            LockedTooLateError: The clock has been read.
        """
        if self._now is not None:
            raise LockedTooLateError("a stack was locked after the clock was read")

    def now(self) -> int:
        """Return the time; each call returns the same one."""
        if self._now is None:
            self._now = self._clock()
        return self._now
