"""
The loop that resumes abandoned operations survives every answer (docs/reference/engine.md, "Driver
answers", "Cases" case 10).
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest
from pkger.journal.v1 import journal_pb2
from pkger.model.v1 import operation_pb2

from services.core.errors import TokenStale
from services.system import MachineIds
from stack_svc.journal_servicer import JournalServicer
from stack_svc.sqlite.store import SqliteStore
from stack_svc.stack_servicer import StackServicer
from stack_svc.store.store import Store
from tests.applier.faulty import CallFault
from tests.applier.stores import serving_store
from tests.applier.test_events import SMALL
from tests.applier.world import QUICK, SUCCEEDED, World, world
from tests.transport import transport_of_loop

APPLYING = operation_pb2.OPERATION_STATE_APPLYING

CODES = [code for code in grpc.StatusCode if code is not grpc.StatusCode.OK]


class Answering(JournalServicer):
    """
    The real journal service, behind a proxy that answers some calls itself.

    Attributes:
        method: The method that the proxy answers.
        codes: The status codes with which it answers, each once.
        never: An operation that cannot be claimed.
        body: Replaces the body of each plan that is read once an operation was claimed; None: it is not replaced.
    """

    def __init__(self, store: Store) -> None:
        super().__init__(store, MachineIds())
        self.method = self.never = ""
        self.codes: list[grpc.StatusCode] = []
        self.body: bytes | None = None
        self.has_claims = False

    async def ListAbandonedOperations(
        self, request: journal_pb2.ListAbandonedOperationsRequest, context: Any
    ) -> journal_pb2.ListAbandonedOperationsResponse:
        if self._answers("ListAbandonedOperations", context):
            return journal_pb2.ListAbandonedOperationsResponse()
        return await super().ListAbandonedOperations(request, context)

    async def ClaimOperation(
        self, request: journal_pb2.ClaimOperationRequest, context: Any
    ) -> AsyncIterator[journal_pb2.ClaimOperationResponse]:
        if request.operation_id == self.never:
            raise KeyError(request.operation_id)
        if self._answers("ClaimOperation", context):
            return
        self.has_claims = True
        async for claimed in super().ClaimOperation(request, context):
            yield claimed

    async def ReadPlan(
        self, request: journal_pb2.ReadPlanRequest, context: Any
    ) -> AsyncIterator[journal_pb2.ReadPlanResponse]:
        async for part in super().ReadPlan(request, context):
            if self.body is not None and self.has_claims and part.body:
                part.body = self.body
            yield part

    async def AdvanceOperation(
        self, request: journal_pb2.AdvanceOperationRequest, context: Any
    ) -> journal_pb2.AdvanceOperationResponse:
        if self._answers("AdvanceOperation", context):
            return journal_pb2.AdvanceOperationResponse()
        return await super().AdvanceOperation(request, context)

    async def FinishOperation(
        self, request: journal_pb2.FinishOperationRequest, context: Any
    ) -> journal_pb2.FinishOperationResponse:
        if self._answers("FinishOperation", context):
            return journal_pb2.FinishOperationResponse()
        return await super().FinishOperation(request, context)

    def _answers(self, method: str, context: Any) -> bool:
        if method != self.method or not self.codes:
            return False
        context.set_code(self.codes.pop())
        return True


@asynccontextmanager
async def answering(tmp_path: Path) -> AsyncIterator[tuple[Answering, World]]:
    store = SqliteStore(tmp_path / "stack.db", transport_of_loop().clock)
    journal = Answering(store)
    timeouts = replace(QUICK, recovery=0.01, lease=1.0, mutate=0.3, margin=0.0)
    async with (
        serving_store(store, StackServicer(store, MachineIds()), journal) as address,
        world(tmp_path, timeouts, given={"stack": address}) as faulty,
    ):
        yield journal, faulty


@pytest.mark.real_time
@pytest.mark.parametrize("method", ["ListAbandonedOperations", "ClaimOperation", "AdvanceOperation", "FinishOperation"])
async def test_an_operation_is_resumed_after_any_status_code_of_the_store(tmp_path: Path, method: str) -> None:
    async with answering(tmp_path) as (journal, faulty):
        case = faulty.case()
        case.driver.fail(calls={1: CallFault.CUT_OFF})
        with pytest.raises(TokenStale):
            await case.apply(SMALL)
        journal.method, journal.codes = method, list(CODES)
        assert (await case.settled()).state == SUCCEEDED
        assert journal.codes == []
        now = await case.look()
        assert set(now.recorded.values()) == now.ids


async def test_an_operation_is_resumed_once_the_driver_describes_itself_again(faulty: World) -> None:
    """Meanwhile the driver answers with a foreign status code, and an error of pkger."""
    case = faulty.case()
    case.driver.fail(calls={1: CallFault.CUT_OFF})
    gate = case.driver.gate(1)
    apply = asyncio.create_task(case.apply(SMALL))
    await gate.reached.wait()
    gate.opened.set()
    with pytest.raises(TokenStale):
        await apply
    case.driver.descriptions = [grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL]
    assert (await case.settled()).state == SUCCEEDED
    assert case.driver.descriptions == []


async def test_an_operation_that_cannot_be_claimed_keeps_no_other_from_being_resumed(tmp_path: Path) -> None:
    async with answering(tmp_path) as (journal, faulty):
        older, newer = faulty.case(), faulty.case()
        names = []
        for case in (older, newer):
            case.driver.fail(calls={1: CallFault.CUT_OFF})
            stream = case.events(SMALL)
            names.append((await anext(stream)).operation_id)
            journal.never = names[0]
            with pytest.raises(TokenStale):
                [event async for event in stream]
        assert (await newer.settled()).id == names[1]
        assert (await older.operation(names[0])).state == APPLYING
        journal.never = ""
        assert [event async for event in older.watch(names[0])][-1].finished.state == SUCCEEDED
