"""Who may write: leases that are lost, stores that go away, tokens that are old."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from pkger.driver.v1 import driver_pb2
from pkger.driver.v1.driver_pb2_grpc import DriverServiceStub

from services.core.errors import StackLeased
from services.core.model import Target
from tests.applier.faulty import CallFault, ItemFault
from tests.applier.packages import FRESH, MIXED, UPDATED
from tests.applier.stores import faulty_store
from tests.applier.test_events import OWNED, SMALL
from tests.applier.world import BLOCKED, QUICK, SUCCEEDED, World, check, end, plan_of, told, world
from tests.stack.service import Clock, stack_service

HASTY = replace(QUICK, mutate=1.0, margin=0.0, undo=3.8, lease=5.0)
"""Asks a store that does not answer for 0.2 s, and then has 3.8 s to undo everything."""


async def test_the_second_of_two_applies_is_told_who_is_at_work(faulty: World) -> None:
    case = faulty.case()
    gate = case.driver.gate(0)
    first = asyncio.create_task(case.apply(SMALL))
    await gate.reached.wait()
    with pytest.raises(StackLeased) as refused:
        await case.apply(FRESH)
    gate.opened.set()
    events = await first
    assert end(events).state == SUCCEEDED
    assert refused.value.metadata["operation"] == events[0].operation
    assert refused.value.metadata["holder"]
    assert end(await case.apply(SMALL)).no_change


async def test_an_applier_that_lost_its_lease_sends_nothing_more(tmp_path: Path) -> None:
    clock = Clock()
    patience = replace(QUICK, clock=lambda: clock.now / 1_000_000)
    async with (
        stack_service(tmp_path / "stack.db", clock) as store,
        world(tmp_path, patience, given={"stack": store.address}) as faulty,
    ):
        case = faulty.case()
        gate = case.driver.gate(1)
        operation = asyncio.create_task(case.apply(SMALL))
        await gate.reached.wait()
        clock.forward(31)
        other = await store.begin("s", target=Target(org=case.org), operation="another")
        gate.opened.set()
        events = await operation
        lost = f"the lease with token 1 on stack '{other.stack.id}' is over; nothing was recorded"
        assert told(events) == [
            "accepted 4 steps",
            "stage 0 labels: 1",
            ["done: create Label red"],
            "stage 1 buckets, dashboards: 2",
            ["done: create Bucket raw", "done: create Dashboard cpu"],
            "stage 2 associations: 1",
            ["skipped: attach Bucket raw red"],
            [f"BLOCKED {lost}; and what is left could not be recorded: {lost}", OWNED],
        ]
        assert case.driver.calls == 2
        assert (await store.get(other.stack.id)).resource_count == 0


async def test_an_applier_that_learns_at_the_end_that_its_lease_is_lost_does_not_undo(tmp_path: Path) -> None:
    clock = Clock()
    async with (
        stack_service(tmp_path / "stack.db", clock) as store,
        world(tmp_path, given={"stack": store.address}) as faulty,
    ):
        case = faulty.case()
        gate = case.driver.gate(2)
        operation = asyncio.create_task(case.apply(SMALL))
        await gate.reached.wait()
        clock.forward(31)
        await store.begin("s", target=Target(org=case.org), operation="another")
        gate.opened.set()
        events = await operation
        assert told(events)[-4:-1] == [
            ["undo", "skipped: attach Bucket raw red"],
            ["undo", "skipped: create Dashboard cpu", "skipped: create Bucket raw"],
            ["undo", "skipped: create Label red"],
        ]
        assert end(events).state == BLOCKED
        assert case.driver.calls == 3


async def test_a_write_in_doubt_stays_in_doubt_when_the_right_to_write_is_lost(faulty: World) -> None:
    case = faulty.case()
    case.driver.fail(items={0: ItemFault.LOSE_RESPONSE}, calls={1: CallFault.STALE})
    events = await case.apply(SMALL)
    assert told(events)[2] == ["unknown: create Label red"]
    assert end(events).state == BLOCKED
    assert len((await case.look()).ids) == 1


async def test_a_lease_is_renewed_for_as_long_as_its_operation_lasts(tmp_path: Path) -> None:
    patience = replace(QUICK, lease=1.5, mutate=1.0, margin=0.0, undo=0.0)
    async with (
        faulty_store(tmp_path / "stack.db") as (journal, address),
        world(tmp_path, patience, given={"stack": address}) as faulty,
    ):
        case = faulty.case()
        gate = case.driver.gate(0)
        operation = asyncio.create_task(case.apply(SMALL))
        await journal.renewed.wait()
        gate.opened.set()
        assert end(await operation).state == SUCCEEDED


async def test_a_record_that_cannot_be_written_undoes_the_operation(tmp_path: Path) -> None:
    async with AsyncExitStack() as stopping:
        _, address = await stopping.enter_async_context(faulty_store(tmp_path / "stack.db"))
        async with world(tmp_path, HASTY, given={"stack": address}) as faulty:
            case = faulty.case()
            gate = case.driver.gate(2)
            operation = asyncio.create_task(case.apply(SMALL))
            await gate.reached.wait()
            await stopping.aclose()
            gate.opened.set()
            cause = f"the outcome could not be recorded: the stack service at {address} does not answer: no connection"
            assert told(await operation)[-5:] == [
                f"undo of 4: {cause}",
                ["undo", "done: attach Bucket raw red"],
                ["undo", "done: create Dashboard cpu", "done: create Bucket raw"],
                ["undo", "done: create Label red"],
                [f"ROLLED_BACK {cause}", []],
            ]
            assert await faulty.services.resources(org=case.org) == []
    async with stack_service(tmp_path / "stack.db", Clock()) as store:
        assert await store.names() == []


async def test_past_the_seal_a_record_that_cannot_be_written_blocks(tmp_path: Path) -> None:
    async with AsyncExitStack() as stopping:
        _, address = await stopping.enter_async_context(faulty_store(tmp_path / "stack.db"))
        patience = replace(HASTY, lease=2.0, undo=0.9)
        async with world(tmp_path, patience, given={"stack": address}) as faulty:
            case = await faulty.case_with(FRESH)
            gate = case.driver.gate(5)
            operation = asyncio.create_task(case.apply(MIXED))
            await gate.reached.wait()
            await stopping.aclose()
            gate.opened.set()
            events = await operation
            assert "undo_started" not in [event.WhichOneof("event") for event in events]
            assert end(events).state == BLOCKED
            assert "could not be recorded" in end(events).cause
            inventory, planned = end(events).inventory, plan_of(events).inventory
            held = {resource.id for resource in await faulty.services.resources(org=case.org)}
            assert {entry.remote_id for entry in inventory} == held
            assert [(entry.key, entry.associations) for entry in inventory] == [
                (entry.key, entry.associations) for entry in planned
            ]


async def test_a_lost_answer_to_the_record_is_asked_for_again(tmp_path: Path) -> None:
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


async def test_an_operation_undone_though_it_was_recorded_says_that_the_record_is_wrong(tmp_path: Path) -> None:
    async with (
        faulty_store(tmp_path / "stack.db") as (journal, address),
        world(tmp_path, HASTY, given={"stack": address}) as faulty,
    ):
        case = faulty.case()
        journal.losses = 1000
        events = await case.apply(SMALL)
        assert end(events).state == BLOCKED
        assert "is at generation 1, the plan was made from 0" in end(events).cause
        assert (await case.look()).content == []
        journal.losses = 0
        assert end(await case.apply(SMALL)).state == SUCCEEDED
        now = await case.look()
        assert set(now.recorded.values()) == now.ids


async def test_an_old_token_is_refused_by_the_platform_and_nothing_is_undone(faulty: World) -> None:
    case = await faulty.case_with(FRESH)
    before = await case.look()
    assert before.record is not None
    platform = faulty.services.peers["platform"]
    newer = driver_pb2.MutateRequest(org=case.org, fence=driver_pb2.Fence(scope=before.record.id, token=1000))
    await platform.call(DriverServiceStub(platform.channel).Mutate, newer)
    case.driver.heal()
    events = await case.apply(UPDATED)
    refused = f"token 2 for '{before.record.id}' is older than 1000; nothing was written"
    owned = [f"{kind} {name}" for kind, name in before.recorded]
    assert told(events)[1:] == [
        "stage 0 labels: 2",
        ["skipped: update Label green", "skipped: update Label red"],
        [f"BLOCKED {refused}", owned],
    ]
    assert case.driver.calls == 1
    assert await case.look() == before
