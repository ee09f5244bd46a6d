"""The driver of the embedded platform: resources that are rows of one SQLite file."""

import os.path
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from services.core.check import CheckAspect, CheckVerdict, Finding, PlatformCheck
from services.core.model import Organization, PlatformTraits, Spec
from services.drivers.embedded.batch import refusal
from services.drivers.embedded.kinds import EMBEDDED
from services.drivers.embedded.retention import Retention
from services.drivers.embedded.secrets import without_values
from services.drivers.embedded.sqlite import store
from services.drivers.embedded.sqlite.schema import MIGRATIONS
from services.drivers.mutation import Create, Done, Fence, Mutation, Rejected, ResourceId, StoredResource, Update
from services.drivers.options import OptionsInvalid, read_options
from services.platforms import Platform
from services.rpc.call import loop_time
from services.settings import STACK_DATABASE
from services.sqlite.database import Database
from services.system import Clock, Ids, machine_clock

_ID_BYTES = 8
"""An id has 16 hexadecimal digits, as on InfluxDB (docs/reference/driver-contract.md, "Ids")."""


@dataclass(frozen=True, slots=True)
class EmbeddedOptions:
    """
    What a row of the platforms file may set.

    Attributes:
        file: The database, created when missing; relative to the folder of the databases. Empty: a default name.
    """

    file: str = ""


class EmbeddedDriver:
    """The platform in one file, which several processes may open; each batch is one transaction."""

    def __init__(
        self, path: Path, ids: Ids, clock: Clock = machine_clock, steady: Callable[[], float] = loop_time
    ) -> None:
        """
        Open *path*, creating it when missing.

        Args:
            path: The file.
            ids: Draws ids of new resources and salts of secrets.
            clock: The time of day, for the age of idempotency keys and fences.
            steady: A monotonic clock in seconds, for the time between two sweeps.
        """
        self._database = Database(path, MIGRATIONS)
        self._ids = ids
        self._clock = clock
        self._retention = Retention(clock, steady)

    async def describe(self) -> PlatformTraits:
        """See ``Driver``."""
        return EMBEDDED

    async def list_resources(self, org: str, kinds: Sequence[str]) -> list[StoredResource]:
        """See ``Driver``; one consistent snapshot."""
        return await self._database.read(partial(store.list_resources, org=org, kinds=kinds))

    async def read_resources(self, org: str, ids: Sequence[ResourceId]) -> list[StoredResource | None]:
        """See ``Driver``; one consistent snapshot."""
        resources = await self._database.read(partial(store.read_resources, org=org, ids=ids))
        return [resources.get(resource_id) for resource_id in ids]

    async def prepare_specs(self, org: str, writes: Sequence[Create | Update]) -> list[Spec | Rejected]:
        """See ``Driver``; the platform stores specs unchanged."""
        # The live resource matters only for kinds with immutable fields.
        ids = [item.id for item in writes if isinstance(item, Update) and EMBEDDED.kinds[item.id.kind].immutable_paths]
        live = await self._database.read(partial(store.read_resources, org=org, ids=ids)) if ids else {}
        return [refusal(item, live.get(item.id) if isinstance(item, Update) else None) or item.spec for item in writes]

    async def secret_keys(self, org: str) -> list[str]:
        """See ``Driver``."""
        return await self._database.read(partial(store.secret_keys, org=org))

    async def orgs(self) -> list[Organization]:
        """See ``Driver``: the platform accepts any name as an organization."""
        return [Organization(org, org) for org in await self._database.read(store.orgs)]

    async def check(self, org: str) -> PlatformCheck:
        """See ``Driver``; the platform knows no credentials and no rights."""
        orgs = await self.orgs()
        findings = [Finding(CheckAspect.PLATFORM, CheckVerdict.OK, "its database can be read")]
        if org:
            remark = "it holds something" if any(org == each.id for each in orgs) else "it holds nothing yet"
            findings.append(Finding(CheckAspect.ORG, CheckVerdict.OK, f"any name is accepted; {remark}", org))
        return PlatformCheck(tuple(findings), EMBEDDED.platform, EMBEDDED.version, tuple(orgs))

    async def mutate(self, org: str, fence: Fence | None, batch: Sequence[Mutation]) -> list[Done | Rejected]:
        """See ``Driver``; the items run in order."""
        await self._retention.sweep(self._forget)
        items = await without_values(batch, self._ids.salt)
        draw_id, now = partial(self._ids.token, _ID_BYTES), self._clock()
        return await self._database.write(
            partial(store.mutate, org=org, fence=fence, batch=items, draw_id=draw_id, now=now)
        )

    async def show_token(self, fence: Fence) -> Fence | None:
        """See ``Driver``."""
        return await self._database.write(partial(store.pass_fence, fence=fence, now=self._clock()))

    async def close(self) -> None:
        """Wait for the running transactions and close the file."""
        self._database.close()

    async def _forget(self, before: int, most: int) -> int:
        return await self._database.write(partial(store.forget, before=before, most=most))


async def open_driver(platform: Platform, data: Path, ids: Ids, clock: Clock) -> EmbeddedDriver:
    """See ``OpenDriver``."""
    return EmbeddedDriver(_database_path(platform, data), ids, clock)


def place_of(platform: Platform, data: Path) -> str:
    """See ``PlaceOf``: the path of the database, without symbolic links."""
    try:
        place = os.path.realpath(_path(platform, data))
    except ValueError:
        raise OptionsInvalid(
            platform, ["option 'file' has a character that no file name can have, such as NUL; remove it"]
        ) from None
    if os.path.isdir(place):
        raise OptionsInvalid(platform, ["option 'file' names a folder; name a file"])
    if place == os.path.realpath(data / STACK_DATABASE):
        raise OptionsInvalid(
            platform, [f"option 'file' names {STACK_DATABASE}, the database of the stack service; name another file"]
        )
    return place


def _path(platform: Platform, data: Path) -> Path:
    """The path of the database, as the options name it."""
    return data / (read_options(EmbeddedOptions, platform).file or f"{platform.service}.db")


def _database_path(platform: Platform, data: Path) -> Path:
    """
    The path of the database to open: without links to folders, but as it is if it is a link itself, which is refused.

    Raises:
        OptionsInvalid: As for ``place_of``.
    """
    place_of(platform, data)
    path = _path(platform, data)
    return Path(os.path.realpath(path.parent)) / path.name
