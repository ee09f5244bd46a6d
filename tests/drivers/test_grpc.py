"""Drivers over gRPC, as services call them; the other tests of drivers call them in memory."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from pkger.model.v1.check_pb2 import CHECK_VERDICT_WRONG

from services.core.errors import KindUnsupported, OrgUnknown, TokenStale
from services.drivers.embedded.kinds import EMBEDDED
from services.drivers.registry import opened
from services.platforms import Platform
from tests.drivers.client import ORG, DriverClient, create, put_secret, served_client_of, wanted
from tests.drivers.platforms import EMBEDDED_ROW, Running, driver_client, sample
from tests.influx.orgs import add_org
from tests.influx.server import influx


@asynccontextmanager
async def _embedded(folder: Path) -> AsyncIterator[DriverClient]:
    async with driver_client(EMBEDDED_ROW, folder) as client:
        yield client


@asynccontextmanager
async def _influxdb(folder: Path) -> AsyncIterator[DriverClient]:
    (folder / "token").write_text("operator")
    async with influx(token="operator") as server:
        add_org(server.state, ORG)
        row = Platform("under-test", "influxdb", "", {"url": server.url, "token_file": "token"})
        async with opened(row, folder) as driver, served_client_of(driver) as client:
            yield client


@pytest.mark.parametrize("running", [_embedded, _influxdb])
async def test_every_call_is_served(running: Running, tmp_path: Path) -> None:
    label = create("Label", {"name": "red", "description": "", "color": "#326BBA"}, "red")
    async with running(tmp_path) as driver:
        assert "Label" in (await driver.describe()).kinds
        [made] = await driver.made(label)
        assert await driver.listing("Label") == [made]
        assert await driver.prepared(wanted(label)) == [(label.create.spec_json, None)]
        await driver.mutate(put_secret("k", "v"))
        assert await driver.secret_keys() == ["k"]
        assert ORG in dict(await driver.orgs()).values()
        assert CHECK_VERDICT_WRONG not in {each.verdict for each in (await driver.check(ORG)).findings}
        with pytest.raises(KindUnsupported) as refused:
            await driver.listing("Spaceship")
        assert refused.value.metadata["kind"] == "Spaceship"


async def test_an_error_has_its_metadata(tmp_path: Path) -> None:
    async with _embedded(tmp_path) as driver:
        await driver.mutate(fence=("stack", 7))
        with pytest.raises(TokenStale) as stale:
            await driver.mutate(fence=("stack", 6))
        assert stale.value.metadata == {"scope": "stack", "token": "6", "newest": "7"}
    (tmp_path / "influxdb").mkdir()
    async with _influxdb(tmp_path / "influxdb") as driver:
        with pytest.raises(OrgUnknown, match="nowhere"):
            await driver.listing("Label", org="nowhere")


async def test_the_largest_batch_and_a_listing_in_chunks_pass(tmp_path: Path) -> None:
    size = EMBEDDED.max_batch_size
    async with _embedded(tmp_path) as driver:
        await driver.made(*(create("Task", sample("Task", str(n), "☂" * 100), str(n)) for n in range(size)))
        chunks = await driver.chunks("Task")
        assert len(chunks) > 1
        assert sum(len(chunk.resources) for chunk in chunks) == size


async def test_large_specs_come_in_small_chunks(tmp_path: Path) -> None:
    """A chunk beyond the message limit could not be sent, so the kind could never be listed again."""
    async with _embedded(tmp_path) as driver:
        for n in range(3):
            await driver.made(
                *(create("Dashboard", {"name": "d", "text": "x" * 3_000_000}, f"{n} {m}") for m in range(4))
            )
        chunks = await driver.chunks("Dashboard")
        assert [len(chunk.resources) for chunk in chunks] == [1] * 12
