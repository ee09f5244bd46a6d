"""Clients of services with an empty store."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.applier.world import world
from tests.cluster import cluster
from tests.package_stacks.client import Client
from tests.transport import InMemory


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    """A client of services of its own, as repositories are those of all stacks."""
    async with cluster(tmp_path / "data", transport=InMemory()) as services:
        yield Client(services.in_org("team"), tmp_path)


@pytest.fixture
async def faulty(tmp_path: Path) -> AsyncIterator[Client]:
    """A client of services whose driver has scripted faults."""
    async with world(tmp_path / "data") as running:
        yield Client(running.services.in_org("team"), tmp_path, driver=running.driver)
