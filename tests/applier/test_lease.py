"""The right to write: lost leases, unavailable stores, stale tokens."""

import asyncio
import gc
import sqlite3
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from pkger.driver.v1 import driver_pb2
from pkger.driver.v1.driver_pb2_grpc import DriverServiceStub
from pkger.journal.v1 import journal_pb2
from pkger.model.v1.object_pb2 import StackRef
from pkger.model.v1.plan_pb2 import OPERATION_KIND_APPLY

from applier_svc.operation.lease import Lease, take
from services.core.errors import (
    LeaseLost,
    OperationNotFound,
    RequestInvalid,
    ServiceUnavailable,
    StackLeased,
    TokenStale,
)
from services.rpc.call import loop_time
from services.rpc.client import Peer
from tests.applier.faulty import CallFault, ItemFault
from tests.applier.packages import FRESH, MIXED, UPDATED
from tests.applier.stores import faulty_store
from tests.applier.test_events import SMALL
from tests.applier.world import BLOCKED, QUICK, ROLLED_BACK, SUCCEEDED, World, check, end, world
from tests.stack.service import Clock, stack_service
from tests.transport import transport_of_loop

HASTY = replace(QUICK, mutate=0.3, margin=0.0, lease=1.0)
"""Timeouts of an applier that retries calls to the store for a second."""


@pytest.mark.real_time
async def test_the_second_of_two_applies_is_refused_with_the_holder_of_the_lease(faulty: World) -> None:
    case = faulty.case()
    gate = case.driver.gate(0)
    first = asyncio.create_task(case.apply(SMALL))
    await gate.reached.wait()
    with pytest.raises(StackLeased) as refused:
        await case.apply(FRESH)
    gate.opened.set()
    events = await first
    assert end(events).state == SUCCEEDED
    assert refused.value.metadata["operation"] == events[0].operation_id
    assert refused.value.metadata["holder"]
    assert end(await case.apply(SMALL)).no_change


@pytest.mark.real_time
@pytest.mark.parametrize("call", [1, 2])
async def test_an_applier_that_lost_its_lease_sends_nothing_more(tmp_path: Path, call: int) -> None:
    clock = Clock()
    async with (
        stack_service(tmp_path / "stack.db", clock) as store,
        world(tmp_path, replace(QUICK, recovery=3600.0), given={"stack": store.address}) as faulty,
    ):
        case = faulty.case()
        gate = case.driver.gate(call)
        stream = case.events(SMALL)
        operation = (await anext(stream)).operation_id
        await gate.reached.wait()
        clock.forward(31)
        await store.claim(operation)
        gate.opened.set()
        with pytest.raises(LeaseLost):
            [event async for event in stream]
        assert case.driver.calls == call + 1


@pytest.mark.parametrize("first_ends", ["first", "last"])
async def test_an_applier_that_claims_its_own_operation_ends_both_runs_of_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, first_ends: str
) -> None:
    """It was stopped for longer than its lease; then the next apply resumes the unfinished operation."""
    clock = Clock()
    async with (
        stack_service(tmp_path / "stack.db", clock) as store,
        world(tmp_path, replace(QUICK, recovery=3600.0), given={"stack": store.address}) as faulty,
    ):
        case = faulty.case()
        gates = [case.driver.gate(call) for call in range(2)]
        lost = case.events(SMALL)
        await anext(lost)
        await gates[0].reached.wait()
        clock.forward(31)
        next_one = asyncio.create_task(case.apply(SMALL))
        await gates[1].reached.wait()
        if first_ends == "last":
            gates[1].opened.set()
            assert end(await next_one).no_change
        gates[0].opened.set()
        with pytest.raises((LeaseLost, TokenStale)):
            [event async for event in lost]
        gates[1].opened.set()

        assert end(await next_one).no_change
        assert len((await case.look()).ids) == 3
    # The exception of a task that is never awaited is logged when the task is collected.
    gc.collect()
    assert [record for record in caplog.records if record.name == "asyncio" and record.exc_info] == []


async def test_the_next_applier_looks_up_an_unknown_outcome(faulty: World) -> None:
    case = faulty.case()
    case.driver.fail(items={0: ItemFault.LOSE_RESPONSE}, calls={1: CallFault.STALE})
    with pytest.raises(TokenStale):
        await case.apply(SMALL)
    assert len((await case.look()).ids) == 1
    assert (await case.settled()).state == SUCCEEDED
    now = await case.look()
    assert set(now.recorded.values()) == now.ids
    assert len(now.ids) == 3


@pytest.mark.real_time
async def test_a_lease_is_renewed_for_as_long_as_its_operation_lasts(tmp_path: Path) -> None:
    timeouts = replace(QUICK, lease=1.5, mutate=1.0, margin=0.0)
    async with (
        faulty_store(tmp_path / "stack.db") as (journal, address),
        world(tmp_path, timeouts, given={"stack": address}) as faulty,
    ):
        case = faulty.case()
        gate = case.driver.gate(0)
        operation = asyncio.create_task(case.apply(SMALL))
        await journal.renewed.wait()
        gate.opened.set()
        assert end(await operation).state == SUCCEEDED


@pytest.mark.parametrize("lost", [1, 3])
async def test_a_raise_of_the_token_without_a_response_is_retried(tmp_path: Path, lost: int) -> None:
    async with (
        faulty_store(tmp_path / "stack.db") as (journal, address),
        world(tmp_path, given={"stack": address}) as faulty,
    ):
        case = await faulty.case_with(FRESH)
        before = await case.look()
        journal.lost_raises = lost
        case.driver.fail(items={0: ItemFault.LOSE_RESPONSE, 3: ItemFault.REJECT})
        assert end(await case.apply(UPDATED)).state == ROLLED_BACK
        assert journal.lost_raises == 0
        assert await case.look() == before


async def test_nothing_is_sent_while_the_token_is_unknown(tmp_path: Path) -> None:
    async with (
        faulty_store(tmp_path / "stack.db") as (journal, address),
        world(tmp_path, HASTY, given={"stack": address}) as faulty,
    ):
        case = await faulty.case_with(FRESH)
        before = await case.look()
        journal.lost_raises = 1000
        case.driver.fail(items={0: ItemFault.LOSE_RESPONSE, 3: ItemFault.REJECT})
        with pytest.raises((ServiceUnavailable, LeaseLost)):
            await case.apply(UPDATED)
        journal.lost_raises = 0
        assert (await case.settled()).state in (SUCCEEDED, ROLLED_BACK)
        if (await case.look()) != before:
            assert end(await case.apply(UPDATED)).no_change


@pytest.mark.parametrize("first", ["renewal", "raise"])
async def test_the_token_is_not_raised_during_a_renewal(tmp_path: Path, first: str) -> None:
    async with (
        faulty_store(tmp_path / "stack.db") as (journal, address),
        Peer("stack", address, connect=transport_of_loop().connect) as store,
    ):
        begin = journal_pb2.BeginOperationRequest(
            stack=StackRef(name="prod"),
            create_missing=True,
            operation_id="operation-1",
            kind=OPERATION_KIND_APPLY,
            holder="me",
        )
        taken = (await take(store, begin, QUICK)).lease
        await taken.drop()
        lease = Lease(store, taken.stack, taken.operation, taken.token, loop_time() - 10, QUICK)
        journal.slow_renewals = 0.05
        renewal, raising = lease.hold(25), lease.raise_token()
        await asyncio.gather(*([renewal, raising] if first == "renewal" else [raising, renewal]))
        assert lease.token == taken.token + 1
        assert (await lease.hold(0.0)).token == taken.token + 1
        await lease.confirm()
        await lease.drop()


async def test_an_operation_that_a_restored_store_lacks_has_lost_its_lease(tmp_path: Path) -> None:
    """It sends nothing more, although its lease has not expired."""
    async with (
        faulty_store(tmp_path / "stack.db") as (_, address),
        Peer("stack", address, connect=transport_of_loop().connect) as store,
    ):
        begin = journal_pb2.BeginOperationRequest(
            stack=StackRef(name="prod"),
            create_missing=True,
            operation_id="operation-1",
            kind=OPERATION_KIND_APPLY,
            holder="me",
        )
        taken = (await take(store, begin, QUICK)).lease
        await taken.drop()
        for renews in (True, False):
            lease = Lease(store, taken.stack, "operation-0", taken.token, loop_time() - 10, QUICK)
            with pytest.raises(OperationNotFound):
                await (lease.hold(25) if renews else lease.confirm())
            with pytest.raises(OperationNotFound):
                await lease.hold(0.0)
            await lease.drop()


@pytest.mark.real_time
@pytest.mark.parametrize(
    ("before", "change", "call"),
    [pytest.param("", SMALL, 2, marks=pytest.mark.slow), (FRESH, MIXED, 5)],
    ids=["open", "sealed"],
)
async def test_an_outcome_that_cannot_be_recorded_is_recorded_when_the_store_is_back(
    tmp_path: Path, before: str, change: str, call: int
) -> None:
    async with AsyncExitStack() as stopping:
        _, address = await stopping.enter_async_context(faulty_store(tmp_path / "stack.db"))
        async with world(tmp_path, HASTY, given={"stack": address}) as faulty:
            case = await faulty.case_with(*filter(None, [before]))
            gate = case.driver.gate(call)
            operation = asyncio.create_task(case.apply(change))
            await gate.reached.wait()
            await stopping.aclose()
            gate.opened.set()
            with pytest.raises(ServiceUnavailable, match="the stack service"):
                await operation
    async with world(tmp_path) as faulty:
        case = faulty.case()
        assert (await case.settled()).state == SUCCEEDED
        now = await case.look()
        assert set(now.recorded.values()) == now.ids
        assert end(await case.apply(change)).no_change


async def test_a_rollback_retries_to_read_the_inventory(tmp_path: Path) -> None:
    async with (
        faulty_store(tmp_path / "stack.db") as (journal, address),
        world(tmp_path, given={"stack": address}) as faulty,
    ):
        case = await faulty.case_with(FRESH)
        before = await case.look()
        case.driver.fail(items={3: ItemFault.REJECT})
        gate = case.driver.gate(0)
        operation = asyncio.create_task(case.apply(UPDATED))
        await gate.reached.wait()
        journal.unread = 3
        gate.opened.set()
        assert end(await operation).state == ROLLED_BACK
        assert journal.unread == 0
        assert await case.look() == before


async def test_a_record_without_a_response_is_retried(tmp_path: Path) -> None:
    async with (
        faulty_store(tmp_path / "stack.db") as (journal, address),
        world(tmp_path, given={"stack": address}) as faulty,
    ):
        case = faulty.case()
        journal.losses = 1
        events = await case.apply(SMALL)
        check(await case.look(), events, await case.look(), (await case.look()).content)
        assert end(events).state == SUCCEEDED
        record = (await case.look()).record
        assert record is not None
        assert record.generation == 1
        journal.losses = 1
        assert end(await case.uninstall()).state == SUCCEEDED
        assert (await case.look()).record is None


async def test_an_operation_whose_end_is_recorded_without_an_answer_is_over(tmp_path: Path) -> None:
    async with (
        faulty_store(tmp_path / "stack.db") as (journal, address),
        world(tmp_path, HASTY, given={"stack": address}) as faulty,
    ):
        case = faulty.case()
        journal.losses = 1000
        with pytest.raises(ServiceUnavailable):
            await case.apply(SMALL)
        journal.losses = 0
        now = await case.look()
        assert set(now.recorded.values()) == now.ids
        assert end(await case.apply(SMALL)).no_change


async def test_a_token_that_the_store_did_not_issue_blocks_and_the_store_continues_from_it(
    faulty: World,
) -> None:
    case = await faulty.case_with(FRESH)
    before = await case.look()
    assert before.record is not None
    platform = faulty.services.peers["platform"]
    newer = driver_pb2.MutateRequest(org=case.org, fence=driver_pb2.Fence(scope=before.record.id, token=2**61))
    await platform.call(DriverServiceStub(platform.channel).Mutate, newer)
    case.driver.heal()
    events = await case.apply(UPDATED)
    assert (end(events).state, case.driver.calls) == (BLOCKED, 0)
    assert "the platform has seen token 2305843009213693952" in end(events).cause
    assert await case.look() == before
    assert (await case.recover(events[0].operation_id))[-1].finished.state == ROLLED_BACK
    assert end(await case.apply(UPDATED)).state == SUCCEEDED


async def test_no_caller_of_the_platform_can_use_up_the_tokens_of_a_stack(faulty: World) -> None:
    """The store counts on from the token that the platform has seen, and its numbers end at 2^63 - 1."""
    case = await faulty.case_with(FRESH)
    record = (await case.look()).record
    assert record is not None
    platform = faulty.services.peers["platform"]
    last = driver_pb2.MutateRequest(org=case.org, fence=driver_pb2.Fence(scope=record.id, token=2**63 - 1))
    with pytest.raises(RequestInvalid, match=r"^fence\.token: "):
        await platform.call(DriverServiceStub(platform.channel).Mutate, last)
    assert end(await case.apply(UPDATED)).state == SUCCEEDED


async def test_the_platform_distinguishes_fences_of_stacks_and_of_transient_stacks(tmp_path: Path) -> None:
    """It forgets the latter after a day; the tokens of stacks show that a store was restored."""
    async with world(tmp_path) as faulty:
        case = faulty.case()
        assert end(await case.apply(FRESH)).state == SUCCEEDED
        before = await case.look()
        assert before.record is not None
        assert end(await faulty.case("").apply(FRESH)).state == SUCCEEDED
    with sqlite3.connect(tmp_path / "platform.db") as platform:
        kept = platform.execute("SELECT scope FROM fences WHERE NOT is_transient").fetchall()
        passing = platform.execute("SELECT count(*) FROM fences WHERE is_transient").fetchone()
    platform.close()
    assert (kept, passing) == ([(before.record.id,)], (1,))
