"""The platforms of the conformance suite: their traits, and those that run elsewhere."""

import os
import re
import sys
from pathlib import Path

import pytest

from services.drivers.embedded.kinds import EMBEDDED
from tests.compose.processes import run
from tests.conftest import ROOT
from tests.drivers.client import create, put_secret
from tests.drivers.influxdb.running import VARIABLES, driver_of, real_server
from tests.drivers.platforms import PlatformUnderTest, run_here, sample
from tests.influx.server import Influx, influx

PREFIX = "suite"


def of_environment(server: Influx) -> dict[str, str]:
    """The environment that names *server* as the real server of the suite."""
    return dict(zip(VARIABLES, (server.url, server.token, PREFIX), strict=True))


def test_a_driver_is_asked_for_traits_that_its_row_lacks() -> None:
    platform = PlatformUnderTest(run_here("embedded"), sample, missing_id="0" * 16, immutable_change={})
    assert platform.traits == EMBEDDED


async def test_a_real_server_gets_organizations_that_are_removed_with_their_resources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with influx() as server:
        before = dict(server.state.orgs)
        for name, value in of_environment(server).items():
            monkeypatch.setenv(name, value)
        async with driver_of(real_server, tmp_path) as client:
            await client.made(create("Label", {"name": "red", "description": "", "color": "#326BBA"}))
            await client.mutate(put_secret("k", "v"))
            assert len(server.state.orgs) > len(before)
            assert all(org["name"].startswith(PREFIX) for id_, org in server.state.orgs.items() if id_ not in before)
        assert server.state.orgs == before
        assert not server.state.labels
        assert not any(server.state.secrets.values())


@pytest.mark.slow
async def test_the_suite_runs_on_the_server_that_the_environment_names() -> None:
    async with influx() as server:
        command = [sys.executable, "-m", "pytest", "tests/drivers", "-k", "real-influxdb-Label", "-q"]
        status, printed, _ = await run([*command, "-p", "no:cacheprovider"], os.environ | of_environment(server), ROOT)
        assert status == 0, printed
        counted = re.search(r"(\d+) passed", printed)
        assert counted
        assert int(counted[1]) > 20
        assert server.records.count("write") > 100
