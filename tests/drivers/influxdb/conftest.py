"""A stand-in for an InfluxDB server, and all services with it as their platform."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.cluster import Cluster
from tests.drivers.client import ORG, DriverClient
from tests.drivers.influxdb.running import influxdb_client, organization, services_on
from tests.influx.server import Influx, influx


@pytest.fixture
async def server() -> AsyncIterator[Influx]:
    async with influx() as running:
        yield running


@pytest.fixture
async def client(server: Influx, tmp_path: Path) -> AsyncIterator[DriverClient]:
    """The driver of the stand-in, which has the organization of the suite."""
    await organization(server.url, server.token, ORG)
    async with influxdb_client(server.url, server.token, {}, tmp_path) as driver:
        server.records.clear()
        yield driver


@pytest.fixture
async def on_influxdb(server: Influx, tmp_path: Path) -> AsyncIterator[Cluster]:
    """All services; their platform is the stand-in."""
    await organization(server.url, server.token, "default")
    async with services_on(server, server.token, tmp_path) as running:
        yield running
