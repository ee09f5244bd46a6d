"""
Blocked operations: what they report, and the effect of each decision (docs/reference/engine.md,
"States").
"""

import asyncio
import json

import pytest
from pkger.driver.v1 import driver_pb2
from pkger.model.v1 import operation_pb2

from services.core.errors import RequestInvalid, TokenStale
from services.kinds.format.canonical import canonical_text
from tests.applier.faulty import CallFault, ItemFault, Memory
from tests.applier.world import BLOCKED, ROLLED_BACK, SUCCEEDED, Case, Content, Events, World, end
from tests.apply.packages import an_object, text

CONFLICT, UNKNOWN_OUTCOME, ROLLBACK = (
    operation_pb2.BLOCKED_REASON_CONFLICT,
    operation_pb2.BLOCKED_REASON_UNKNOWN_OUTCOME,
    operation_pb2.BLOCKED_REASON_ROLLBACK,
)


def task(description: str, name: str = "roll") -> str:
    return text(an_object("Task", "roll", name, every="1h", query="buckets()", description=description))


def descriptions(content: Content) -> list[str]:
    """The description of each task."""
    return [json.loads(spec)["description"] for _, spec, *_ in content]


async def change_task(case: Case) -> None:
    """Change the only task, as another writer does."""
    [resource] = [each for each in (await case.look()).resources if each.kind == "Task"]
    spec = canonical_text(json.loads(resource.spec_json) | {"description": "theirs"})
    theirs = driver_pb2.UpdateResource(kind="Task", id=resource.id, spec_json=spec)
    await case.driver.change(case.org, driver_pb2.Mutation(update=theirs))


async def in_conflict(faulty: World) -> tuple[Case, str]:
    """A blocked operation whose one update got lost while another writer changed the task; and its name."""
    case = await faulty.case_with(task("old"))
    case.driver.fail({0: ItemFault.LOSE_REQUEST}, lasting=True)
    gate = case.driver.gate(0)
    apply = asyncio.create_task(case.apply(task("new")))
    await gate.reached.wait()
    await change_task(case)
    gate.opened.set()
    events = await apply
    assert end(events).state == BLOCKED
    case.driver.heal()
    return case, events[0].operation_id


def ended(events: Events) -> operation_pb2.Finished:
    """How the rest of an operation ended."""
    assert [event.WhichOneof("event") for event in events].count("finished") == 1
    return events[-1].finished


async def test_a_change_by_another_writer_is_reported_and_not_overwritten(faulty: World) -> None:
    case, name = await in_conflict(faulty)
    before = await case.look()
    assert descriptions(before.content) == ["theirs"]
    operation = await case.operation(name)
    assert operation.blocked_reason == CONFLICT
    [step] = operation.blocked_steps
    assert (step.step.number, step.step.update.key.name, step.reason) == (0, "roll", CONFLICT)
    assert [("Task", step.found_resource_id)] == list(before.ids)
    assert step.message == 'another writer changed it: /description is "theirs", expected "old"'
    # Another lookup has the same finding.
    assert ended(await case.recover(name)).state == BLOCKED
    assert await case.look() == before


@pytest.mark.parametrize(("way", "left"), [("force", "new"), ("keep", "theirs"), ("skip", "theirs")])
async def test_a_conflict_ends_as_decided(faulty: World, way: str, left: str) -> None:
    case, name = await in_conflict(faulty)
    assert ended(await case.recover(name, _0=way)).state == SUCCEEDED
    now = await case.look()
    assert descriptions(now.content) == [left]
    assert set(now.recorded.values()) == now.ids
    operation = await case.operation(name)
    assert (operation.blocked_reason, list(operation.blocked_steps)) == (0, [])
    # The decision does not count for later applies.
    assert end(await case.apply(task("new"))).no_change == (left == "new")
    assert descriptions((await case.look()).content) == ["new"]


async def test_a_forced_step_of_a_cancelled_operation_is_not_sent_before_the_rollback(faulty: World) -> None:
    case = await faulty.case_with(task("old"))
    before = await case.look()
    # The label, and the task, which another writer changes meanwhile.
    case.driver.fail({1: ItemFault.LOSE_REQUEST}, lasting=True)
    gate = case.driver.gate(1)
    apply = asyncio.create_task(case.apply(text(an_object("Label", "red", "red"), *json.loads(task("new")))))
    await gate.reached.wait()
    await change_task(case)
    gate.opened.set()
    name = (await apply)[0].operation_id
    case.driver.heal()
    assert (await case.operation(name)).blocked_reason == CONFLICT
    await faulty.services.cancel(name)

    assert ended(await case.recover(name, _1="force")).state == ROLLED_BACK

    assert [each.WhichOneof("change") for each in case.driver.sent] == ["delete"]
    now = await case.look()
    assert (now.ids, descriptions(now.content)) == (before.ids, ["theirs"])


async def test_a_decision_outlasts_the_applier_that_received_it(faulty: World) -> None:
    case, name = await in_conflict(faulty)
    case.driver.fail(calls={0: CallFault.CUT_OFF})
    with pytest.raises(TokenStale):
        await case.recover(name, _0="force")
    assert (await case.settled()).state == SUCCEEDED
    assert descriptions((await case.look()).content) == ["new"]


async def unfindable(faulty: World) -> tuple[Case, str]:
    """A blocked operation whose one creation took effect on a platform that did not answer; and its name."""
    faulty.driver.memory = Memory.NOTHING
    case = faulty.case()
    case.driver.fail({0: ItemFault.LOSE_RESPONSE})
    gate = case.driver.gate(0)
    apply = asyncio.create_task(case.apply(task("old")))
    await gate.reached.wait()
    case.driver.hide()
    gate.opened.set()
    events = await apply
    assert end(events).state == BLOCKED
    case.driver.heal()
    operation = await case.operation(events[0].operation_id)
    assert [step.reason for step in operation.blocked_steps] == [UNKNOWN_OUTCOME]
    return case, events[0].operation_id


async def test_a_resource_of_another_stack_is_not_offered_for_a_creation_whose_name_it_has(faulty: World) -> None:
    """The platform treats the two names as equal, so the lookup has to check the owner of the other resource."""
    faulty.driver.memory = Memory.NAMES
    case = faulty.case()
    theirs = Case(case.services, case.driver, case.org, "theirs")
    # The secret, their label, the label.
    case.driver.fail({2: ItemFault.LOSE_REQUEST}, lasting=True)
    gate = case.driver.gate(0)
    apply = asyncio.create_task(case.apply(text(an_object("Label", "l", " sensors ")), secrets={"key": "value"}))
    await gate.reached.wait()
    assert end(await theirs.apply(text(an_object("Label", "l", "Sensors")))).state == SUCCEEDED
    gate.opened.set()
    events = await apply
    assert end(events).state == BLOCKED
    [step] = (await case.operation(events[0].operation_id)).blocked_steps
    assert (step.reason, step.found_resource_id) == (CONFLICT, "")
    assert "has the name" in step.message


@pytest.mark.parametrize("way", ["retry", "adopt"])
async def test_a_creation_that_is_found_again_is_recorded(faulty: World, way: str) -> None:
    case, name = await unfindable(faulty)
    [resource] = (await case.look()).resources
    events = await case.recover(name, _0=way + (f":{resource.id}" if way == "adopt" else ""))
    assert ended(events).state == SUCCEEDED
    now = await case.look()
    assert set(now.recorded.values()) == now.ids == {("Task", resource.id)}
    assert end(await case.apply(task("old"))).no_change


async def test_the_resource_of_a_creation_that_is_given_up_has_no_owner(faulty: World) -> None:
    case, name = await unfindable(faulty)
    finished = ended(await case.recover(name, _0="skip"))
    assert finished.state == SUCCEEDED
    assert finished.leftover_count == 1
    now = await case.look()
    assert (len(now.ids), now.recorded) == (1, {})


async def test_a_resource_that_cannot_be_adopted_is_refused_and_nothing_changes(faulty: World) -> None:
    case, name = await unfindable(faulty)
    other = Case(faulty.services, faulty.driver, case.org, "other")
    assert end(await other.apply(task("other", "theirs"))).state == SUCCEEDED
    [(_, owned)] = (await other.look()).recorded.values()
    before = await case.operation(name)
    for way, problem in {
        "adopt:0123456789abcdef": "there is no Task 0123456789abcdef",
        f"adopt:{owned}": "belongs to stack other",
        "force": "does not fit",
    }.items():
        with pytest.raises(RequestInvalid, match=problem):
            await case.recover(name, _0=way)
        assert await case.operation(name) == before


TWO = text(an_object("Label", "red", "red"), an_object("Bucket", "reserved", "_system"))


async def stuck(faulty: World) -> tuple[Case, str]:
    """A blocked operation that created a label, failed, and could not delete the label; and its name."""
    case = faulty.case()
    # Label, bucket (which the platform rejects), and the deletion of the label.
    case.driver.fail({2: ItemFault.REJECT}, lasting=True)
    events = await case.apply(TWO)
    assert end(events).state == BLOCKED
    operation = await case.operation(events[0].operation_id)
    assert [(step.step.create.key.name, step.reason) for step in operation.blocked_steps] == [("red", ROLLBACK)]
    assert [step.direction for step in operation.blocked_steps] == [operation_pb2.DIRECTION_UNDO]
    return case, events[0].operation_id


async def test_an_undo_that_is_given_up_is_recorded(faulty: World) -> None:
    case, name = await stuck(faulty)
    finished = ended(await case.recover(name, _0="skip"))
    assert finished.state == ROLLED_BACK
    now = await case.look()
    assert len(now.ids) == 1
    assert set(now.recorded.values()) == now.ids
    assert now.record is not None
    assert finished.stack_id == now.record.id


async def test_an_undo_that_works_at_last_leaves_nothing(faulty: World) -> None:
    case, name = await stuck(faulty)
    assert ended(await case.recover(name, _0="retry")).state == BLOCKED
    case.driver.heal()
    assert ended(await case.recover(name)).state == ROLLED_BACK
    now = await case.look()
    assert (now.ids, now.record) == (set(), None)
