"""The configured repositories while their indexes are read: an answer waits only for those that it needs."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

from planner_svc.packages.listings import Listing
from planner_svc.resolution.model import Repository, Request
from planner_svc.resolution.sources import Sources
from services.packages.installed import InstalledPackage
from services.rpc.call import loop_time

INDEXES_AT_ONCE = 8
"""How many repositories one call asks for their indexes at the same time."""


class Indexes:
    """Repositories, some of which are read already. They are read at the same time, those of higher priority first."""

    def __init__(
        self,
        configured: Iterable[Listing],
        read: Callable[[Listing], Awaitable[Listing]],
        is_candidate: Callable[[Listing], bool],
    ) -> None:
        """
        Args:
            configured: The repositories without their indexes.
            read: Adds the index of one, or what is wrong with it.
            is_candidate: Whether one may be needed; others, and disabled ones, are not read.
        """
        self._listings = {each.name: each for each in configured}
        self._repositories = {name: each.repository() for name, each in self._listings.items()}
        self._begin = loop_time()
        at_once = asyncio.Semaphore(INDEXES_AT_ONCE)

        async def reading(listing: Listing) -> None:
            async with at_once:
                self._put(await read(listing))

        counting = [each for each in self._listings.values() if each.is_enabled and is_candidate(each)]
        counting.sort(key=lambda each: (-each.priority, each.name))
        self._readings = {each.name: asyncio.create_task(reading(each)) for each in counting}
        self._unread = {*self._readings}

    @property
    def listings(self) -> list[Listing]:
        """The repositories as far as they are read, by name."""
        return [each for _, each in sorted(self._listings.items())]

    async def sources(
        self,
        packages: Collection[str],
        request: Request,
        installed: Mapping[str, InstalledPackage],
        folders: Sequence[Repository] = (),
    ) -> Sources:
        """
        The sources of *packages*, as soon as it is clear which repository each of them comes from.

        Args:
            packages: Their names.
            request: What is to change.
            installed: The installed packages, by name.
            folders: Further repositories.
        """
        while True:
            sources = Sources([*self._repositories.values(), *folders], installed, request)
            needed = {name for package in packages for name in sources.needed(package, self._unread)}
            if not needed:
                return sources
            await asyncio.gather(*(asyncio.shield(self._readings[name]) for name in needed))

    async def wait(self, seconds: float) -> None:
        """Wait for all indexes until *seconds* after the reading began; what is missing then is a problem."""
        with suppress(TimeoutError):
            async with asyncio.timeout_at(self._begin + seconds):
                await asyncio.gather(*map(asyncio.shield, self._readings.values()))
        problem = f"there is no answer within {seconds:g} seconds; try again later"
        for name in [*self._unread]:
            self._put(replace(self._listings[name], problem=problem))

    async def stop(self) -> None:
        """Stop reading what is not needed."""
        for reading in self._readings.values():
            reading.cancel()
        await asyncio.gather(*self._readings.values(), return_exceptions=True)

    def _put(self, listing: Listing) -> None:
        self._unread.discard(listing.name)
        self._listings[listing.name] = listing
        self._repositories[listing.name] = listing.repository()


@asynccontextmanager
async def indexes_of(
    configured: Iterable[Listing],
    read: Callable[[Listing], Awaitable[Listing]],
    is_candidate: Callable[[Listing], bool],
) -> AsyncIterator[Indexes]:
    """The repositories while their indexes are read, which ends with the block; as for ``Indexes``."""
    indexes = Indexes(configured, read, is_candidate)
    try:
        yield indexes
    finally:
        await indexes.stop()
