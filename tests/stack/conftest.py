"""A stack service for each test that asks for one."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.stack.service import Client, Clock, stack_service


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def service(tmp_path: Path, clock: Clock) -> AsyncIterator[Client]:
    async with stack_service(tmp_path / "stack.db", clock) as client:
        yield client
