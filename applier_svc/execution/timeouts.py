"""All timeouts of an operation, in one value."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from tenacity import RetryCallState

from services.system import MachineIds

_MOST_DOUBLINGS = 30
"""Keeps the power in the range of a float; any wait is the longest one well before that."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """
    All times are in seconds.

    Attributes:
        attempts: How often a batch without a response is sent; with the waits below, about 10 s: enough for a restart
            of the driver.
        first_wait: Longest wait before the second attempt; doubles with each attempt (full jitter).
        longest_wait: Upper limit of the doubling.
        mutate: Timeout of one batch. The lease has to outlive it (docs/reference/engine.md, "Leases and fencing").
        settle: How long after it was sent a write may still take effect. It counts as without effect only after that
            (docs/reference/engine.md, "Recovery"), unless the platform fences and was shown a raised token.
        lease: How long a lease lasts without renewal; it is renewed every third of that (docs/reference/engine.md,
            "Leases and fencing").
        margin: How much longer than a batch a lease has to last, as clocks differ.
        resolution: How long each of these is retried if the driver does not answer, before the operation is blocked:
            showing a token, lookups, undos.
        throttled: How long the steps of an operation may wait in all because the platform throttles them; after that,
            being throttled is a failure. Undos may wait for ``resolution``.
        recovery: Interval in which an applier lists operations that other appliers abandoned.
        watch: Interval in which a watcher reads the events of an operation that another applier runs.
        jitter: Draws the factor, from 0 to 1, by which a wait between two attempts is multiplied.
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
        """The defaults with leases of *lease* seconds; timeouts that have to fit into a lease shrink with it."""
        usual = cls()
        return cls(
            mutate=min(usual.mutate, lease / 3),
            settle=min(usual.settle, lease / 3),
            lease=lease,
            margin=min(usual.margin, lease / 15),
            recovery=min(usual.recovery, lease / 6),
        )

    def between_attempts(self, state: RetryCallState) -> float:
        """Seconds to wait before the next attempt."""
        doublings = min(state.attempt_number - 1, _MOST_DOUBLINGS)
        return min(self.first_wait * 2.0**doublings, self.longest_wait) * self.jitter()
