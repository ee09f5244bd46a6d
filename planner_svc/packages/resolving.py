"""Resolves changes of packages with what repositories publish."""

import asyncio
import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from threading import Event
from typing import TypeVar

from planner_svc.packages.inputs import PackageInputs
from planner_svc.packages.reachable import TooManyVersions, reachable
from planner_svc.packages.requests import ChangesRequest
from planner_svc.resolution.bounds import Bounds
from planner_svc.resolution.explanations import Explanation, explain_packages
from planner_svc.resolution.model import Conflict, ConflictCode, Options, Repository, Request, Resolution
from planner_svc.resolution.resolve import resolve
from services.core.errors import RequestInvalid, ServiceUnavailable
from services.packages.installed import InstalledPackage
from services.packages.versions import Version

Answer = TypeVar("Answer")

AT_ONCE = 4
"""How many resolutions run at the same time, as each may take 150 MiB of memory; others wait."""

READ_SECONDS = 60
"""How long one resolution reads repositories."""

_TOO_SLOW = Conflict(
    ConflictCode.LIMIT,
    "",
    f"the repositories took longer than {READ_SECONDS} s to list the versions that the request leads to; what was read"
    " is kept for a minute, so try again, or name other packages",
    is_explained=False,
)

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
    Resolves changes, a few at a time.

    Attributes:
        inputs: Reads repositories.
        platform: The version of pkger.
        seconds: The bound on the time of one resolution, without what is read for it.
    """

    inputs: PackageInputs
    platform: Version
    seconds: float
    _at_once: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE), init=False)

    async def resolved(
        self, changes: ChangesRequest, installed: Iterable[InstalledPackage] = (), keep: Collection[str] = ()
    ) -> Resolution | Conflict:
        """
        The versions that go together, or why there are none.

        Repositories are asked for packages that stay only if there is no solution in which they do.

        Args:
            changes: What is to change.
            installed: The packages of the stack.
            keep: Dependencies that stay although nothing requires them.

        Raises:
            RequestInvalid: A package is named twice.
        """
        by_name = {each.name: each for each in installed}
        options = replace(changes.options, keep=frozenset(keep), platform=self.platform)
        staying = frozenset() if changes.request.updates_all else by_name.keys() - changes.names
        async with self._at_once:
            if staying:
                answer = await self._resolved(changes, by_name, options, staying)
                if isinstance(answer, Resolution) and _leaves(answer, staying):
                    return answer
            return await self._resolved(changes, by_name, options, ())

    async def _resolved(
        self,
        changes: ChangesRequest,
        installed: Mapping[str, InstalledPackage],
        options: Options,
        staying: Collection[str],
    ) -> Resolution | Conflict:
        folders = [each.as_repository() for each in changes.folders.values()]
        try:
            async with asyncio.timeout(READ_SECONDS):
                repositories = await reachable(
                    self.inputs, changes.request, installed, changes.refresh, staying=staying, folders=folders
                )
        except TooManyVersions:
            return _TOO_MANY
        except TimeoutError:
            return _TOO_SLOW
        return await self._bounded(
            lambda bounds: resolve(repositories, installed.values(), changes.request, options, bounds)
        )

    async def explained(
        self, names: Collection[str], installed: Iterable[InstalledPackage], refresh: bool
    ) -> tuple[tuple[Explanation, ...], list[Repository]]:
        """
        Explain installed packages.

        Args:
            names: Their names.
            installed: The packages of the stack.
            refresh: Whether to ask the repositories, however fresh their index files are.

        Returns:
            The explanations, by name; and all configured repositories.

        Raises:
            RequestInvalid: The packages lead to more versions than one call reads.
            ServiceUnavailable: The repositories are too slow.
        """
        by_name = {each.name: each for each in installed}
        options, others = Options(platform=self.platform), by_name.keys() - set(names)
        async with self._at_once:
            try:
                async with asyncio.timeout(READ_SECONDS):
                    repositories = await reachable(self.inputs, Request(), by_name, refresh, staying=others)
            except TooManyVersions:
                problem = "the packages of this page lead to more versions than one call reads; ask for fewer"
                raise RequestInvalid("page_size", problem) from None
            except TimeoutError:
                raise ServiceUnavailable("planner", "", _TOO_SLOW.text, answered=True) from None
            explanations = await self._bounded(
                lambda bounds: explain_packages(repositories, by_name.values(), names, options, bounds)
            )
        return explanations, repositories

    async def _bounded(self, solve: Callable[[Bounds], Answer]) -> Answer:
        """Run *solve* in a thread."""
        # A call that is cancelled leaves its thread, which ends when it looks at the clock next.
        is_over, now = Event(), asyncio.get_running_loop().time
        bounds = Bounds(seconds=self.seconds, clock=lambda: math.inf if is_over.is_set() else now())
        try:
            return await asyncio.to_thread(solve, bounds)
        finally:
            is_over.set()


def _leaves(resolution: Resolution, names: Collection[str]) -> bool:
    """Whether no package of *names* moves."""
    return not any(each.old and each.new and each.name in names for each in resolution.changes)
