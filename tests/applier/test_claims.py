"""
Two stacks that claim the same resource or name (docs/reference/engine.md, "Cases", cases 1 to 3 and 6).
"""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from pkger.driver.v1 import driver_pb2
from pkger.model.v1 import operation_pb2

from services.core.errors import PlanStale, RequestInvalid, ResourceOwned
from tests.applier.faulty import ItemFault, Memory
from tests.applier.test_blocked import ended
from tests.applier.test_cancel import in_the_middle_of
from tests.applier.world import BLOCKED, QUICK, ROLLED_BACK, SUCCEEDED, Case, World, end, world
from tests.apply.packages import an_object, text
from tests.drivers.client import attach

OWNED = operation_pb2.REJECTION_REASON_RESOURCE_OWNED
LABEL = an_object("Label", "l", "sensors")
BUCKET = an_object("Bucket", "b", "raw")
SHARED = text(LABEL, BUCKET)
"""A label, then a bucket."""

BOARD = an_object("Dashboard", "d", "board")


def another(case: Case, stack: str = "theirs") -> Case:
    """A second stack in the same organization."""
    return replace(case, stack=stack)


def reasons(events: list[operation_pb2.OperationEvent]) -> list[int]:
    outcomes = [outcome for event in events for outcome in event.steps_ended.outcomes]
    return [outcome.failed.reason for outcome in outcomes if outcome.HasField("failed")]


@pytest.mark.parametrize("ending", ["goes on", "is cancelled", "fails"])
async def test_no_other_operation_gets_what_an_unfinished_one_made(faulty: World, ending: str) -> None:
    """Case 1: A has created the label, and is about to create the bucket."""
    case = faulty.case()
    theirs = another(case)
    if ending == "fails":
        case.driver.fail({1: ItemFault.REJECT})
    events, mine, opened = await in_the_middle_of(case, 1, SHARED)

    with pytest.raises(ResourceOwned, match=f"{events[0].operation_id} of stack 's'"):
        await theirs.apply(text(an_object("Label", "mine", "sensors")))

    if ending == "is cancelled":
        await faulty.services.cancel(events[0].operation_id)
    opened.set()
    await mine
    assert end(events).state == (SUCCEEDED if ending == "goes on" else ROLLED_BACK)
    assert end(await theirs.apply(text(an_object("Label", "mine", "sensors")))).state == SUCCEEDED
    # Once A is done, the label is shared, and the bucket exists.
    assert len((await theirs.look()).ids) == (2 if ending == "goes on" else 1)


async def test_no_other_operation_takes_a_claimed_name(faulty: World) -> None:
    """Case 1: A is about to create the label, so its id is not known yet."""
    case = faulty.case()
    events, mine, opened = await in_the_middle_of(case, 0, SHARED)

    refused = await another(case).apply(text(an_object("Label", "mine", "sensors")))

    assert (end(refused).state, reasons(refused)) == (ROLLED_BACK, [OWNED])
    assert f"the name 'sensors' is claimed by operation {events[0].operation_id} of stack 's'" in end(refused).cause
    opened.set()
    await mine
    assert end(events).state == SUCCEEDED
    assert (await another(case).look()).record is None


async def test_a_refused_step_keeps_no_other_from_being_undone(faulty: World) -> None:
    """The other steps run, and are undone."""
    case = faulty.case()
    _, mine, opened = await in_the_middle_of(case, 0, text(LABEL))
    both = text(an_object("Label", "mine", "sensors"), an_object("Label", "other", "other"))

    refused = await another(case).apply(both)

    assert end(refused).state == ROLLED_BACK
    assert [event.rollback_started.step_count for event in refused if event.HasField("rollback_started")] == [1]
    opened.set()
    await mine
    assert [json.loads(spec)["name"] for _, spec, *_ in (await case.look()).content] == ["sensors"]


async def test_no_other_operation_gets_what_a_blocked_one_made(faulty: World) -> None:
    case = faulty.case()
    theirs = another(case)
    # The label, the bucket, which the platform rejects, and the deletion of the label.
    case.driver.fail({1: ItemFault.REJECT, 2: ItemFault.REJECT}, lasting=True)
    events = await case.apply(SHARED)
    assert end(events).state == BLOCKED
    case.driver.heal()

    with pytest.raises(ResourceOwned, match=events[0].operation_id):
        await theirs.apply(text(LABEL))

    assert ended(await case.recover(events[0].operation_id)).state == ROLLED_BACK
    assert end(await theirs.apply(text(LABEL))).state == SUCCEEDED


@pytest.mark.parametrize("first", ["mine", "theirs"])
async def test_of_two_that_adopt_at_once_one_succeeds_and_the_other_writes_nothing(faulty: World, first: str) -> None:
    """Case 2: both were planned before either began."""
    case = faulty.case()
    theirs = another(case)
    await case.driver.change(
        case.org, driver_pb2.Mutation(create=driver_pb2.CreateResource(kind="Label", spec_json='{"name":"sensors"}'))
    )
    case.driver.heal()
    plans = {"mine": await case.plan(text(LABEL, BOARD)), "theirs": await theirs.plan(text(LABEL, BOARD))}
    winner, loser = (case, theirs) if first == "mine" else (theirs, case)
    second = "theirs" if first == "mine" else "mine"
    gate = case.driver.gate(0)
    won = asyncio.create_task(winner.apply_plan(plans[first]))
    await gate.reached.wait()

    with pytest.raises((PlanStale, ResourceOwned), match=f"stack '{winner.stack}'"):
        await loser.apply_plan(plans[second])

    gate.opened.set()
    assert end(await won).state == SUCCEEDED
    assert (await loser.look()).record is None
    # The label, which is not as the package wants it, and the dashboard.
    assert case.driver.calls == 2


async def with_a_bucket_of_a_person(faulty: World) -> Case:
    """A stack with a label, which a person has attached to a bucket that no stack has."""
    case = await faulty.case_with(text(LABEL))
    creation = driver_pb2.CreateResource(kind="Bucket", spec_json='{"name":"raw"}')
    await case.driver.change(case.org, driver_pb2.Mutation(create=creation))
    ids = dict((await case.look()).ids)
    await case.driver.change(case.org, attach("Bucket", ids["Bucket"], ids["Label"]))
    case.driver.heal()
    return case


@pytest.mark.parametrize("ending", ["goes on", "fails"])
async def test_a_resource_that_loses_its_label_is_not_adopted_meanwhile(faulty: World, ending: str) -> None:
    """The label is deleted, so it is detached first. A rollback attaches it again."""
    case = await with_a_bucket_of_a_person(faulty)
    before = (await case.look()).content
    if ending == "fails":
        # The creation, the detachment, and the deletion.
        case.driver.fail({2: ItemFault.REJECT})
    events, mine, opened = await in_the_middle_of(case, 2, text(BOARD))

    with pytest.raises(ResourceOwned, match=f"{events[0].operation_id} of stack 's'"):
        await another(case).apply(text(BUCKET))

    opened.set()
    await mine
    assert end(events).state == (SUCCEEDED if ending == "goes on" else ROLLED_BACK)
    assert ending == "goes on" or (await case.look()).content == before
    assert end(await another(case).apply(text(BUCKET))).state == SUCCEEDED


async def test_a_label_is_not_detached_from_a_resource_that_was_adopted_since_the_plan(faulty: World) -> None:
    case = await with_a_bucket_of_a_person(faulty)
    plan = await case.plan(text(BOARD))
    assert end(await another(case).apply(text(BUCKET))).state == SUCCEEDED
    before = (await case.look()).content

    refused = await case.apply_plan(plan)

    assert (end(refused).state, reasons(refused)) == (ROLLED_BACK, [OWNED])
    assert "is owned by stack 'theirs'" in end(refused).cause
    assert (await case.look()).content == before


async def test_two_creations_of_one_display_name_do_not_run_at_once(faulty: World) -> None:
    """Case 3: the platform keeps no idempotency keys, so a lookup has to distinguish the two resources."""
    faulty.driver.memory = Memory.NOTHING
    case = faulty.case()
    theirs = another(case)
    case.driver.fail({0: ItemFault.LOSE_RESPONSE})
    gate = case.driver.gate(0)
    mine = asyncio.create_task(case.apply(text(BOARD)))
    await gate.reached.wait()
    waits = asyncio.Event()

    async def apply_theirs() -> list[operation_pb2.OperationEvent]:
        events = []
        async for event in theirs.events(text(BOARD)):
            events.append(event)
            if event.HasField("steps_waiting"):
                assert (event.steps_waiting.stack_name, list(event.steps_waiting.steps)) == ("s", [0])
                waits.set()
        return events

    second = asyncio.create_task(apply_theirs())
    await waits.wait()
    gate.opened.set()

    assert end(await mine).state == SUCCEEDED
    assert end(await second).state == SUCCEEDED
    ids = [set((await each.look()).recorded.values()) for each in (case, theirs)]
    assert len(ids[0] | ids[1]) == 2
    assert ids[0] | ids[1] == (await case.look()).ids


@pytest.mark.parametrize("is_lasting", [False, True])
async def test_a_creation_that_is_answered_with_a_resource_of_another_stack_is_unknown(
    faulty: World, is_lasting: bool
) -> None:
    """Whatever the platform answers later, the resource of the other stack is not deleted."""
    case = await faulty.case_with(text(BOARD))
    theirs = another(case)
    [(_, board)] = (await case.look()).ids
    before = await case.look()
    case.driver.heal()
    case.driver.mistake({0: board, 1: board} if is_lasting else {0: board})

    events = await theirs.apply(text(an_object("Dashboard", "mine", "mine")))

    [unknown, *_] = [each for event in events for each in event.steps_ended.outcomes]
    assert f"reports a new resource, but resource {board} is owned by stack 's'" in unknown.unknown.message
    if not is_lasting:
        assert end(events).state == ROLLED_BACK
        assert await case.look() == before
        assert (await theirs.look()).record is None
        return
    assert end(events).state == BLOCKED
    [step] = (await theirs.operation(events[0].operation_id)).blocked_steps
    assert (step.reason, step.found_resource_id) == (operation_pb2.BLOCKED_REASON_CONFLICT, "")
    with pytest.raises(RequestInvalid, match="belongs to stack s"):
        await theirs.recover(events[0].operation_id, _0=f"adopt:{board}")
    case.driver.heal()
    assert ended(await theirs.recover(events[0].operation_id)).state == SUCCEEDED
    now, mine = await case.look(), (await theirs.look()).recorded
    assert now.recorded == before.recorded
    assert now.ids == before.ids | set(mine.values())


@pytest.fixture
async def impatient(tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path, replace(QUICK, lease=1.0, mutate=0.3, margin=0.1)) as running:
        yield running


async def test_a_step_that_waits_longer_than_a_lease_fails(impatient: World) -> None:
    case = impatient.case()
    assert end(await case.apply(text(LABEL))).state == SUCCEEDED
    # A secret that stays claimed, as its operation is blocked.
    case.driver.heal()
    case.driver.fail({2: ItemFault.REJECT, 3: ItemFault.REJECT}, lasting=True)
    package = text(LABEL, an_object("Label", "m", "more"), an_object("Bucket", "b", "_system"))
    blocked = await case.apply(package, secrets={"key": "1"})
    assert end(blocked).state == BLOCKED
    case.driver.heal()

    waited = await another(case).apply(text(an_object("Label", "o", "other")), secrets={"key": "2"})

    assert end(waited).state == ROLLED_BACK
    assert reasons(waited) == [OWNED]
    assert f"the secret 'key' is claimed by operation {blocked[0].operation_id} of stack 's'" in end(waited).cause


async def test_a_cancelled_operation_waits_no_longer(faulty: World) -> None:
    case = faulty.case()
    assert end(await case.apply(text(LABEL))).state == SUCCEEDED
    case.driver.heal()
    gate = case.driver.gate(0)
    first = asyncio.create_task(case.apply(text(LABEL), secrets={"key": "1"}))
    await gate.reached.wait()
    events = []
    async for event in another(case).events(text(an_object("Label", "o", "other")), secrets={"key": "2"}):
        events.append(event)
        if event.HasField("steps_waiting"):
            await faulty.services.cancel(event.operation_id)
    assert end(events).cause == "the operation was cancelled"
    gate.opened.set()
    assert end(await first).state == SUCCEEDED
