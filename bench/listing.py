"""Measures how long a page of many stacks takes, read directly from the store."""

import asyncio
import statistics
import tempfile
import time
from pathlib import Path

from bench.figures import Figure, Seconds, seconds
from services.core.model import StackRecord, Target
from services.system import machine_clock
from stack_svc.sqlite.store import SqliteStore
from stack_svc.store.stacks import START, Stack, StackFilter, StackPlace, State
from stack_svc.store.store import Store

PAGE = 100
"""The default size of a page (stack.proto)."""


TIMES = 3
"""How often a page is read; the median counts."""


def listing(count: int) -> list[Figure]:
    """Read all pages of *count* stacks, unfiltered and with filters, and report the slowest page of each list."""
    filters = {
        "list of stacks, the slowest page": StackFilter(),
        "  of one target": StackFilter(Target(org="org-1")),
        "  with names like *7*9*": StackFilter(glob="*7*9*"),
        "  with names like none": StackFilter(glob="none*x"),
    }
    with tempfile.TemporaryDirectory(prefix="pkger-bench-") as folder:
        slowest = asyncio.run(_slowest(Path(folder, "stack.db"), count, list(filters.values())))
    sizes = [f"{count:,} stacks", *[""] * (len(filters) - 1)]
    return [
        Figure(what, size, seconds(taken), "< 50 ms") for what, size, taken in zip(filters, sizes, slowest, strict=True)
    ]


async def _slowest(path: Path, count: int, filters: list[StackFilter]) -> list[Seconds]:
    """Seconds that the slowest page of each of *filters* takes."""
    store = SqliteStore(path, machine_clock)
    stacks = [
        Stack(
            StackRecord(f"{number:016x}", Target(org=f"org-{number % 3}"), f"stack-{number:06}", 0),
            "",
            State.ACTIVE,
            1,
            1,
        )
        for number in range(count)
    ]
    await store.write(lambda tx: [tx.stacks.insert(stack) for stack in stacks])
    durations = [await _pages(store, criteria) for criteria in filters]
    await store.close()
    return durations


async def _pages(store: Store, criteria: StackFilter) -> Seconds:
    """Seconds that the slowest page of the stacks that match *criteria* takes."""
    place: StackPlace = START
    slowest = 0.0
    while True:
        taken = []
        for _ in range(TIMES):
            started = time.perf_counter()
            page = await store.read(lambda tx, after=place: tx.stacks.page(criteria, after, PAGE + 1))  # type: ignore[misc]
            taken.append(time.perf_counter() - started)
        slowest = max(slowest, statistics.median(taken))
        if len(page) <= PAGE:
            return slowest
        place = (page[PAGE - 1].record.name, page[PAGE - 1].record.id)
