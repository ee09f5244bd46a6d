"""Exports with a token that may not read: never an empty package without a word."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.cli.command import environment, pkger
from tests.drivers.client import create
from tests.drivers.influxdb.running import influxdb_client, organization, services_on
from tests.drivers.influxdb.samples import influxdb_sample as sample
from tests.drivers.influxdb.test_keeping import asked
from tests.influx.server import Influx

READER = ("labels", "buckets", "checks", "secrets")


@asynccontextmanager
async def exporter(server: Influx, folder: Path, readable: Sequence[str]) -> AsyncIterator[Mapping[str, str]]:
    """The environment of services whose token may read these types in the default organization, and nothing else."""
    [org] = [each for each in (await asked(server, "GET", "orgs"))["orgs"] if each["name"] == "default"]
    permissions = [{"action": "read", "resource": {"type": "orgs", "id": org["id"]}}]
    permissions += [{"action": "read", "resource": {"type": type_, "orgID": org["id"]}} for type_ in readable]
    made = await asked(server, "POST", "authorizations", {"orgID": org["id"], "permissions": permissions})
    async with services_on(server, made["token"], folder) as services:
        yield environment(folder, services.addresses)


async def fill(server: Influx, folder: Path) -> None:
    """Give the default organization a bucket and a task."""
    folder.mkdir()
    async with influxdb_client(server.url, server.token, {}, folder) as client:
        await client.mutate(*(create(kind, sample(kind, "it", "")) for kind in ("Bucket", "Task")), org="default")


@pytest.fixture(autouse=True)
async def default_org(server: Influx) -> str:
    return await organization(server.url, server.token, "default")


@pytest.mark.parametrize("selected", [["--all"], ["--kind", "Bucket"]])
async def test_an_export_with_a_blind_token_is_an_error_that_names_the_rights(
    server: Influx, tmp_path: Path, selected: Sequence[str], default_org: str
) -> None:
    await fill(server, tmp_path / "filled")
    async with exporter(server, tmp_path, []) as env:
        ended = await pkger("export", *selected, env=env)
    assert (ended.code, ended.out) == (1, "")
    assert "nothing of organization 'default' can be read" in ended.err
    assert f"the token may not read the secrets: 401: read:orgs/{default_org}/secrets is unauthorized" in ended.err
    assert "there are none, or the token may not read them (buckets, checks, dashboards, labels, " in ended.err
    assert "does not answer" not in ended.err


async def test_an_export_of_nothing_with_the_rights_to_read_is_a_warning(server: Influx, tmp_path: Path) -> None:
    async with exporter(server, tmp_path, READER) as env:
        ended = await pkger("export", "--all", env=env)
    assert ended.code == 0
    assert "warning: nothing is selected in organization 'default': the server shows none" in ended.err


@pytest.mark.parametrize("selected", [["--all"], ["--kind", "Task", "--kind", "Telegraf"]])
async def test_an_export_of_something_has_no_warning(server: Influx, tmp_path: Path, selected: Sequence[str]) -> None:
    await fill(server, tmp_path / "filled")
    async with exporter(server, tmp_path, ["tasks"]) as env:
        ended = await pkger("export", *selected, env=env)
    assert (ended.code, ended.err, ended.out.count("kind: ")) == (0, "", 1)


async def test_a_token_that_may_not_read_the_organization_is_told_so(server: Influx, tmp_path: Path) -> None:
    other = await asked(
        server,
        "POST",
        "authorizations",
        {
            "orgID": server.org,
            "permissions": [{"action": "read", "resource": {"type": "buckets", "orgID": server.org}}],
        },
    )
    async with services_on(server, other["token"], tmp_path) as services:
        ended = await pkger("export", "--all", env=environment(tmp_path, services.addresses))
    assert ended.code == 1
    assert "there is none with exactly that name, or the token may not read it" in ended.err
