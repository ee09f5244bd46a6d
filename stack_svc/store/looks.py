"""The last looks at stacks, as the store keeps them."""

from dataclasses import dataclass
from typing import Protocol

from services.core.drift import DriftCounts


@dataclass(frozen=True, slots=True)
class Look:
    """
    What the last look at a whole stack found.

    Attributes:
        time: When it ended, in microseconds since 1970.
        generation: Generation of the stack that it saw.
        counts: How many resources were how.
    """

    time: int
    generation: int
    counts: DriftCounts


class LooksReading(Protocol):
    """Last looks, read."""

    def find(self, stack: str) -> Look | None:
        """Read the last look at a stack; None: there was none."""


class Looks(LooksReading, Protocol):
    """Last looks, read and written; they go with their stacks."""

    def put(self, stack: str, look: Look) -> None:
        """Write the last look at a stack that exists, in the place of the one before."""
