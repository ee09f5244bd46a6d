"""One measured figure, and how figures are taken and printed."""

import statistics
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """
    One line of the table.

    Attributes:
        what: What was measured; begins with two spaces when it belongs to the line before.
        size: The size of the input; empty if it does not matter, or is that of the line before.
        value: The figure with its unit.
        goal: The goal (docs/bench.md); empty if there is none. Information, never a verdict.
    """

    what: str
    size: str
    value: str
    goal: str = ""


Seconds = float


def median_of(times: int, work: Callable[[], object]) -> Seconds:
    """The median wall time of *work*."""
    return statistics.median(_timed(work) for _ in range(times))


async def median_of_async(times: int, work: Callable[[], Awaitable[object]]) -> Seconds:
    """The median wall time of *work*."""
    taken = []
    for _ in range(times):
        started = time.perf_counter()
        await work()
        taken.append(time.perf_counter() - started)
    return statistics.median(taken)


def seconds(value: Seconds) -> str:
    """A wall time as text."""
    return f"{value * 1000:,.0f} ms" if value < 1 else f"{value:,.2f} s"


def counts(by_name: Mapping[str, int]) -> str:
    """The sum, and its parts by name."""
    parts = ", ".join(f"{count} {name}" for name, count in sorted(by_name.items()))
    return f"{sum(by_name.values())} ({parts})" if parts else "0"


def megabytes(by_name: Mapping[str, int]) -> str:
    """Bytes of each process, in MB."""
    return ", ".join(f"{name} {size / 1e6:.0f}" for name, size in sorted(by_name.items())) + " MB"


def table(figures: Sequence[Figure]) -> str:
    """The figures in columns as wide as they need to be."""
    head = Figure("WHAT", "OBJECTS", "FIGURE", "GOAL")
    rows = [(figure.what, figure.size, figure.value, figure.goal) for figure in (head, *figures)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def _timed(work: Callable[[], object]) -> Seconds:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
