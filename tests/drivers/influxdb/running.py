"""The driver of an InfluxDB server for the conformance suite: of the stand-in, or of a real one that is named."""

import os
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from services.drivers.registry import opened
from services.drivers.servicer import SERVICES, register
from services.platforms import Platform
from services.rpc.server import serving
from tests.drivers.client import DriverClient
from tests.influx.server import influx

ORGS = ("acme", "ours", "theirs", "elsewhere")
"""The organisations that the suite uses."""

VARIABLES = ("PKGER_TEST_INFLUX_URL", "PKGER_TEST_INFLUX_TOKEN", "PKGER_TEST_INFLUX_ORG")
"""Name a real server, a token that may make organisations, and what the names of these begin with."""

REAL = all(os.environ.get(name) for name in VARIABLES)

_COLLECTIONS = (
    *("dashboards", "telegrafs", "tasks", "notificationRules", "checks"),
    *("notificationEndpoints", "variables", "buckets", "labels"),
)
_KEYS = {"telegrafs": "configurations"}


@asynccontextmanager
async def influxdb_client(url: str, token: str, orgs: Mapping[str, str], folder: Path) -> AsyncIterator[DriverClient]:
    """A client of the driver of the server at *url*."""
    (folder / "token").write_text(f"{token}\n")
    platform = Platform("under-test", "influxdb", "", {"url": url, "token_file": "token"})
    async with opened(platform, folder) as driver, serving([register(driver)], SERVICES, "127.0.0.1:0") as address:
        client = DriverClient(address, orgs, refers_to="NotificationEndpointSlack")
        try:
            yield client
        finally:
            await client.close()


@asynccontextmanager
async def stand_in(folder: Path) -> AsyncIterator[DriverClient]:
    """The driver of an empty stand-in."""
    async with (
        influx() as server,
        organisations(server.url, server.token, "") as orgs,
        influxdb_client(server.url, server.token, orgs, folder) as client,
    ):
        yield client


@asynccontextmanager
async def real_server(folder: Path) -> AsyncIterator[DriverClient]:
    """The driver of the real server, with new organisations that are removed afterwards with all they hold."""
    url, token, prefix = (os.environ[name] for name in VARIABLES)
    unique = f"{prefix}-{secrets.token_hex(4)}-"
    async with organisations(url, token, unique) as orgs, influxdb_client(url, token, orgs, folder) as client:
        yield client


@asynccontextmanager
async def organisations(url: str, token: str, prefix: str) -> AsyncIterator[dict[str, str]]:
    """New organisations; their names by those of the suite."""
    headers = {"Authorization": f"Token {token}", "Accept": "application/json"}
    async with aiohttp.ClientSession(headers=headers) as session:
        ids: list[str] = []
        try:
            for name in ORGS:
                made = await _asked(session, "POST", f"{url}/api/v2/orgs", {"name": prefix + name})
                ids.append(made["id"])
            yield {name: prefix + name for name in ORGS}
        finally:
            for id_ in ids if prefix else ():
                await _remove(session, url, id_)


async def _remove(session: aiohttp.ClientSession, url: str, org_id: str) -> None:
    """Remove an organisation; what it holds would stay behind as orphans."""
    for collection in _COLLECTIONS:
        path = f"{url}/api/v2/{collection}"
        while held := [
            each["id"]
            for each in (await _asked(session, "GET", f"{path}?orgID={org_id}&limit=100"))[
                _KEYS.get(collection, collection)
            ]
            if each.get("type") != "system"
        ]:
            for id_ in held:
                await _asked(session, "DELETE", f"{path}/{id_}")
    await _asked(session, "DELETE", f"{url}/api/v2/orgs/{org_id}")


async def _asked(session: aiohttp.ClientSession, method: str, url: str, body: Any = None) -> Any:
    async with session.request(method, url, json=body) as answer:
        assert answer.status < 300, f"{method} {url}: {answer.status} {await answer.text()}"
        return None if answer.status == 204 else await answer.json()


async def organisation(url: str, token: str, name: str) -> str:
    """Make an organisation; its id."""
    async with aiohttp.ClientSession(headers={"Authorization": f"Token {token}"}) as session:
        return str((await _asked(session, "POST", f"{url}/api/v2/orgs", {"name": name}))["id"])
