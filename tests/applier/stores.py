"""Stack services with scripted faults."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from pkger.journal.v1 import journal_pb2
from pkger.journal.v1.journal_pb2_grpc import add_JournalServiceServicer_to_server
from pkger.stack.v1 import stack_pb2
from pkger.stack.v1.stack_pb2_grpc import add_StackServiceServicer_to_server

from services.core.errors import PlanStale, ServiceUnavailable
from services.rpc.process import Service
from services.system import MachineIds
from stack_svc.journal_servicer import JournalServicer
from stack_svc.servicer import SERVICES
from stack_svc.sqlite.store import SqliteStore
from stack_svc.stack_servicer import StackServicer
from stack_svc.store.store import Store
from tests.transport import transport_of_loop


class FaultyJournal(JournalServicer):
    """
    The real journal service, with scripted losses of responses.

    Attributes:
        losses: How many of the next records and removals are written without a response.
        unread: How many of the next reads of a stack fail.
        lost_raises: How many of the next raises of a token are written without a response.
        refused_starts: How many of the next starts of an operation are refused.
        slow_renewals: Seconds that a renewal takes to arrive, and its response takes to return.
        renewed: Set when a lease was renewed.
    """

    def __init__(self, store: Store) -> None:
        super().__init__(store, MachineIds())
        self.losses = 0
        self.unread = 0
        self.lost_raises = 0
        self.refused_starts = 0
        self.slow_renewals = 0.0
        self.renewed = asyncio.Event()

    async def RenewLease(
        self, request: journal_pb2.RenewLeaseRequest, context: object
    ) -> journal_pb2.RenewLeaseResponse:
        await asyncio.sleep(self.slow_renewals)
        answer = await super().RenewLease(request, context)
        self.renewed.set()
        if request.raise_to and self.lost_raises:
            self.lost_raises -= 1
            raise ServiceUnavailable("stack", "elsewhere", "scripted")
        await asyncio.sleep(self.slow_renewals)
        return answer

    async def AdvanceOperation(
        self, request: journal_pb2.AdvanceOperationRequest, context: object
    ) -> journal_pb2.AdvanceOperationResponse:
        if request.HasField("start") and self.refused_starts:
            self.refused_starts -= 1
            raise PlanStale(request.start.plan_id, "scripted")
        return await super().AdvanceOperation(request, context)

    async def FinishOperation(
        self, request: journal_pb2.FinishOperationRequest, context: object
    ) -> journal_pb2.FinishOperationResponse:
        answer = await super().FinishOperation(request, context)
        if self.losses and request.WhichOneof("outcome") != "abandon":
            self.losses -= 1
            raise ServiceUnavailable("stack", "elsewhere", "scripted")
        return answer


class FaultyStacks(StackServicer):
    """The real stack service, with failing reads as *journal* scripts them."""

    def __init__(self, store: Store, journal: FaultyJournal) -> None:
        super().__init__(store, MachineIds())
        self._journal = journal

    async def GetStack(self, request: stack_pb2.GetStackRequest, context: object) -> stack_pb2.GetStackResponse:
        if self._journal.unread:
            self._journal.unread -= 1
            raise ServiceUnavailable("stack", "elsewhere", "scripted")
        return await super().GetStack(request, context)


@asynccontextmanager
async def faulty_store(path: Path) -> AsyncIterator[tuple[FaultyJournal, str]]:
    """A stack service over the database at *path*, and its address."""
    store = SqliteStore(path, transport_of_loop().clock)
    journal = FaultyJournal(store)
    async with serving_store(store, FaultyStacks(store, journal), journal) as address:
        yield journal, address


@asynccontextmanager
async def serving_store(store: SqliteStore, stacks: StackServicer, journal: JournalServicer) -> AsyncIterator[str]:
    """Serve *store* while the block is open, then close it; returns the address."""
    register = [
        partial(add_StackServiceServicer_to_server, stacks),
        partial(add_JournalServiceServicer_to_server, journal),
    ]
    try:
        async with transport_of_loop().serving(Service(register, SERVICES), grace=0) as address:
            yield address
    finally:
        await store.close()
