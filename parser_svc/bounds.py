"""How much one package may ask of this process, and how much of that it has taken so far."""

import math
from collections.abc import Callable

from services.core.errors import SourceTooLarge
from services.settings import Bounds

__all__ = ["Bounds", "Usage", "stopped_clock"]


def stopped_clock() -> float:
    """Tell the same time for ever, for sources that may take any time to read."""
    return 0.0


class Usage:
    """
    What the sources of one package have taken of its bounds, all of them together; the seconds count from the start.

    Each method that takes something names the source that takes it, and raises ``SourceTooLarge`` when it is too much.
    """

    def __init__(self, bounds: Bounds | None = None, clock: Callable[[], float] = stopped_clock) -> None:
        """
        Args:
            bounds: None: the default ones.
            clock: Tells seconds since any point of time, also in threads; by default, time is not bounded.
        """
        self.bounds = bounds or Bounds()
        self._clock = clock
        self._end = clock() + self.bounds.seconds
        self._bytes = 0
        self._objects = 0
        self._nodes = 0
        self._repeated = 0

    @property
    def seconds_left(self) -> float:
        """Until the time is over; 0 when it is."""
        return max(0.0, self._end - self._clock())

    @property
    def bytes_left(self) -> int:
        """What the sources that are still to come may have of text."""
        return self.bounds.bytes - self._bytes

    def take_over(self, attempt: "Usage") -> None:
        """Count what *attempt*, a copy of this, has taken since it was made."""
        self._nodes, self._repeated = attempt._nodes, attempt._repeated

    def look_at_the_clock(self, source: str) -> None:
        """The source is still being read."""
        if self._clock() > self._end:
            raise SourceTooLarge(source, "seconds of reading", math.ceil(self.bounds.seconds))

    def take_bytes(self, source: str, count: int) -> None:
        """The source has so much text (more), in UTF-8."""
        self._bytes += count
        if self._bytes > self.bounds.bytes:
            raise SourceTooLarge(source, "bytes in all sources together", self.bounds.bytes)

    def take_objects(self, source: str, count: int) -> None:
        """The source has so many objects."""
        self._objects += count
        if self._objects > self.bounds.objects:
            raise SourceTooLarge(source, "objects in all sources together", self.bounds.objects)

    def take_nodes(self, source: str, count: int) -> None:
        """The source has so many values (more), those that aliases repeat included."""
        self._nodes += count
        if self._nodes > self.bounds.nodes:
            raise SourceTooLarge(source, "number of values, with those that aliases repeat,", self.bounds.nodes)

    def take_repeated_text(self, source: str, characters: int) -> None:
        """The aliases of the source repeat so much text; together they may repeat as much as the sources may have."""
        self._repeated += characters
        if self._repeated > self.bounds.bytes:
            raise SourceTooLarge(source, "characters repeated by aliases", self.bounds.bytes)

    def check_depth(self, source: str, depth: int) -> None:
        """The source has so many lists and mappings inside each other."""
        if depth > self.bounds.depth:
            raise SourceTooLarge(source, "nesting depth", self.bounds.depth)
