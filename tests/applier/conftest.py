"""Services around a driver with scripted faults."""

from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path

import pytest

from tests.applier.world import World, world
from tests.virtual_time import pytest_asyncio_loop_factories

__all__ = ["pytest_asyncio_loop_factories"]


@pytest.fixture
async def faulty(tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path) as running:
        yield running


def some(count: int) -> list[int]:
    """The first, the middle and the last of *count* numbers from 0."""
    return sorted({0, count // 2, count - 1})


@pytest.fixture(params=[some, pytest.param(range, marks=pytest.mark.faults)], ids=["some", "each"])
def numbers(request: pytest.FixtureRequest) -> Callable[[int], Iterable[int]]:
    """Which of a number of writes or calls meet a fault, one after another: some of them, or each."""
    chosen: Callable[[int], Iterable[int]] = request.param
    return chosen
