"""The driver of a real InfluxDB OSS 2.7 to 2.9."""

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from services.core.check import PlatformCheck
from services.core.errors import OrgUnknown, ServiceUnavailable
from services.core.model import Organization, PlatformTraits, Spec
from services.drivers.influxdb.checking import check
from services.drivers.influxdb.client import Client
from services.drivers.influxdb.codecs.registry import CODECS
from services.drivers.influxdb.kinds import traits
from services.drivers.influxdb.options import options_of, place, tls_of, token_of
from services.drivers.influxdb.prepared_specs import prepared_or_rejected, with_resets
from services.drivers.influxdb.reading import CannotRead, OrgMissing, ResourceReader
from services.drivers.influxdb.rule_scripts import RuleScripts
from services.drivers.influxdb.writing import BatchWriter
from services.drivers.mutation import (
    Create,
    Fence,
    Mutation,
    Rejected,
    ResourceId,
    Result,
    StoredResource,
    Update,
)
from services.engine.outcome import RejectionReason
from services.platforms import Platform
from services.system import Clock, Ids

_OF_ENDPOINTS = re.compile("[0-9a-f]{16}-(token|username|password|routing-key)")
"""Secret keys that the server generates for the credentials of endpoints."""


class InfluxdbDriver:
    """One server, accessed with one token; organizations are identified by name."""

    def __init__(self, client: Client, clock: Clock, platform: str = "") -> None:
        """
        Use *client* for all requests; closing the driver closes it.

        Args:
            client: Sends the requests.
            clock: The time of day, as some resources take the time of a change from the client.
            platform: Name of the platform, for errors.
        """
        self._client = client
        self._clock = clock
        self._platform = platform
        self._reader = ResourceReader(client)
        self._scripts = RuleScripts(client, self._reader)
        self._traits: PlatformTraits | None = None

    async def describe(self) -> PlatformTraits:
        """See ``Driver``; the server is asked for its version once."""
        if self._traits is None:
            async with self._reading():
                self._traits = traits(await self._reader.version())
        return self._traits

    async def list_resources(self, org: str, kinds: Sequence[str]) -> list[StoredResource]:
        """See ``Driver``."""
        async with self._reading(org):
            # An empty list proves nothing, so the access to the organization is checked.
            org_id = await self._reader.org_id(org)
            resources = await self._reader.resources(org_id, kinds)
            await self._scripts.catch_up(org_id, [each.id.id for each in resources])
        return resources

    async def read_resources(self, org: str, ids: Sequence[ResourceId]) -> list[StoredResource | None]:
        """See ``Driver``."""
        async with self._reading(org):
            org_id = await self._reader.org_id(org)
            resources = await self._reader.read(org_id, ids)
            # The engine uses this read to resolve updates with an unknown outcome, so it must return complete scripts.
            await self._scripts.catch_up(org_id, [id_.id for id_ in resources])
        return [resources.get(id_) for id_ in ids]

    async def prepare_specs(self, org: str, writes: Sequence[Create | Update]) -> list[Spec | Rejected]:
        """See ``Driver``; the server is asked only for resources of which an update may reset something."""
        specs = [prepared_or_rejected(item) for item in writes]
        updates = [item.id for item in writes if isinstance(item, Update) and CODECS[item.id.kind].resets]
        if not updates:
            return specs
        async with self._reading(org):
            live = await self._reader.bodies(await self._reader.org_id(org), updates)
        return [with_resets(item, spec, live) for item, spec in zip(writes, specs, strict=True)]

    async def secret_keys(self, org: str) -> list[str]:
        """See ``Driver``; without the keys that the server generates for endpoints."""
        async with self._reading(org):
            keys = await self._reader.secret_keys(await self._reader.org_id(org))
        return [key for key in keys if not _OF_ENDPOINTS.fullmatch(key)]

    async def orgs(self) -> list[Organization]:
        """See ``Driver``: the organizations that the token can read."""
        async with self._reading():
            return await self._reader.orgs()

    async def check(self, org: str) -> PlatformCheck:
        """See ``Driver``."""
        return await check(self._reader, self._client.url, org)

    async def mutate(self, org: str, fence: Fence | None, batch: Sequence[Mutation]) -> list[Result]:
        """See ``Driver``; the items run concurrently."""
        if not batch:
            return []
        try:
            org_id = await self._reader.org_id(org)
        except OrgMissing as error:
            missing = OrgUnknown(self._platform, org, str(error))
            return [Rejected(RejectionReason.NOT_FOUND, str(missing))] * len(batch)
        except CannotRead as error:
            return [Rejected(error.reason, str(error))] * len(batch)
        return await BatchWriter(self._client, self._reader, self._scripts, org_id, self._clock).perform(batch)

    async def show_token(self, fence: Fence) -> Fence | None:
        """See ``Driver``; the platform does not fence."""
        return None

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    @asynccontextmanager
    async def _reading(self, org: str = "") -> AsyncIterator[None]:
        """Translate errors of reading in *org* to errors of the driver contract."""
        try:
            yield
        except OrgMissing as error:
            raise OrgUnknown(self._platform, org, str(error)) from error
        except CannotRead as error:
            problem = f"in organization {org!r}, {error}" if org and error.answered else str(error)
            raise ServiceUnavailable(
                "platform", self._client.url, problem, self._platform, answered=error.answered
            ) from error


async def open_driver(platform: Platform, data: Path, ids: Ids, clock: Clock) -> InfluxdbDriver:
    """See ``OpenDriver``."""
    options = options_of(platform)
    token, tls = token_of(platform, options, data), tls_of(platform, options, data)
    return InfluxdbDriver(Client(place(options.url), token, tls, ids, clock), clock, platform.name)


def place_of(platform: Platform, data: Path) -> str:
    """See ``PlaceOf``: the address of the server."""
    return place(options_of(platform).url)
