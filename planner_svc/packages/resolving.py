"""Resolves requests with what repositories publish."""

import asyncio
import math
from dataclasses import dataclass, field
from threading import Event

from planner_svc.packages.inputs import PackageInputs
from planner_svc.packages.reachable import TooManyVersions, reachable
from planner_svc.resolution.bounds import Bounds
from planner_svc.resolution.model import Conflict, ConflictCode, Options, Request, Resolution
from planner_svc.resolution.resolve import resolve
from services.packages.versions import Version

AT_ONCE = 4
"""How many resolutions run at the same time, as each may take 150 MiB of memory; others wait."""

_TOO_MANY = Conflict(
    ConflictCode.LIMIT,
    "",
    "the packages that the request leads to have more versions than one resolution reads; name other packages, or"
    " narrower repositories with --only",
    is_explained=False,
)


@dataclass(frozen=True, slots=True)
class PackageResolver:
    """
    Resolves requests, a few at a time.

    Attributes:
        inputs: Reads repositories.
        platform: The version of pkger.
        seconds: The bound on the time of one resolution, without what is read for it.
    """

    inputs: PackageInputs
    platform: Version
    seconds: float
    _at_once: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE), init=False)

    async def resolved(self, request: Request, prereleases: frozenset[str], refresh: bool) -> Resolution | Conflict:
        """
        The versions that an installation into an empty stack brings, or why there are none.

        Args:
            request: The packages to install.
            prereleases: Packages whose prereleases count as releases.
            refresh: Whether to ask the repositories, however fresh their index files are.

        Raises:
            RequestInvalid: A package is named twice.
        """
        options = Options(prereleases=prereleases, platform=self.platform)
        async with self._at_once:
            try:
                repositories = await reachable(self.inputs, request, refresh)
            except TooManyVersions:
                return _TOO_MANY
            # A call that is cancelled leaves its thread, which ends when it looks at the clock next.
            is_over, now = Event(), asyncio.get_running_loop().time
            bounds = Bounds(seconds=self.seconds, clock=lambda: math.inf if is_over.is_set() else now())
            try:
                return await asyncio.to_thread(resolve, repositories, (), request, options, bounds)
            finally:
                is_over.set()
