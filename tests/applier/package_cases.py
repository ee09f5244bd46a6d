"""A stack whose packages are changed by the requests of clients, and what holds of it before and after."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from pkger.model.v1 import object_pb2, operation_pb2, package_change_pb2
from pkger.planner.v1 import package_pb2
from pkger.stack.v1 import repository_pb2, stack_pb2
from pkger.stack.v1.repository_pb2_grpc import RepositoryServiceStub
from pkger.stack.v1.stack_pb2_grpc import StackServiceStub

from services.core.errors import StackNotFound
from tests.applier.composed import UPDATE_ALL, StackChange, publish
from tests.applier.history import check_history
from tests.applier.world import SUCCEEDED, Case, Content, Events, Snapshot, World, end, world
from tests.cluster import Cluster

Packages = Sequence[package_change_pb2.InstalledPackage]


class PackageState(NamedTuple):
    """
    A stack with packages at one moment.

    Attributes:
        snapshot: Its record, and the resources of its organization.
        packages: Its packages, as a client lists them.
    """

    snapshot: Snapshot
    packages: Packages

    @property
    def outcome(self) -> tuple[Content, Packages]:
        """What an operation leads to, without ids."""
        return self.snapshot.content, self.packages


class PackageCase(Case):
    """One package stack in an organization of its own."""

    async def change(self, changes: package_pb2.PackageChanges) -> Events:
        """All events of a plan of *changes*, applied at once."""
        plan = await self.plan(packages=changes, allow_empty=True)
        return await self.apply_plan(plan)

    async def look_at_packages(self) -> PackageState:
        """The stack, whose packages, record, revision and baselines have to agree."""
        snapshot, packages = await self.look(), await self.packages()
        if snapshot.record:
            await check_history(self)
            stack = snapshot.record.stack
            assert stack.package_count == len(packages)
            assert await self._packages_of_revision(stack.revision) == packages
            names = {each.name for each in packages}
            assert {entry.key.name.partition(".")[0] for entry in snapshot.record.resources} <= names
        else:
            assert packages == []
        return PackageState(snapshot, packages)

    async def packages(self) -> Packages:
        """The installed packages; none, too, if the stack does not exist."""
        peer = self.services.peers["stack"]
        request = stack_pb2.ListPackagesRequest(stack=self._ref())
        try:
            answer = await peer.call(StackServiceStub(peer.channel).ListPackages, request)
        except StackNotFound:
            return []
        return list(answer.packages)

    async def _packages_of_revision(self, number: int) -> Packages:
        peer, packages = self.services.peers["stack"], list[package_change_pb2.InstalledPackage]()
        request = stack_pb2.GetRevisionRequest(stack=self._ref(), number=number)
        async for part in peer.stream(StackServiceStub(peer.channel).GetRevision, request):
            packages += part.packages.packages
        return packages

    def _ref(self) -> object_pb2.StackRef:
        return object_pb2.StackRef(target=self._target(), name=self.stack)


class PackageWorld(World):
    """Services around a driver with scripted faults, and a repository."""

    async def stack_with(self, change: StackChange) -> PackageCase:
        """A stack as it is before *change*."""
        case = self.case()
        mine = PackageCase(case.services, case.driver, case.org)
        if change.before:
            assert end(await mine.change(change.before)).state == SUCCEEDED
        self.driver.heal()
        return mine

    async def undisturbed(self, change: StackChange) -> tuple[PackageState, Events, int]:
        """The state after *change* without faults, the events, and the number of calls of the driver."""
        case = await self.stack_with(change)
        events = await case.change(change.change)
        assert end(events).state == SUCCEEDED
        calls = self.driver.calls
        assert len(self.driver.sent) == len(events.plan.steps)
        return await case.look_at_packages(), events, calls


@asynccontextmanager
async def package_world(data: Path) -> AsyncIterator[PackageWorld]:
    """All services, with the repository of the packages."""
    async with world(data) as running:
        await configure_repository(running.services, publish(data / "repository"))
        yield PackageWorld(running.services, running.driver)


async def configure_repository(services: Cluster, folder: Path) -> None:
    """Configure the repository in *folder*."""
    peer = services.peers["stack"]
    request = repository_pb2.CreateRepositoryRequest(name="main", address=folder.as_uri())
    await peer.call(RepositoryServiceStub(peer.channel).CreateRepository, request)


def check_packages(
    before: PackageState,
    state: operation_pb2.OperationState.ValueType,
    after: PackageState,
    wanted: PackageState | None,
) -> None:
    """
    Check that an operation which ended in *state* changed all or nothing.

    Args:
        before: The stack before the operation.
        state: The state in which it ended, without leftovers.
        after: The stack after it.
        wanted: A stack after the same change without faults; None: the change cannot succeed.
    """
    assert set(after.snapshot.recorded.values()) == after.snapshot.ids
    if state == SUCCEEDED:
        assert wanted
        assert after.outcome == wanted.outcome
        return
    assert after.outcome == before.outcome
    assert after.snapshot.recorded_content == before.snapshot.recorded_content
    assert (after.snapshot.record is None) == (before.snapshot.record is None)


async def finishes_the_job(case: PackageCase, change: StackChange, wanted: PackageState) -> None:
    """Check that further plans, without faults, reach the packages of *wanted*, and then have nothing to do."""
    if case.driver:
        case.driver.heal()
    if await case.packages() != wanted.packages:
        assert end(await case.change(change.change)).state == SUCCEEDED
    assert end(await case.change(UPDATE_ALL)).state == SUCCEEDED
    now = await case.look_at_packages()
    assert now.outcome == wanted.outcome
    assert set(now.snapshot.recorded.values()) == now.snapshot.ids
    assert end(await case.change(UPDATE_ALL)).no_change
