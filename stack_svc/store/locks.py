"""The order of locks and clock within a transaction, the same in every store (S2)."""

from collections.abc import Callable


class LockedTooLateError(AssertionError):
    """A rule read the clock and then asked for a lock: what it decides from may have changed while it waited."""


class LockedClock:
    """The clock of one transaction: read once, after the last lock."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._now: int | None = None

    def before_lock(self) -> None:
        """
        Let a lock be taken.

        Raises:
            LockedTooLateError: The clock was read before.
        """
        if self._now is not None:
            raise LockedTooLateError("a stack was locked after the clock was read")

    def now(self) -> int:
        """Tell the time, the same however often it is asked."""
        if self._now is None:
            self._now = self._clock()
        return self._now
