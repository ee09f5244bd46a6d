"""Services around a driver with scripted faults."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.applier.world import World, world
from tests.virtual_time import pytest_asyncio_loop_factories

__all__ = ["pytest_asyncio_loop_factories"]


@pytest.fixture
async def faulty(tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path) as running:
        yield running
