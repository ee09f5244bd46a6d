"""
Fixtures of the stack service.

Each test of the service runs over a store that also checks the store protocol (docs/reference/engine.md, "Store"). With
``--faults`` it is repeated over a plain store, as it is in production and in the tests of other services.
"""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from services.times import Times
from stack_svc.store.store import Store
from tests.samples import rare
from tests.stack.service import Client, Clock, service_in_memory
from tests.stack.store.strict import strict


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def watch_seconds() -> float:
    """Longest time between two reads of a watcher."""
    return Times().watch


@pytest.fixture(params=[strict, rare(lambda store: store)], ids=["strict", "plain"])
async def service(
    request: pytest.FixtureRequest, tmp_path: Path, clock: Clock, watch_seconds: float
) -> AsyncIterator[Client]:
    wrapped: Callable[[Store], Store] = request.param
    async with service_in_memory(tmp_path / "stack.db", clock, wrapped, watch_seconds) as client:
        yield client
