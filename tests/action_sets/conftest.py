"""Tests run on virtual time: leases end and retries come without waiting."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from applier_svc import failpoints
from tests.action_sets.deaths import Deaths
from tests.action_sets.world import World, world
from tests.virtual_time import pytest_asyncio_loop_factories

__all__ = ["pytest_asyncio_loop_factories"]


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path) as running:
        yield running


@pytest.fixture
def deaths() -> Iterator[Deaths]:
    hook = Deaths()
    failpoints.install(hook)
    yield hook
    failpoints.install(failpoints.deadly(""))
