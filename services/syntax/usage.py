"""The limits of one package, and how much of them it has used."""

import math
from collections.abc import Callable

from services.core.errors import SourceTooLarge
from services.settings import Bounds


def stopped_clock() -> float:
    """Return the same time always, for sources that may take any time to read."""
    return 0.0


class Usage:
    """
    How much of its bounds the sources of one package have used together; seconds count from the creation of this.

    Each ``take_`` and ``check_`` method gets the name of the source, and raises ``SourceTooLarge`` beyond the bound.
    """

    def __init__(self, bounds: Bounds | None = None, clock: Callable[[], float] = stopped_clock) -> None:
        """
        Args:
            bounds: The limits; None: the default ones.
            clock: Returns seconds since any point of time, also in threads; by default, time is not bounded.
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
        """The remaining time; 0 when it is over."""
        return max(0.0, self._end - self._clock())

    @property
    def bytes_left(self) -> int:
        """The length of text that the remaining sources may have, in bytes."""
        return self.bounds.bytes - self._bytes

    @property
    def objects_left(self) -> int:
        """The number of objects that the remaining text may have."""
        return self.bounds.objects - self._objects

    def take_over(self, attempt: "Usage") -> None:
        """Take over the counts of *attempt*, a copy of this object that has counted further."""
        self._objects, self._nodes, self._repeated = attempt._objects, attempt._nodes, attempt._repeated

    def check_time(self, source: str) -> None:
        """Check that the time for reading is not over."""
        if self._clock() > self._end:
            raise SourceTooLarge(source, "seconds of reading", math.ceil(self.bounds.seconds))

    def take_bytes(self, source: str, count: int) -> None:
        """Count text of the source, in bytes of UTF-8."""
        self._bytes += count
        if self._bytes > self.bounds.bytes:
            raise SourceTooLarge(source, "bytes in all sources together", self.bounds.bytes)

    def take_objects(self, source: str, count: int) -> None:
        """Count objects of the source: documents of YAML, also those without content, and elements of JSON."""
        self._objects += count
        if self._objects > self.bounds.objects:
            raise SourceTooLarge(source, "objects in all sources together", self.bounds.objects)

    def take_nodes(self, source: str, count: int) -> None:
        """Count values of the source, including repetitions by aliases."""
        self._nodes += count
        if self._nodes > self.bounds.nodes:
            raise SourceTooLarge(source, "number of values, including repetitions by aliases,", self.bounds.nodes)

    def take_repeated_text(self, source: str, characters: int) -> None:
        """Count text that aliases of the source repeat; its limit is the limit on the text of all sources."""
        self._repeated += characters
        if self._repeated > self.bounds.bytes:
            raise SourceTooLarge(source, "characters repeated by aliases", self.bounds.bytes)

    def check_depth(self, source: str, depth: int) -> None:
        """Check how many lists and mappings are nested in each other."""
        if depth > self.bounds.depth:
            raise SourceTooLarge(source, "nesting depth", self.bounds.depth)
