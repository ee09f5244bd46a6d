"""The services that the clients of docs/clients.md call."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.cluster import Cluster
from tests.ports import Home, home_at_ports


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[Home]:
    """The services of a home, at ports of this machine."""
    async with home_at_ports(tmp_path) as running:
        yield running


@pytest.fixture
def services(home: Home) -> Cluster:
    """The same services, at their sockets."""
    return home.services
