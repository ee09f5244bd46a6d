"""``pkger platforms check``: its output as text and as data, and its exit status."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from services.platforms import Platform
from tests import older_platform
from tests.cli.command import environment, pkger
from tests.cluster import Cluster, cluster
from tests.drivers.platforms import driver_client
from tests.influx.server import Influx, influx


@pytest.fixture
async def server() -> AsyncIterator[Influx]:
    async with influx() as running:
        yield running


@asynccontextmanager
async def services_with(server: Influx, token: str, folder: Path) -> AsyncIterator[Mapping[str, str]]:
    """An environment with services whose platform ``eu`` is *server*, with a *token*."""
    (folder / "token").write_text(token)
    platform = Platform("eu", "influxdb", "", {"url": server.url, "token_file": "token"})
    async with driver_client(platform, folder) as driver:
        rows = f"embedded: {{driver: embedded}}\neu: {{address: '{driver.address}'}}\n"
        (folder / "platforms.yml").write_text(rows)
        async with cluster(folder) as services:
            yield environment(folder, services.addresses)


@pytest.fixture
async def env(server: Influx, tmp_path: Path) -> AsyncIterator[Mapping[str, str]]:
    async with services_with(server, server.token, tmp_path) as known:
        yield known


async def test_all_platforms_are_checked(server: Influx, env: Mapping[str, str]) -> None:
    end = await pkger("platforms", "check", env=env)
    assert (end.code, end.err) == (0, "")
    assert (
        end.out
        == f"""\
Platform embedded: embedded 1
  ok       platform  its database can be read
Platform eu: influxdb v2.9.1
  ok       platform      {server.url} answers
  ok       credential    the server knows the token, and it is active
  ok       organization  the token can read 1: main
"""
    )


async def test_a_wrong_token_ends_with_1_and_is_not_shown(server: Influx, tmp_path: Path) -> None:
    async with services_with(server, "canary-8a1f", tmp_path) as env:
        end = await pkger("platforms", "check", "eu", "--org", "main", env=env)
    assert (end.code, end.out) == (
        1,
        f"""\
Platform eu: influxdb v2.9.1
  ok       platform    {server.url} answers
  wrong    credential  the token is unknown or inactive: 401: unauthorized access
""",
    )
    assert "canary" not in end.out + end.err


@pytest.mark.slow
async def test_a_wrong_token_is_not_logged(server: Influx, short_path: Path) -> None:
    """By the services that run for one command."""
    row = f"eu: {{driver: influxdb, address: '127.0.0.1:50060', options: {{url: '{server.url}', token_file: token}}}}"
    (short_path / "platforms.yml").write_text(row)
    (short_path / "token").write_text("canary-8a1f")
    end = await pkger("platforms", "check", "eu", "--org", "main", env=environment(short_path))
    assert (end.code, "the token is unknown or inactive" in end.out) == (1, True)
    logs = "".join(path.read_text() for path in (short_path / "logs").iterdir())
    assert "canary" not in end.out + end.err + logs


async def test_no_stack_is_created_for_a_missing_organization(env: Mapping[str, str]) -> None:
    end = await pkger("stacks", "init", "s", "--target", "eu/nowhere", env=env)
    assert (end.code, end.out) == (1, "")
    assert end.err.startswith("Error: organization 'nowhere' of platform 'eu': there is none with exactly that name")
    assert (await pkger("stacks", "init", "s", "--target", "eu/main", env=env)).code == 0
    listed = await pkger("stacks", "list", "-o", "json", env=env)
    assert [stack["target"]["org"] for stack in json.loads(listed.out)] == ["main"]


async def test_programs_read_findings(env: Mapping[str, str]) -> None:
    end = await pkger("platforms", "check", "eu", "--org", "nowhere", "-o", "json", env=env)
    assert end.code == 1
    [found] = json.loads(end.out)
    assert found["name"] == "eu"
    checked = found["check"]
    assert (checked["platform"], checked["version"]) == ("influxdb", "v2.9.1")
    [org] = checked["orgs"]
    assert (org["id"], org["name"], len(org["native_id"])) == ("main", "main", 16)
    assert checked["findings"][-1] == {
        "aspect": "CHECK_ASPECT_ORG",
        "verdict": "CHECK_VERDICT_WRONG",
        "subject": "nowhere",
        "message": "there is none with exactly that name, or the token may not read it",
    }


async def test_a_target_names_platform_and_organization(env: Mapping[str, str]) -> None:
    end = await pkger("platforms", "check", "--target", "eu/main", env=env)
    assert end.code == 0
    assert "  ok       read secrets " in end.out
    assert "  unknown  write " in end.out


async def test_a_driver_without_checks_is_no_error(tmp_path: Path) -> None:
    async with cluster(tmp_path, {"platform": older_platform.opened}) as services:
        end = await pkger(
            "platforms", "check", "embedded", "--org", "acme", env=environment(tmp_path, services.addresses)
        )
    assert (end.code, end.err) == (0, "")
    assert (
        end.out
        == """\
Platform embedded: embedded 1
  ok       platform           its driver answers
  unknown  credential         its driver does not check credentials and rights
  unknown  organization acme  its driver does not list organizations
"""
    )


@pytest.mark.slow
async def test_a_driver_that_does_not_answer_is_wrong(short_path: Path) -> None:
    (short_path / "platforms.yml").write_text(f"far: {{address: 'unix:{short_path}/far.sock'}}\n")
    async with cluster(short_path) as services:
        end = await pkger("platforms", "check", env=environment(short_path, services.addresses))
    assert end.code == 1
    assert "  wrong    platform  the platform 'far' at unix:" in end.out


async def test_a_platform_that_is_not_configured_is_an_error(services: Cluster, tmp_path: Path) -> None:
    end = await pkger("platforms", "check", "moon", env=environment(tmp_path, services.addresses))
    assert (end.code, end.out) == (1, "")
    assert end.err == "Error: no platform 'moon' is configured; configured are: embedded\n"
