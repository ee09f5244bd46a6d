"""
A store restored from a backup is older than the platform: nothing is sent without consent
(docs/reference/engine.md, "Restored stores").
"""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from pkger.driver.v1 import driver_pb2
from pkger.model.v1 import operation_pb2

from services.core.errors import OperationUnfinished, PlanStale, PlanUsed, ServiceUnavailable, TokenStale
from tests.applier.faulty import CallFault
from tests.applier.stores import faulty_store
from tests.applier.world import BLOCKED, QUICK, ROLLED_BACK, SUCCEEDED, Case, Events, World, end, world
from tests.apply.packages import an_object, text
from tests.stack.service import Clock, stack_service

RESTORED = operation_pb2.BLOCKED_REASON_STORE_RESTORED

UNKNOWN_OUTCOME = operation_pb2.BLOCKED_REASON_UNKNOWN_OUTCOME


QUICK_LEASE = replace(QUICK, lease=3.0, mutate=1.0, margin=0.5)
"""Timeouts with a short lease, for tests that wait for its end."""


def package(version: int) -> str:
    """Names of dashboards may repeat, so a plan that ran twice leaves two."""
    return text(
        an_object("Label", "red", "red", description=str(version)),
        an_object("Dashboard", "cpu", "cpu", ["red"], description=str(version)),
    )


def back_up(folder: Path) -> None:
    with (
        closing(sqlite3.connect(folder / "stack.db")) as live,
        closing(sqlite3.connect(folder / "backup.db")) as copy,
    ):
        live.backup(copy)


def restore(folder: Path) -> None:
    """Replace the store, which is not open, by the backup."""
    for path in folder.glob("stack.db-*"):
        path.unlink()
    (folder / "backup.db").rename(folder / "stack.db")


def same(case: Case, faulty: World) -> Case:
    """*case*, in the services of *faulty*."""
    faulty.driver.heal()
    return Case(faulty.services, faulty.driver, case.org, case.stack)


async def applied(case: Case, *versions: int) -> None:
    for version in versions:
        assert end(await case.apply(package(version))).state == SUCCEEDED


async def check_blocked(case: Case, name: str) -> None:
    """Check that nothing was sent, that the operation says why, and that it continues only with consent."""
    before = await case.look()
    assert case.driver.sent == []
    operation = await case.operation(name)
    assert (operation.state, operation.blocked_reason) == (BLOCKED, RESTORED)
    assert "the store was restored from a backup" in operation.cause
    with pytest.raises(OperationUnfinished):
        await case.apply(package(9))
    assert (await case.operation(name)).blocked_reason == RESTORED
    assert await case.look() == before
    assert case.driver.sent == []


async def check_that_all_goes_on(case: Case) -> None:
    """Check that the next apply has its effect once; resources that the restored store lacks are adopted."""
    assert end(await case.apply(package(10))).state == SUCCEEDED
    now = await case.look()
    assert set(now.recorded.values()) <= now.ids
    assert end(await case.apply(package(10))).no_change


@pytest.mark.parametrize("since", [1, 5])
async def test_an_apply_on_a_store_of_some_applies_ago_sends_nothing(tmp_path: Path, since: int) -> None:
    async with world(tmp_path) as faulty:
        case = faulty.case()
        await applied(case, 0)
        back_up(tmp_path)
        await applied(case, *range(1, since + 1))
    restore(tmp_path)
    async with world(tmp_path) as faulty:
        case = same(case, faulty)
        before = await case.look()
        events = await case.apply(package(8))
        assert end(events).state == BLOCKED
        await check_blocked(case, events[0].operation_id)
        ended = (await case.recover(events[0].operation_id))[-1].finished
        assert (ended.state, ended.cause) == (
            ROLLED_BACK,
            "the store was restored from a backup, and nothing was sent",
        )
        assert (await case.look()).content == before.content
        assert case.driver.sent == []
        await check_that_all_goes_on(case)
        assert len((await case.look()).ids) == 2


@pytest.mark.parametrize("is_first", [True, False], ids=["of a new stack", "of a stack"])
async def test_a_stored_plan_that_ran_after_the_backup_does_not_run_again(tmp_path: Path, is_first: bool) -> None:
    async with world(tmp_path) as faulty:
        case = faulty.case()
        if not is_first:
            assert end(await case.apply(text(an_object("Label", "red", "red")))).state == SUCCEEDED
        plan = await case.plan(
            text(an_object("Label", "red", "red"), an_object("Dashboard", "cpu", "cpu"))
            if not is_first
            else text(an_object("Dashboard", "cpu", "cpu"))
        )
        back_up(tmp_path)
        assert end(await case.apply_plan(plan)).state == SUCCEEDED
    restore(tmp_path)
    async with world(tmp_path) as faulty:
        case = same(case, faulty)
        before = (await case.look()).ids
        events = await case.apply_plan(plan)
        assert end(events).state == BLOCKED
        await check_blocked(case, events[0].operation_id)
        assert (await case.recover(events[0].operation_id))[-1].finished.state == ROLLED_BACK
        with pytest.raises(PlanUsed):
            await case.apply_plan(plan)
        assert (await case.look()).ids == before
        assert case.driver.sent == []


async def have_nothing_to_do(case: Case) -> None:
    assert end(await case.apply(text(an_object("Label", "red", "red")))).no_change


async def cannot_list(case: Case) -> None:
    case.driver.hide()
    with pytest.raises(ServiceUnavailable):
        await case.apply(text(an_object("Label", "red", "red")))


async def cannot_show_the_token(case: Case) -> None:
    case.driver.unshown = 10**6
    assert end(await case.apply(text(an_object("Label", "red", "red", description="new")))).state == ROLLED_BACK


@pytest.mark.parametrize("end_early", [have_nothing_to_do, cannot_list, cannot_show_the_token])
async def test_operations_that_show_no_token_do_not_hide_that_the_store_was_restored(
    tmp_path: Path, end_early: Callable[[Case], Awaitable[None]]
) -> None:
    """Their leases have higher tokens than the platform has seen."""
    async with world(tmp_path) as faulty:
        case = faulty.case()
        assert end(await case.apply(text(an_object("Label", "red", "red")))).state == SUCCEEDED
        plan = await case.plan(text(an_object("Label", "red", "red"), an_object("Dashboard", "cpu", "cpu")))
        back_up(tmp_path)
        assert end(await case.apply_plan(plan)).state == SUCCEEDED
    restore(tmp_path)
    async with world(tmp_path) as faulty:
        case = same(case, faulty)
        await end_early(case)
        case.driver.heal()
        events = await case.apply_plan(plan)
        assert end(events).state == BLOCKED
        await check_blocked(case, events[0].operation_id)


async def in_the_middle(faulty: World, folder: Path) -> tuple[Case, str]:
    """An apply that succeeded, and a backup from when its first stage was done."""
    case = faulty.case()
    await applied(case, 0)
    case.driver.heal()
    gate = case.driver.gate(1)
    apply = asyncio.create_task(case.apply(package(1) + "\n"))
    await gate.reached.wait()
    back_up(folder)
    gate.opened.set()
    events: Events = await apply
    assert end(events).state == SUCCEEDED
    return case, events[0].operation_id


async def test_an_unfinished_operation_of_the_backup_waits_for_consent_and_is_then_looked_up(tmp_path: Path) -> None:
    async with world(tmp_path, QUICK_LEASE) as faulty:
        case, name = await in_the_middle(faulty, tmp_path)
        await applied(case, 2)
    restore(tmp_path)
    async with world(tmp_path, QUICK_LEASE) as faulty:
        case = same(case, faulty)
        assert (await case.settled()).id == name
        await check_blocked(case, name)
        # The apply after the backup has changed the resources that it had sent.
        assert (await case.recover(name))[-1].finished.state == BLOCKED
        [step] = (await case.operation(name)).blocked_steps
        assert step.reason == operation_pb2.BLOCKED_REASON_CONFLICT
        assert (await case.recover(name, _1="keep"))[-1].finished.state == SUCCEEDED
        await check_that_all_goes_on(case)
        assert len((await case.look()).ids) == 2


async def test_a_secret_of_a_later_operation_stays_when_a_rollback_of_the_backup_is_resumed(tmp_path: Path) -> None:
    """
    The rollback was about to remove the secret with that key; no read shows which operation wrote its present value.
    """
    refused = text(an_object("Bucket", "reserved", "_system"))
    async with world(tmp_path, QUICK_LEASE) as faulty:
        case = faulty.case()
        await applied(case, 0)
        case.driver.heal()
        # After the secret and the bucket, which is rejected: the removal of the secret.
        gate = case.driver.gate(2)
        apply = asyncio.create_task(case.apply(package(0), refused, secrets={"k": "first"}))
        await gate.reached.wait()
        back_up(tmp_path)
        gate.opened.set()
        events: Events = await apply
        assert end(events).state == ROLLED_BACK
        assert end(await case.apply(package(1), secrets={"k": "later"})).state == SUCCEEDED
    restore(tmp_path)
    async with world(tmp_path, QUICK_LEASE) as faulty:
        case = same(case, faulty)
        assert (await case.settled()).id == events[0].operation_id
        await check_blocked(case, events[0].operation_id)
        events = await case.recover(events[0].operation_id)
        assert events[-1].finished.state == ROLLED_BACK
        assert "before: create Bucket 'reserved'" in events[-1].finished.cause
        assert events[-1].finished.cause.endswith("(secrets that stay: 'k')")
        [given_up] = [outcome.skipped for event in events for outcome in event.steps_undone.outcomes]
        assert "another writer may have written the secret since" in given_up.message
        assert await case.services.secret_keys(case.org) == ["k"]


async def test_an_operation_that_only_ended_after_the_backup_is_resumed_and_does_nothing_twice(tmp_path: Path) -> None:
    """Its token is the newest of both, as after a crash; its steps have their effect once."""
    async with world(tmp_path, QUICK_LEASE) as faulty:
        case, name = await in_the_middle(faulty, tmp_path)
        before = await case.look()
    restore(tmp_path)
    async with world(tmp_path, QUICK_LEASE) as faulty:
        case = same(case, faulty)
        operation = await case.settled()
        assert (operation.id, operation.state) == (name, SUCCEEDED)
        now = await case.look()
        assert (now.resources, now.recorded) == (before.resources, before.recorded)


async def test_a_restored_store_whose_clock_was_set_back_continues_from_the_token_of_the_platform(
    tmp_path: Path,
) -> None:
    clock, path = Clock(), tmp_path / "stack.db"
    async with stack_service(path, clock) as store, world(tmp_path, given={"stack": store.address}) as faulty:
        case = faulty.case()
        await applied(case, 0)
        back_up(tmp_path)
        clock.forward(3600)
        await applied(case, 1)
    restore(tmp_path)
    clock.forward(-3600)
    async with stack_service(path, clock) as store, world(tmp_path, given={"stack": store.address}) as faulty:
        case = same(case, faulty)
        events = await case.apply(package(8))
        assert end(events).state == BLOCKED
        await check_blocked(case, events[0].operation_id)
        assert (await case.recover(events[0].operation_id))[-1].finished.state == ROLLED_BACK
        await check_that_all_goes_on(case)


async def test_a_platform_that_refuses_the_token_of_a_restored_store_need_not_say_that_it_fences(
    tmp_path: Path,
) -> None:
    """Each further attempt would be refused as well, so the operation is blocked like any other."""
    clock, path = Clock(), tmp_path / "stack.db"
    async with stack_service(path, clock) as store, world(tmp_path, given={"stack": store.address}) as faulty:
        case = faulty.case()
        await applied(case, 0)
        back_up(tmp_path)
        clock.forward(3600)
        await applied(case, 1)
    restore(tmp_path)
    clock.forward(-3600)
    async with stack_service(path, clock) as store, world(tmp_path, given={"stack": store.address}) as faulty:
        case = same(case, faulty)
        before = (await case.look()).content
        await faulty.driver.deny_fencing()
        events = await case.apply(package(8))
        assert end(events).state == BLOCKED
        operation = await case.operation(events[0].operation_id)
        assert operation.blocked_reason == RESTORED
        assert (await case.look()).content == before
        assert (await case.recover(operation.id))[-1].finished.state == SUCCEEDED
        await check_that_all_goes_on(case)


@pytest.mark.parametrize(("unshown", "state"), [(2, SUCCEEDED), (3, ROLLED_BACK)])
async def test_nothing_is_sent_before_the_platform_has_seen_the_token(
    faulty: World, unshown: int, state: operation_pb2.OperationState.ValueType
) -> None:
    case = await faulty.case_with(text(an_object("Label", "before", "before")))
    case.driver.unshown = unshown
    finished = end(await case.apply(package(0)))
    assert (finished.state, bool(case.driver.sent)) == (state, state == SUCCEEDED)
    assert ("does not answer" in finished.cause) is (state == ROLLED_BACK)
    await check_that_all_goes_on(case)


async def test_the_next_applier_sends_nothing_before_the_platform_has_seen_the_token(faulty: World) -> None:
    case = faulty.case()
    case.driver.fail(calls={1: CallFault.CUT_OFF})
    gate = case.driver.gate(1)
    apply = asyncio.create_task(case.apply(package(0)))
    await gate.reached.wait()
    sent = list(case.driver.sent)
    case.driver.unshown = 10**6
    gate.opened.set()
    with pytest.raises(TokenStale):
        await apply
    name = (await case.settled()).id
    operation = await case.operation(name)
    assert (operation.state, operation.blocked_reason) == (BLOCKED, UNKNOWN_OUTCOME)
    assert [each.reason for each in operation.blocked_steps] == [UNKNOWN_OUTCOME]
    assert case.driver.sent == sent
    case.driver.unshown = 0
    assert (await case.recover(name))[-1].finished.state == SUCCEEDED


def stale(newest: str) -> TokenStale:
    """The error of a driver that has seen the token *newest*, which may be no token."""
    error = TokenStale("scope", 1, 2)
    error.metadata["newest"] = newest
    return error


FAULTY_TOKENS = [
    pytest.param(driver_pb2.Fence(token=2**62), str(2**62), id="highest"),
    pytest.param(driver_pb2.Fence(token=2**63 - 1), str(2**63 - 1), id="above"),
    pytest.param(stale(str(2**63 - 1)), str(2**63 - 1), id="as-error"),
    pytest.param(stale("9" * 5000), "9" * 20, id="of-5000-digits"),
]


@pytest.mark.parametrize(("seen", "shown"), FAULTY_TOKENS)
async def test_a_token_without_a_successor_is_a_faulty_answer_and_is_not_stored(
    faulty: World, seen: driver_pb2.Fence | TokenStale, shown: str
) -> None:
    """If it were stored, no later operation could have a higher token, and the stack were blocked for ever."""
    case = await faulty.case_with(package(0))
    before = await case.look()
    case.driver.seen = seen
    finished = end(await case.apply(package(1)))
    assert finished.state == ROLLED_BACK
    assert finished.cause.startswith("the platform 'embedded' at ")
    assert f" it has seen fencing token {shown} of stack {finished.stack_id}, after which " in finished.cause
    assert case.driver.sent == []
    assert await case.look() == before
    case.driver.heal()
    await check_that_all_goes_on(case)


async def test_an_unfinished_operation_continues_once_the_platform_answers_with_a_token_that_has_a_successor(
    faulty: World,
) -> None:
    case = faulty.case()
    case.driver.fail(calls={1: CallFault.CUT_OFF})
    gate = case.driver.gate(1)
    apply = asyncio.create_task(case.apply(package(0)))
    await gate.reached.wait()
    case.driver.seen = driver_pb2.Fence(token=2**63 - 1)
    gate.opened.set()
    with pytest.raises(TokenStale):
        await apply
    name = (await case.settled()).id
    for _ in range(2):
        operation = await case.operation(name)
        assert (operation.state, operation.blocked_reason) == (BLOCKED, UNKNOWN_OUTCOME)
        assert operation.cause.startswith("the platform 'embedded' at ")
        assert (await case.recover(name))[-1].finished.state == BLOCKED
    case.driver.seen = None
    assert (await case.recover(name))[-1].finished.state == SUCCEEDED


async def test_an_apply_with_nothing_to_do_shows_no_token(faulty: World) -> None:
    case = await faulty.case_with(package(0))
    case.driver.unshown = 1
    assert end(await case.apply(package(0))).no_change
    assert case.driver.unshown == 1


async def test_a_plan_whose_operation_showed_its_token_and_did_not_start_can_run(tmp_path: Path) -> None:
    """Its new stack, which has an id of the plan, was removed with that operation: the platform alone knows the id."""
    async with (
        faulty_store(tmp_path / "stack.db") as (journal, address),
        world(tmp_path, given={"stack": address}) as faulty,
    ):
        case = faulty.case()
        plan = await case.plan(package(1))
        journal.refused_starts = 1
        with pytest.raises(PlanStale):
            await case.apply_plan(plan)
        assert end(await case.apply_plan(plan)).state == SUCCEEDED
