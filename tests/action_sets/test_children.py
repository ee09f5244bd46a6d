"""Phases that change a stack by an operation of their own: found again, cancelled, blocked, and never begun twice."""

import asyncio
from typing import Any

import pytest
from pkger.applier.v1 import applier_pb2
from pkger.applier.v1.applier_pb2_grpc import ApplierServiceStub
from pkger.model.v1 import action_pb2, operation_pb2, plan_pb2

from applier_svc import failpoints
from applier_svc.actions.phase_names import child_id
from services.core.errors import OperationUnfinished
from tests.action_sets.deaths import Deaths
from tests.action_sets.test_backups import CHANGED, PACKAGE, backup, example, follows
from tests.action_sets.world import CANCELLED, COMPLETE, FAILED, World, outputs, states
from tests.applier.faulty import CallFault, ItemFault

LAST_CALL = 3
"""Number of the call of Mutate that a restore of the changed stack makes last, counted from 0."""


async def operations(here: World) -> list[operation_pb2.Operation]:
    """All operations, the newest first."""
    stub = ApplierServiceStub(here.applier.channel)
    answer = await here.applier.call(stub.ListOperations, applier_pb2.ListOperationsRequest(page_size=500))
    return list(answer.operations)


async def changed_stack(here: World) -> str:
    """A stack that has changed since its backup, whose name is returned."""
    await here.services.apply(PACKAGE, stack="fleet")
    name = await backup(here)
    await here.services.apply(CHANGED, stack="fleet")
    return name


async def test_the_id_of_a_child_follows_from_the_key_of_its_phase(here: World) -> None:
    name = await changed_stack(here)

    done = await here.run(example(), follows(name, "restore"))

    [child] = [each for each in await operations(here) if each.parent]
    assert child.id == child_id(f"{done.operation_id}/0/1/1") == outputs(done)["apply"]["operation"]
    assert (child.parent, child.kind) == (done.operation_id, plan_pb2.OPERATION_KIND_APPLY)
    assert done.actions[0].phases[1].operation_id == child.id


NOT_REACHED = frozenset(
    {
        *("after_rollback", "after_undo_intent", "after_undo_send", "after_undo_record", "after_claim"),
        *("after_emit", "before_artifacts", "before_defer", "after_defer"),
    }
)
"""Failpoints of rollbacks, recoveries, outputs that are stored early, artifacts and deferPhases: a restore has none."""


@pytest.mark.parametrize("place", [*failpoints.NAMES, *failpoints.ACTION_NAMES])
async def test_a_restore_with_a_death_at_each_place(here: World, deaths: Deaths, place: str) -> None:
    """The end is that of an undisturbed restore, and what it changed was changed once."""
    name = await changed_stack(here)
    request = example(), follows(name, "restore", wait="24h")
    deaths.at(place, 1)
    try:
        created = await here.create(*request, request_id="r")
    except Exception:
        created = await here.create(*request, request_id="r")
    await here.events(created.operation_id)
    done = await here.get(created.name)

    assert deaths.count == (place not in NOT_REACHED)
    assert (done.state, set(states(done).values())) == (COMPLETE, {"COMPLETE"}), done.cause
    assert (await here.services.plan(PACKAGE, stack="fleet")).no_change
    succeeded = [each for each in await operations(here) if each.parent and each.step_count]
    assert [each.state for each in succeeded] == [operation_pb2.OPERATION_STATE_SUCCEEDED]
    assert not (await here.services.record("fleet")).stack.HasField("reservation")


async def in_the_middle_of(
    here: World, call: int, request: tuple[Any, Any]
) -> tuple[action_pb2.ActionSet, asyncio.Event]:
    """A restore whose operation waits in call number *call* of Mutate, and the event that lets it go on."""
    here.driver.heal()
    gate = here.driver.gate(call)
    created = await here.create(*request)
    await gate.reached.wait()
    return created, gate.opened


async def test_a_cancel_undoes_a_child_that_is_not_sealed(here: World) -> None:
    name = await changed_stack(here)
    created, opened = await in_the_middle_of(here, 0, (example(), follows(name, "restore")))

    await here.cancel(created.operation_id)
    await here.until_event(created.operation_id, "stopping")
    opened.set()
    await here.events(created.operation_id)
    done = await here.get(created.name)

    assert (done.state, states(done)["restore/apply"]) == (CANCELLED, "CANCELLED")
    assert (await here.services.plan(CHANGED, stack="fleet")).no_change


async def test_a_child_that_is_sealed_completes_its_phase(here: World) -> None:
    """The last call deletes a bucket, which cannot be undone."""
    name = await changed_stack(here)
    created, opened = await in_the_middle_of(here, LAST_CALL, (example(), follows(name, "restore")))

    await here.cancel(created.operation_id)
    await here.until_event(created.operation_id, "stopping")
    opened.set()
    await here.events(created.operation_id)
    done = await here.get(created.name)

    assert (done.state, states(done)["restore/apply"]) == (CANCELLED, "COMPLETE")
    assert (await here.services.plan(PACKAGE, stack="fleet")).no_change


async def test_a_child_that_is_rolled_back_fails_its_phase(here: World) -> None:
    name = await changed_stack(here)
    here.driver.fail({0: ItemFault.REJECT})

    done = await here.run(example(), follows(name, "restore"))

    [failure] = done.failures
    assert (done.state, failure.reason) == (FAILED, action_pb2.PHASE_REASON_CHILD_ROLLED_BACK)
    assert failure.message.startswith(f"operation {done.actions[0].phases[1].operation_id} did not succeed: ")
    here.driver.heal()
    assert (await here.services.plan(CHANGED, stack="fleet")).no_change


async def test_a_phase_takes_the_outcome_of_a_child_that_a_person_cancels(here: World) -> None:
    name = await changed_stack(here)
    created, opened = await in_the_middle_of(here, 0, (example(), follows(name, "restore")))
    [child] = [each for each in await operations(here) if each.parent]

    await here.cancel(child.id)
    opened.set()
    await here.events(created.operation_id)
    done = await here.get(created.name)

    assert (done.state, done.failures[0].reason) == (FAILED, action_pb2.PHASE_REASON_CHILD_ROLLED_BACK)


async def test_a_late_phase_waits_for_the_end_of_its_child(here: World) -> None:
    name = await changed_stack(here)
    definitions = example()
    definitions["spec"]["actions"]["restore"]["phases"][1]["timeout"] = "2s"
    created, opened = await in_the_middle_of(here, 0, (definitions, follows(name, "restore")))

    await asyncio.sleep(3)
    assert states(await here.get(created.name))["restore/apply"] == "RUNNING"
    opened.set()
    await here.events(created.operation_id)
    done = await here.get(created.name)

    assert (done.state, done.failures[0].reason) == (FAILED, action_pb2.PHASE_REASON_TIMEOUT)
    assert (await here.services.plan(CHANGED, stack="fleet")).no_change


async def test_a_blocked_child_is_left_to_its_operator(here: World) -> None:
    name = await changed_stack(here)
    definitions = example()
    definitions["spec"]["actions"]["restore"]["phases"][1]["timeout"] = "30s"
    here.driver.fail(calls={0: CallFault.AWAY_AFTERWARDS}, later=CallFault.AWAY)
    here.driver.hide(1)

    done = await here.run(definitions, follows(name, "restore"))

    child = done.actions[0].phases[1].operation_id
    assert (done.state, done.failures[0].reason) == (FAILED, action_pb2.PHASE_REASON_CHILD_BLOCKED)
    assert f"pkger operations recover {child}" in done.failures[0].message
    with pytest.raises(OperationUnfinished):
        await here.services.apply(PACKAGE, stack="fleet")
