"""Real packages on the stand-in: applied, applied again and exported without a write, removed again."""

from pathlib import Path

import pytest
from pkger.model.v1 import operation_pb2

from tests.cluster import Cluster
from tests.conftest import ROOT
from tests.influx.server import Influx

FOLDER = ROOT.parent / "shared" / "golden" / "parse" / "packages"

SUCCEEDED = operation_pb2.OPERATION_STATE_SUCCEEDED


@pytest.mark.skipif(not FOLDER.exists(), reason="the shared packages are not beside this checkout")
@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.yml")), ids=lambda path: path.stem)
async def test_a_real_package_lives_its_whole_life(path: Path, server: Influx, on_influxdb: Cluster) -> None:
    package = path.read_text()
    applied = await on_influxdb.apply(package, stack="s")
    assert applied.state == SUCCEEDED, applied.cause
    assert len(await on_influxdb.resources()) == applied.counts.creates > 0

    server.records.clear()
    assert (await on_influxdb.apply(package, stack="s")).no_change
    export = await on_influxdb.export(stack="s")
    assert (await on_influxdb.apply(export.text, stack="s")).no_change
    assert server.records.count("write") == 0

    assert (await on_influxdb.uninstall("s")).state == SUCCEEDED
    assert await on_influxdb.resources() == []
