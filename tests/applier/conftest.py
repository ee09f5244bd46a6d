"""Services around a driver with scripted faults."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.applier.world import World, world


@pytest.fixture
async def faulty(tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path) as running:
        yield running
