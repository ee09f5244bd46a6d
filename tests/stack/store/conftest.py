"""The stores that the conformance suites test."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from stack_svc.sqlite.store import SqliteStore
from stack_svc.store.store import Store
from tests.databases import copy_database
from tests.stack.service import Clock


@asynccontextmanager
async def sqlite(path: Path, clock: Clock) -> AsyncIterator[Store]:
    copy_database("stack", path / "stack.db")
    store = SqliteStore(path / "stack.db", clock)
    yield store
    await store.close()


@pytest.fixture(params=[sqlite])
def opened(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Callable[[], Any]:
    """Opens a store; each call opens another one over the same data."""
    return lambda: request.param(tmp_path, clock)


@pytest.fixture
async def store(opened: Callable[[], Any]) -> AsyncIterator[Store]:
    async with opened() as found:
        yield found
