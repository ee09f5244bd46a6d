"""
JournalService: defects that keep an operation from being resumed are counted, and block it (docs/reference/engine.md,
"Driver answers").
"""

import sqlite3
from pathlib import Path

import pytest
from pkger.journal.v1 import journal_pb2
from pkger.journal.v1.journal_pb2 import StepRecord, StepState
from pkger.model.v1 import operation_pb2
from pkger.model.v1.operation_pb2 import (
    BLOCKED_REASON_CONFLICT,
    BLOCKED_REASON_DEFECT,
    OPERATION_STATE_APPLYING,
    OPERATION_STATE_BLOCKED,
    OPERATION_STATE_FAILED,
)

from services.core.errors import Internal, LeaseLost, OperationUnfinished
from tests.stack.service import HERE, Begun, Client, Clock, a_create, service_in_memory


async def report(
    service: Client, begun: Begun, problem: str = "KeyError: 1", *steps: operation_pb2.BlockedStep
) -> journal_pb2.ReportDefectResponse:
    request = journal_pb2.ReportDefectRequest(
        operation_id=begun.operation, token=begun.token, problem=problem, blocked_steps=steps
    )
    return await service.peer.call(service.journal.ReportDefect, request)


def a_blocked_step(number: int) -> operation_pb2.BlockedStep:
    return operation_pb2.BlockedStep(step=a_create(number), message="open")


async def test_the_third_defect_blocks_an_operation_at_any_applier(tmp_path: Path, clock: Clock) -> None:
    """Each defect occurs at another applier and in another process of the store; each time the lease is released."""
    path = tmp_path / "stack.db"
    async with service_in_memory(path, clock) as service:
        begun = await service.begin("prod", steps=3)
        clock.forward(31)
    for number in (1, 2):
        async with service_in_memory(path, clock) as service:
            begun, _ = await service.claim(begun.operation, holder=f"applier-{number}")
            assert not (await report(service, begun)).HasField("finished")
            with pytest.raises(LeaseLost):
                await service.advance(begun, seqs=[2])
            with pytest.raises(LeaseLost):
                await report(service, begun)
            assert await service.abandoned() == [begun.operation]
            assert (await service.operation(begun.operation)).state == OPERATION_STATE_APPLYING

    async with service_in_memory(path, clock) as service:
        begun, _ = await service.claim(begun.operation)
        reported = await report(service, begun, "KeyError: 2", a_blocked_step(1))
        cause = "a defect keeps it from being resumed, 3 times in a row: KeyError: 2"
        finished = operation_pb2.Finished(state=OPERATION_STATE_BLOCKED, cause=cause)
        assert (reported.finished.seq, reported.finished.finished) == (2, finished)
        assert list((await service.events(begun.operation, 1)).events) == [reported.finished]
        operation = await service.operation(begun.operation)
        assert (operation.state, operation.cause) == (OPERATION_STATE_BLOCKED, cause)
        assert (operation.blocked_reason, operation.blocked_step_count) == (BLOCKED_REASON_DEFECT, 1)
        assert list(operation.blocked_steps) == [a_blocked_step(1)]
        assert await service.abandoned() == []
        with pytest.raises(OperationUnfinished):
            await service.begin("prod")


async def test_the_count_of_defects_restarts_with_a_recovery(service: Client) -> None:
    begun = await service.begin("prod", steps=3)
    for number in range(3):
        await report(service, begun, "broken", a_blocked_step(number))
        begun, claimed = await service.claim(begun.operation)
    # Without a write since then it stays BLOCKED, with the steps that were reported last.
    reported = await report(service, begun, "broken still")
    assert reported.finished.finished.cause == "a defect keeps it from being resumed: broken still"
    assert list((await service.operation(begun.operation)).blocked_steps) == [a_blocked_step(2)]

    begun, claimed = await service.claim(begun.operation)
    assert (claimed.last_seq, claimed.position) == (3, 3)
    await service.advance(begun, seqs=[4])
    for _ in range(2):
        assert not (await report(service, begun)).HasField("finished")
        begun, _ = await service.claim(begun.operation)
    assert (await report(service, begun)).HasField("finished")


async def test_an_operation_blocked_for_another_reason_keeps_its_blocked_steps(service: Client) -> None:
    begun = await service.begin("prod", steps=3)
    request = journal_pb2.FinishOperationRequest(
        operation_id=begun.operation,
        position=2,
        token=begun.token,
        abandon=journal_pb2.Abandon(),
        state=OPERATION_STATE_BLOCKED,
        blocked_reason=BLOCKED_REASON_CONFLICT,
        blocked_steps=[a_blocked_step(1)],
        finished=begun.next_event(finished=operation_pb2.Finished(state=OPERATION_STATE_BLOCKED)),
    )
    await service.peer.call(service.journal.FinishOperation, request)
    begun, _ = await service.claim(begun.operation)
    assert (await report(service, begun)).HasField("finished")
    operation = await service.operation(begun.operation)
    assert (operation.blocked_reason, list(operation.blocked_steps)) == (BLOCKED_REASON_DEFECT, [a_blocked_step(1)])


@pytest.mark.parametrize("stackless", [False, True])
async def test_an_operation_that_sent_nothing_is_never_blocked_by_defects(service: Client, stackless: bool) -> None:
    begun = await service.begin("" if stackless else "prod", none=HERE if stackless else None, steps=None)
    for _ in range(4):
        assert not (await report(service, begun)).HasField("finished")
        begun, _ = await service.claim(begun.operation)
    await service.abandon(begun)
    assert (await service.operation(begun.operation)).state == OPERATION_STATE_FAILED


async def test_only_the_holder_of_the_lease_reports_a_defect(service: Client, clock: Clock) -> None:
    begun = await service.begin("prod", steps=3)
    clock.forward(31)
    await service.claim(begun.operation)
    with pytest.raises(LeaseLost):
        await report(service, begun)


async def test_an_unreadable_journal_blocks_its_operation_until_it_is_fixed(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "stack.db"
    async with service_in_memory(path, clock) as service:
        begun = await service.begin("prod", steps=3)
        await service.advance(begun, [StepRecord(step=0, state=StepState.STEP_STATE_FAILED)], seqs=[2])
        intact = _replace(path, b"\xff")
        clock.forward(31)
        for state in (OPERATION_STATE_APPLYING, OPERATION_STATE_APPLYING, OPERATION_STATE_BLOCKED):
            with pytest.raises(Internal):
                await service.claim(begun.operation)
            assert (await service.operation(begun.operation)).state == state
        operation = await service.operation(begun.operation)
        assert operation.blocked_reason == BLOCKED_REASON_DEFECT
        assert "its journal cannot be read" in operation.cause
        with pytest.raises(Internal):
            await service.claim(begun.operation)
        _replace(path, intact)
        _, claimed = await service.claim(begun.operation)
        assert [record.step for record in claimed.steps] == [0]


def _replace(path: Path, records: bytes) -> bytes:
    """Put *records* into the second write of the only journal; return the records before."""
    with sqlite3.connect(path) as connection:
        [(before,)] = connection.execute("SELECT records FROM journal WHERE position = 2")
        connection.execute("UPDATE journal SET records = ? WHERE position = 2", [records])
    connection.close()
    return bytes(before)
