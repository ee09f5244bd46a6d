"""A gateway in front of all services, and a client of it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.cluster import Cluster
from tests.gateway.gateway import client, gateway, settings
from tests.gateway.transcoding.api import Api


@pytest.fixture
async def api(services: Cluster, tmp_path: Path) -> AsyncIterator[Api]:
    """A client of ``/api/pkger/v1``."""
    async with gateway(settings(tmp_path), services) as address, client(address) as session:
        yield Api(session, address)
