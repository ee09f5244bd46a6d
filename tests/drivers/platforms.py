"""The platforms of the conformance suite: one entry each."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from services.core.model import PlatformTraits
from services.drivers.embedded.kinds import EMBEDDED
from services.drivers.influxdb.kinds import traits
from services.drivers.registry import opened
from services.kinds.registry import KINDS
from services.platforms import Platform
from tests.databases import copy_database
from tests.drivers.client import DriverClient, client_of, served_client_of
from tests.drivers.influxdb.losses import Losses
from tests.drivers.influxdb.running import (
    HAS_TLS,
    REAL,
    Serving,
    driver_and_reader,
    driver_behind_losses,
    driver_of,
    real_server,
    stand_in,
)
from tests.drivers.influxdb.samples import influxdb_sample

Sample = Callable[[str, str, str], dict[str, Any]]
"""Returns a normalised spec that the platform accepts: kind, name, and a description that distinguishes two specs."""

Running = Callable[[Path], AbstractAsyncContextManager[DriverClient]]

EMBEDDED_ROW = Platform("embedded", "embedded", "")


@dataclass(frozen=True, eq=False)
class PlatformUnderTest:
    """
    A platform for the suite.

    Attributes:
        running: Starts the driver of an empty platform, which may keep its data in the given folder.
        sample: Specs for it.
        missing_id: A well-formed id that no resource has.
        immutable_change: For each (kind, immutable path), a spec and one that differs from it there.
        described: The traits that its driver describes, except the version. None: the driver is started once to ask it,
            when tests are collected.
        is_sampled: Whether the default run tests only a sample: one kind of each family, and some charts. The other
            tests are marked slow.
        needs_references: Whether kinds that can refer to a resource have to.
        with_reader: Starts two drivers of an empty platform, the second one without rights to write; None: the platform
            has no rights.
        freely_labelled: Kinds whose labels the platform lets a credential attach and detach that has no right to write.
        with_losses: Starts a driver of an empty platform behind a proxy that loses messages; None: no proxy can be
            between driver and platform.
    """

    running: Running
    sample: Sample
    missing_id: str
    immutable_change: Mapping[tuple[str, str], tuple[dict[str, Any], dict[str, Any]]]
    described: PlatformTraits | None = None
    is_sampled: bool = False
    needs_references: bool = False
    with_reader: Callable[[Path], AbstractAsyncContextManager[tuple[DriverClient, DriverClient]]] | None = None
    freely_labelled: Collection[str] = ()
    with_losses: Callable[[Path], AbstractAsyncContextManager[tuple[DriverClient, Losses]]] | None = None

    @cached_property
    def traits(self) -> PlatformTraits:
        """Its traits, by which the suite chooses its tests."""
        return self.described or asyncio.run(_describe(self.running))


async def _describe(running: Running) -> PlatformTraits:
    with TemporaryDirectory() as folder:
        async with running(Path(folder)) as client:
            return await client.describe()


@asynccontextmanager
async def driver_client(platform: Platform, folder: Path) -> AsyncIterator[DriverClient]:
    """A client, over gRPC, of the driver of *platform* with its files in *folder*."""
    _copy_database_of(platform, folder)
    async with opened(platform, folder) as driver, served_client_of(driver) as client:
        yield client


@asynccontextmanager
async def _client_in_memory(platform: Platform, folder: Path) -> AsyncIterator[DriverClient]:
    _copy_database_of(platform, folder)
    async with opened(platform, folder) as driver, client_of(driver) as client:
        yield client


def _copy_database_of(platform: Platform, folder: Path) -> None:
    if platform.driver == "embedded":
        copy_database("platform", folder / f"{platform.service}.db")


def run_here(driver: str, **options: Any) -> Running:
    """Run a driver of ``services.drivers.registry`` with *options*, for a platform of any name."""
    return partial(_client_in_memory, Platform("under-test", driver, "", options))


def embedded_driver(folder: Path) -> AbstractAsyncContextManager[DriverClient]:
    """A client of the embedded platform with its file, ``platform.db``, in *folder*."""
    return _client_in_memory(EMBEDDED_ROW, folder)


_CONTENT: dict[str, dict[str, Any]] = {
    "Label": {"color": "#326BBA"},
    "Bucket": {"retentionRules": [{"type": "expire", "everySeconds": 3600}]},
    "Variable": {"type": "constant", "values": ["eu", "us"]},
    "Task": {"every": "1h", "offset": "5m", "query": 'from(bucket: "b")\n  |> range(start: -1h)', "status": "active"},
    "Dashboard": {
        "charts": [{"kind": "Single_Stat", "name": "CPU ☂", "width": 4, "decimalPlaces": 0.5, "shade": True}]
    },
    "CheckDeadman": {"every": "1m", "query": "buckets()", "level": "CRIT", "timeSince": "90s"},
    "CheckThreshold": {"every": "1m", "query": "buckets()", "thresholds": [{"type": "greater", "value": 0.5}]},
    "NotificationEndpointHTTP": {
        "url": "https://example.com",
        "type": "basic",
        "username": {"secretRef": {"key": "user"}},
        "password": {"secretRef": {"key": "password"}},
    },
    "NotificationEndpointPagerDuty": {
        "url": "https://example.com",
        "routingKey": {"secretRef": {"key": "routing-key"}},
    },
    "NotificationEndpointSlack": {"url": "https://example.com", "token": ""},
    "NotificationRule": {"endpointName": "pager", "every": "10m", "statusRules": [{"currentLevel": "CRIT"}]},
    "Telegraf": {"config": "[agent]\n  interval = '10s'\n"},
}


def sample(kind: str, name: str, description: str) -> dict[str, Any]:
    """A spec of each kind of the package format."""
    return {"name": name, "description": description, **_CONTENT[kind]}


def _influxdb(serving: Serving, is_sampled: bool, has_tls: bool) -> PlatformUnderTest:
    """An InfluxDB server. It has no schemas of buckets, and refuses any bucket that has one."""
    bucket, described = influxdb_sample("Bucket", "measured", ""), traits(version="")
    return PlatformUnderTest(
        partial(driver_of, serving),
        influxdb_sample,
        missing_id="00000000deadbeef",
        immutable_change={("Bucket", "/schemaType"): (bucket, {**bucket, "schemaType": "explicit"})},
        described=described,
        is_sampled=is_sampled,
        needs_references=True,
        with_reader=partial(driver_and_reader, serving),
        freely_labelled=(KINDS.keys() & described.kinds.keys()) - {"Label", "Bucket", "Dashboard"},
        with_losses=None if has_tls else partial(driver_behind_losses, serving),
    )


PLATFORMS = {
    "embedded": PlatformUnderTest(
        run_here("embedded"),
        sample,
        missing_id="00000000deadbeef",
        immutable_change={
            ("Bucket", "/schemaType"): (
                {**sample("Bucket", "measured", ""), "schemaType": "implicit"},
                {**sample("Bucket", "measured", ""), "schemaType": "explicit"},
            )
        },
        described=EMBEDDED,
    ),
    "influxdb": _influxdb(stand_in, is_sampled=True, has_tls=False),
    **({"real-influxdb": _influxdb(real_server, is_sampled=False, has_tls=HAS_TLS)} if REAL else {}),
}
