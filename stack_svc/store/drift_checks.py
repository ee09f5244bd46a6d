"""The last drift detection of each stack, as stored."""

from dataclasses import dataclass
from typing import Protocol

from services.core.drift import DriftCounts


@dataclass(frozen=True, slots=True)
class DriftCheck:
    """
    The result of the last drift detection of a whole stack.

    Attributes:
        time: When it ended, in microseconds since 1970.
        generation: Generation of the stack at that time.
        counts: Numbers of resources by drift status.
    """

    time: int
    generation: int
    counts: DriftCounts


class DriftChecksReading(Protocol):
    """Read access to the last drift detections."""

    def find(self, stack: str) -> DriftCheck | None:
        """Read the last drift detection of a stack; None: there was none."""


class DriftChecks(DriftChecksReading, Protocol):
    """Read and write access to the last drift detections; they are removed with their stacks."""

    def put(self, stack: str, drift_check: DriftCheck) -> None:
        """Write the last drift detection of an existing stack; it replaces the one before."""
