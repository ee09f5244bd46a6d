"""Stacks on services that die, and the check that an operation changed all or nothing."""

from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pkger.model.v1 import operation_pb2

from applier_svc.failpoints import STATUS, VARIABLE
from services.core.errors import PkgerError
from services.rpc.client import Peer
from tests.applier.world import ROLLED_BACK, SUCCEEDED, Case, Content, Events, Snapshot, end, settled
from tests.cluster import Cluster
from tests.crash.processes import Processes, processes

FINISHED = (SUCCEEDED, ROLLED_BACK, operation_pb2.OPERATION_STATE_FAILED)


@dataclass
class Crashing:
    """All services, and an applier that tests start and kill."""

    processes: Processes
    services: Cluster
    count: int = 0

    async def case_with(self, package: str) -> Case:
        """A stack in an organization of its own, with *package* applied."""
        self.count += 1
        case = Case(self.services, None, f"org-{self.count}")  # type: ignore[arg-type]
        if package:
            await self.applier()
            assert end(await case.apply(package)).state == SUCCEEDED
            await self.processes.kill("applier")
        return case

    async def applier(self, failpoint: str = "", more: Mapping[str, str] | None = None) -> None:
        """Start an applier, which dies at *failpoint*."""
        await self.processes.start("applier", {VARIABLE: failpoint, **(more or {})} if failpoint else more)

    async def apply_and_die(self, case: Case, package: str, **more: Any) -> bool:
        """
        Apply with an applier that has a failpoint; returns whether it died, rather than ended the operation.

        The request has *more* fields.
        """
        return await self.dies_in(case.apply(package, **more))

    async def dies_in(self, apply: Awaitable[Events]) -> bool:
        """Await *apply*; returns whether the applier died during it. Else the applier is killed afterwards."""
        try:
            events = await apply
        except PkgerError:
            assert await self.processes.died("applier") == STATUS
            return True
        assert end(events).state in FINISHED
        await self.processes.kill("applier")
        return False

    @asynccontextmanager
    async def callers(self, appliers: Sequence[str]) -> AsyncIterator[list[Cluster]]:
        """The services as seen by a client of each of *appliers*."""
        async with AsyncExitStack() as stack:
            callers = []
            for name in appliers:
                peer = await stack.enter_async_context(Peer("applier", self.processes.address(name)))
                callers.append(replace(self.services, peers={**self.services.peers, "applier": peer}))
            yield callers

    async def settled(self) -> operation_pb2.Operation:
        """Wait until the newest operation has ended or is blocked, and return it; an applier has to run."""
        return await settled(self.services)


async def content_after(crashing: Crashing, package: str, change: str) -> Content:
    """The content of the platform after *package* and then *change*, without a crash."""
    case = await crashing.case_with(package)
    await crashing.applier()
    assert end(await case.apply(change)).state == SUCCEEDED
    await crashing.processes.kill("applier")
    return (await case.look()).content


def check(before: Snapshot, operation: operation_pb2.Operation, after: Snapshot, wanted: Content) -> None:
    """Check that the platform has the content from before or the wanted one, and that the record agrees with it."""
    assert operation.state in FINISHED
    assert set(after.recorded.values()) == after.ids
    if operation.state == SUCCEEDED:
        assert after.content == wanted
        return
    assert after.content == before.content
    assert after.recorded_content == before.recorded_content
    assert (after.record is None) == (before.record is None)


@asynccontextmanager
async def crashing(
    folder: Path,
    lease: int = 2,
    modules: Mapping[str, str] | None = None,
    variables: Mapping[str, str] | None = None,
) -> AsyncIterator[Crashing]:
    """
    Run all services but the applier; arguments as of ``Processes``.

    The driver cannot prepare specs, so that the platform may refuse an object when others are written already.
    """
    async with processes(folder, lease, {"platform": "tests.older_platform", **(modules or {})}, variables) as running:
        peers = {name: Peer(name, address) for name, address in running.addresses.items()}
        yield Crashing(running, Cluster(running.addresses, peers))
        for peer in peers.values():
            await peer.close()
