"""The driver of an InfluxDB server for the conformance suite: the stand-in, or a real server from the environment."""

import os
import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp

import services.drivers.__main__ as platform_process
from services.drivers.registry import opened
from services.platforms import Platform
from tests.cluster import Cluster, cluster
from tests.drivers.client import ORG, DriverClient, client_of
from tests.drivers.influxdb.losses import Losses, losses
from tests.influx.orgs import add_org
from tests.influx.server import Influx, influx

ORGS = ("acme", "ours", "theirs", "elsewhere")
"""The organizations that the suite uses."""

VARIABLES = ("PKGER_TEST_INFLUX_URL", "PKGER_TEST_INFLUX_TOKEN", "PKGER_TEST_INFLUX_ORG")
"""Address of a real server, a token that may create organizations, and a prefix of their names."""

REAL = all(os.environ.get(name) for name in VARIABLES)

HAS_TLS = os.environ.get(VARIABLES[0], "").startswith("https:")
"""Whether the real server has TLS: a proxy cannot distinguish its requests."""

_COLLECTIONS = (
    *("dashboards", "telegrafs", "tasks", "notificationRules", "checks"),
    *("notificationEndpoints", "variables", "buckets", "labels"),
)
_KEYS = {"telegrafs": "configurations"}


@asynccontextmanager
async def influxdb_client(
    url: str, token: str, orgs: Mapping[str, str], folder: Path, **options: Any
) -> AsyncIterator[DriverClient]:
    """A client of the driver of the server at *url*, with further *options*."""
    (folder / "token").write_text(f"{token}\n")
    platform = Platform("under-test", "influxdb", "", {"url": url, "token_file": "token", **options})
    async with opened(platform, folder) as driver, client_of(driver, orgs, "NotificationEndpointSlack") as client:
        yield client


@dataclass(frozen=True, slots=True)
class Server:
    """
    A server with the organizations of the suite, empty.

    Attributes:
        url: Its address.
        token: A token with all rights.
        orgs: Its names of the organizations, by their names in the suite.
    """

    url: str
    token: str
    orgs: Mapping[str, str]


Serving = Callable[[], AbstractAsyncContextManager[Server]]


@asynccontextmanager
async def stand_in() -> AsyncIterator[Server]:
    """An empty stand-in."""
    async with influx() as server:
        for name in ORGS:
            add_org(server.state, name)
        yield Server(server.url, server.token, {name: name for name in ORGS})


@asynccontextmanager
async def real_server() -> AsyncIterator[Server]:
    """The real server, with new organizations that are removed afterwards with their resources."""
    url, token, prefix = (os.environ[name] for name in VARIABLES)
    url = url.rstrip("/")
    unique = f"{prefix}-{secrets.token_hex(4)}-"
    async with organizations(url, token, unique) as orgs:
        yield Server(url, token, orgs)


@asynccontextmanager
async def driver_of(serving: Serving, folder: Path) -> AsyncIterator[DriverClient]:
    """The driver of an empty server."""
    async with serving() as server, influxdb_client(server.url, server.token, server.orgs, folder) as client:
        yield client


@asynccontextmanager
async def driver_and_reader(serving: Serving, folder: Path) -> AsyncIterator[tuple[DriverClient, DriverClient]]:
    """The driver of an empty server, and one whose token may read everything but not write."""
    folders = [folder / "all", folder / "read"]
    for each in folders:
        each.mkdir()
    async with (
        serving() as server,
        influxdb_client(server.url, server.token, server.orgs, folders[0]) as client,
        _reading_token(server) as token,
        influxdb_client(server.url, token, server.orgs, folders[1]) as reader,
    ):
        yield client, reader


@asynccontextmanager
async def driver_behind_losses(serving: Serving, folder: Path) -> AsyncIterator[tuple[DriverClient, Losses]]:
    """The driver of an empty server, and a proxy that loses its requests or their answers."""
    async with (
        serving() as server,
        losses(server.url) as between,
        influxdb_client(between.url, server.token, server.orgs, folder) as client,
    ):
        yield client, between


@asynccontextmanager
async def _reading_token(server: Server) -> AsyncIterator[str]:
    """A token that may read everything in the organization of most tests; it is removed afterwards."""
    async with _session(server.token) as session:
        [org] = (await _asked(session, "GET", f"{server.url}/api/v2/orgs?org={server.orgs[ORG]}"))["orgs"]
        permissions = [{"action": "read", "resource": {"type": "orgs", "id": org["id"]}}]
        permissions += [
            {"action": "read", "resource": {"type": type_, "orgID": org["id"]}} for type_ in (*_COLLECTIONS, "secrets")
        ]
        path = f"{server.url}/api/v2/authorizations"
        made = await _asked(session, "POST", path, {"orgID": org["id"], "permissions": permissions})
        try:
            yield made["token"]
        finally:
            await _asked(session, "DELETE", f"{path}/{made['id']}")


def _session(token: str) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(headers={"Authorization": f"Token {token}", "Accept": "application/json"})


@asynccontextmanager
async def organizations(url: str, token: str, prefix: str) -> AsyncIterator[dict[str, str]]:
    """New organizations: their names, by the names in the suite."""
    async with _session(token) as session:
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
    """Remove an organization and its resources, which the server would keep as orphans."""
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
    path = f"{url}/api/v2/orgs/{org_id}"
    keys = (await _asked(session, "GET", f"{path}/secrets"))["secrets"]
    await _asked(session, "POST", f"{path}/secrets/delete", {"secrets": keys})
    await _asked(session, "DELETE", path)


async def _asked(session: aiohttp.ClientSession, method: str, url: str, body: Any = None) -> Any:
    async with session.request(method, url, json=body) as answer:
        assert answer.status < 300, f"{method} {url}: {answer.status} {await answer.text()}"
        return None if answer.status == 204 else await answer.json()


@asynccontextmanager
async def services_on(server: Influx, token: str, folder: Path) -> AsyncIterator[Cluster]:
    """All services with their databases in *folder*; their platform is the stand-in, accessed with *token*."""
    (folder / "token").write_text(token)
    options = {"url": server.url, "token_file": "token"}
    running = partial(platform_process.opened, platform=Platform("embedded", "influxdb", "", options))
    async with cluster(folder, {"platform": running}) as services:
        yield services


async def organization(url: str, token: str, name: str) -> str:
    """Create an organization; return its id."""
    async with _session(token) as session:
        return str((await _asked(session, "POST", f"{url}/api/v2/orgs", {"name": name}))["id"])
