"""How long an operation waits for what, in one value."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from tenacity import RetryCallState

from services.machine import MachineIds

_MOST_DOUBLINGS = 30
"""More would make any wait the longest one, and at last a number that is too large."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """
    All times in seconds.

    Attributes:
        attempts: How often a batch without an answer is sent: with the waits below, about 10 s of a driver being
            restarted.
        first_wait: Longest wait before the second attempt; doubles with each (full jitter).
        longest_wait: What it doubles up to.
        mutate: Deadline of one batch. The lease has to outlive it (docs/reference/engine.md, "Leases and fencing").
        settle: How long after it was sent a write may still take effect. Nobody concludes earlier that it did not
            (docs/reference/engine.md, "Recovery"), unless the platform fences and was shown a raised token.
        lease: How long a lease lasts without renewal; it is renewed every third of that (docs/reference/engine.md,
            "Leases and fencing").
        margin: How much longer than a batch a lease has to last, for clocks that do not run alike.
        stubborn: How long a driver that does not answer is shown a token, asked what became of what was sent, and to
            take it back, before somebody has to look; each of the three.
        busy: How long the steps of an operation may wait in all because the platform asks for patience; after that its
            asking is a failure like any other. An undo may wait for ``stubborn``.
        recovery: How often an applier looks for operations that another one left behind.
        watch: How often a watcher looks for events of an operation that another applier runs.
        jitter: Draws which part of a wait between attempts is waited, from 0 to 1.
    """

    attempts: int = 6
    first_wait: float = 0.2
    longest_wait: float = 4.0
    mutate: float = 10.0
    settle: float = 10.0
    lease: float = 30.0
    margin: float = 2.0
    resolution: float = 600.0
    throttled: float = 300.0
    recovery: float = 5.0
    watch: float = 0.5
    jitter: Callable[[], float] = MachineIds().fraction

    @classmethod
    def of(cls, lease: int) -> Self:
        """The usual timeouts, with leases of so many seconds; what has to fit into one is shorter for short ones."""
        usual = cls()
        return cls(
            mutate=min(usual.mutate, lease / 3),
            settle=min(usual.settle, lease / 3),
            lease=lease,
            margin=min(usual.margin, lease / 15),
            recovery=min(usual.recovery, lease / 6),
        )

    def between_attempts(self, state: RetryCallState) -> float:
        """How long to wait before the next attempt."""
        doublings = min(state.attempt_number - 1, _MOST_DOUBLINGS)
        return min(self.first_wait * 2.0**doublings, self.longest_wait) * self.jitter()
