"""One organisation with one stack on services that die: what was there, what is there, what is recorded."""

from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import grpc
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
    """Services whose applier dies again and again."""

    processes: Processes
    services: Cluster
    count: int = 0

    async def case_with(self, package: str) -> Case:
        """A stack in an organisation of its own that has *package*."""
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
        Apply with an applier that was told to die; whether it did, or came to the end of the operation first.

        The request has *more* fields.
        """
        return await self.dies_in(case.apply(package, **more))

    async def dies_in(self, apply: Awaitable[Events]) -> bool:
        """Whether the applier dies in the course of *apply*; else it is killed when that is over."""
        try:
            events = await apply
        except (PkgerError, grpc.aio.AioRpcError):
            assert await self.processes.died("applier") == STATUS
            return True
        assert end(events).state in FINISHED
        await self.processes.kill("applier")
        return False

    @asynccontextmanager
    async def callers(self, appliers: Sequence[str]) -> AsyncIterator[list[Cluster]]:
        """The services as they are for those who call one of *appliers*, each."""
        async with AsyncExitStack() as stack:
            callers = []
            for name in appliers:
                peer = await stack.enter_async_context(Peer("applier", self.processes.address(name)))
                callers.append(replace(self.services, peers={**self.services.peers, "applier": peer}))
            yield callers

    async def settled(self) -> operation_pb2.Operation:
        """The newest operation of all, once it is over or blocked; some applier has to run."""
        return await settled(self.services)


async def content_after(crashing: Crashing, package: str, change: str) -> Content:
    """What there is after *package* and then *change*, when nothing goes wrong."""
    case = await crashing.case_with(package)
    await crashing.applier()
    assert end(await case.apply(change)).state == SUCCEEDED
    await crashing.processes.kill("applier")
    return (await case.look()).content


def check(before: Snapshot, operation: operation_pb2.Operation, after: Snapshot, wanted: Content) -> None:
    """Exactly before or exactly after, and the record is what is there."""
    assert operation.state in FINISHED
    assert set(after.recorded.values()) == after.ids
    if operation.state == SUCCEEDED:
        assert after.content == wanted
        return
    assert after.content == before.content
    assert after.recorded_content == before.recorded_content
    assert (after.record is None) == (before.record is None)


@asynccontextmanager
async def crashing(folder: Path, lease: int = 2, modules: Mapping[str, str] | None = None) -> AsyncIterator[Crashing]:
    """
    All services but the applier, running; arguments as of ``Processes``.

    The driver foresees no refusal, so that a package can be refused when much of it is written.
    """
    async with processes(folder, lease, {"platform": "tests.older_platform", **(modules or {})}) as running:
        peers = {name: Peer(name, address) for name, address in running.addresses.items()}
        yield Crashing(running, Cluster(running.addresses, peers))
        for peer in peers.values():
            await peer.close()
