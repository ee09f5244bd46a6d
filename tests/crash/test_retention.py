"""
A store stays below the bound of its settings after any number of applies (docs/reference/engine.md, "Cases", case 15).
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from services.core.errors import ServiceUnavailable
from services.settings import STACK_DATABASE, keep_variable
from tests.applier.world import SUCCEEDED, Case
from tests.apply.packages import an_object, text
from tests.crash.world import Crashing, crashing

pytestmark = pytest.mark.slow

MIB = 1024 * 1024
KEPT = 64 * MIB

RECORD = 32 * MIB
"""Allowance for data outside the bound: the records of the stacks, one with 20,000 resources, and the database log."""

A_MINUTE = 64 * MIB
"""Allowance for the growth between two sweeps."""

SWEEP_SECONDS = 90


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[Crashing]:
    async with crashing(tmp_path, lease=30) as running:
        await running.processes.kill("stack")
        await running.processes.start(
            "stack", {keep_variable("bytes"): str(KEPT), keep_variable("operations"): "1000000"}
        )
        yield running


def size_of(folder: Path) -> int:
    """Bytes of the store, with its write-ahead log."""
    return sum(path.stat().st_size for path in folder.glob(f"{STACK_DATABASE}*"))


def small(version: int) -> str:
    return text(
        an_object("Label", "red", "red", description=str(version)),
        an_object("Dashboard", "cpu", "cpu", ["red"], description=str(version)),
    )


def large(version: int, objects: int) -> str:
    return text(*(an_object("Dashboard", f"d{n}", f"board {n}", description=str(version)) for n in range(objects)))


async def applied(case: Case, package: str, request_id: str) -> None:
    while True:
        try:
            last = [event async for event in case.events(package, request_id=request_id)][-1]
        except ServiceUnavailable:
            # A large apply may outlast one call; the retry follows the operation that the first call began.
            continue
        assert last.finished.state == SUCCEEDED, last.finished.cause
        return


@pytest.mark.faults
@pytest.mark.timeout(3600)
async def test_a_store_stays_below_its_bound(world: Crashing, tmp_path: Path) -> None:
    """5,000 applies, 20 of them of 20,000 objects."""
    await world.applier()
    cases = [Case(world.services, None, f"org-{number}", "s") for number in range(4)]  # type: ignore[arg-type]
    sizes = []

    async def apply_small(case: Case, applies: int) -> None:
        for version in range(applies):
            await applied(case, small(version), f"{case.org}/{version}")
            sizes.append(size_of(tmp_path))

    async def apply_large(case: Case, applies: int, objects: int) -> None:
        for version in range(applies):
            await applied(case, large(version, objects), f"{case.org}/{version}")

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(apply_large(cases[0], 20, 20_000))
        for case in cases[1:]:
            tasks.create_task(apply_small(case, 1_660))
    print(f"largest {max(sizes) / MIB:.0f} MiB, at the end {size_of(tmp_path) / MIB:.0f} MiB")
    assert max(sizes) < KEPT + RECORD + A_MINUTE

    for _ in range(SWEEP_SECONDS):
        if size_of(tmp_path) < KEPT + RECORD:
            break
        # A sweep is no event that could be awaited.
        await asyncio.sleep(1.0)
    print(f"swept {size_of(tmp_path) / MIB:.0f} MiB")
    assert size_of(tmp_path) < KEPT + RECORD
