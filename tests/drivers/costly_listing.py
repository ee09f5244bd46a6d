"""A platform on which a list of dashboards is costly, and that remembers what is read."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from services.core.model import PlatformTraits
from services.drivers.embedded.driver import EmbeddedDriver
from services.drivers.embedded.kinds import EMBEDDED
from services.drivers.mutation import ResourceId, StoredResource
from services.drivers.servicer import SERVICES, register
from services.rpc.process import Service
from services.settings import Settings
from services.system import MachineIds

LISTED: list[str] = []
"""The kinds of all listings of a test, in order."""

READ: list[ResourceId] = []
"""The resources that a test read by their ids, in order."""


class _Driver(EmbeddedDriver):
    async def describe(self) -> PlatformTraits:
        costly = replace(EMBEDDED.kinds["Dashboard"], costly_listing=True)
        return replace(EMBEDDED, kinds={**EMBEDDED.kinds, "Dashboard": costly})

    async def list_resources(self, org: str, kinds: Sequence[str]) -> list[StoredResource]:
        LISTED.extend(kinds)
        return await super().list_resources(org, kinds)

    async def read_resources(self, org: str, ids: Sequence[ResourceId]) -> list[StoredResource | None]:
        READ.extend(ids)
        return await super().read_resources(org, ids)


@asynccontextmanager
async def costly_platform(settings: Settings) -> AsyncIterator[Service]:
    """The server of the platform."""
    driver = _Driver(settings.data / "platform.db", MachineIds())
    yield Service([register(driver)], SERVICES)
    await driver.close()
