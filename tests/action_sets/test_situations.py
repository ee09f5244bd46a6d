"""
What becomes of action sets when something happens around them (docs/actions.md, "When something goes wrong").

Deaths of appliers are in ``test_recovery.py``, ``test_children.py`` and ``tests/crash``; stacks that others use in
``test_reservations.py``; snapshots with a changed byte in ``test_restores.py``.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pkger.applier.v1 import action_pb2 as applier_action_pb2
from pkger.applier.v1 import applier_pb2
from pkger.applier.v1.action_pb2_grpc import ActionServiceStub
from pkger.applier.v1.applier_pb2_grpc import ApplierServiceStub
from pkger.journal.v1 import journal_pb2
from pkger.journal.v1.journal_pb2_grpc import JournalServiceStub
from pkger.model.v1 import action_pb2, operation_pb2
from pkger.stack.v1 import definition_pb2, snapshot_pb2
from pkger.stack.v1.definition_pb2_grpc import DefinitionServiceStub
from pkger.stack.v1.snapshot_pb2_grpc import SnapshotServiceStub

from services.core.errors import (
    ActionSetNotFound,
    ActionSetUnfinished,
    ArtifactGone,
    LimitReached,
    PkgerError,
    Reason,
    ServiceUnavailable,
)
from tests.action_sets.appliers import further_applier, out_of_reach
from tests.action_sets.deaths import Deaths
from tests.action_sets.functions import Script, gives, waits_for
from tests.action_sets.test_backups import CHANGED, PACKAGE, backup, example, follows
from tests.action_sets.test_children import changed_stack, in_the_middle_of, operations
from tests.action_sets.test_restores import SECRETS, restoring
from tests.action_sets.world import (
    COMPLETE,
    FAILED,
    Invalid,
    World,
    action_set,
    blueprint,
    definition,
    do,
    outputs,
    states,
    world,
)
from tests.applier.faulty import CallFault
from tests.applier.test_restored import back_up, restore
from tests.applier.world import QUICK
from tests.apply.packages import EVERY_KIND, text
from tests.cluster import Calls
from tests.virtual_time import VirtualLoop

BLOCKED = action_pb2.ACTION_SET_STATE_BLOCKED
INTERRUPTED = action_pb2.PHASE_REASON_INTERRUPTED
SUCCEEDED = operation_pb2.OPERATION_STATE_SUCCEEDED

RESTORED = "the store was restored from a backup, so nobody knows what ran since"


async def ended(here: World, name: str, operation: str) -> action_pb2.ActionSet:
    """An action set that has ended, or is BLOCKED; its applier or its store may not answer for a while."""
    while True:
        try:
            await here.events(operation)
            return await here.get(name)
        except ServiceUnavailable:
            await asyncio.sleep(1)


async def child_of(here: World, created: action_pb2.ActionSet) -> operation_pb2.Operation:
    """The operation that a phase of an action set begins, once it has begun."""
    while True:
        for each in await operations(here):
            if each.parent == created.operation_id:
                return each
        await asyncio.sleep(0.1)


async def recover(here: World, operation: str) -> None:
    """Recover an operation, and follow it to its end."""
    request = applier_pb2.RecoverOperationRequest(operation_id=operation)
    stream = here.applier.stream(ApplierServiceStub(here.applier.channel).RecoverOperation, request)
    async for _ in stream:
        pass


async def put(here: World, document: Mapping[str, Any]) -> None:
    """Store a definition."""
    store = here.services.peers["stack"]
    change = definition_pb2.DefinitionChange(definition=definition(document))
    request = definition_pb2.PutDefinitionsRequest(changes=[change])
    await store.call(DefinitionServiceStub(store.channel).PutDefinitions, request)


async def remove(here: World, name: str) -> None:
    """Delete a blueprint."""
    store = here.services.peers["stack"]
    request = definition_pb2.DeleteDefinitionRequest(kind="Blueprint", name=name)
    await store.call(DefinitionServiceStub(store.channel).DeleteDefinition, request)


async def delete(here: World, name: str, force: bool = False) -> None:
    """Delete an action set."""
    request = applier_action_pb2.DeleteActionSetRequest(name=name, force=force)
    await here.applier.call(ActionServiceStub(here.applier.channel).DeleteActionSet, request)


async def mark_restored(here: World) -> None:
    """Mark the store as restored from a backup."""
    store = here.services.peers["stack"]
    await store.call(JournalServiceStub(store.channel).MarkRestored, journal_pb2.MarkRestoredRequest())


async def live_snapshots(here: World) -> list[str]:
    """The ids of the snapshots that are not deleted."""
    store = here.services.peers["stack"]
    answer = await store.call(SnapshotServiceStub(store.channel).ListSnapshots, snapshot_pb2.ListSnapshotsRequest())
    return [each.id for each in answer.snapshots]


async def test_when_an_applier_is_told_to_stop_phases_that_run_end_and_the_next_one_continues(
    here: World, tmp_path: Path
) -> None:
    go, script = asyncio.Event(), Script()
    script.does("one", waits_for(go))
    definitions = blueprint(run={"phases": [do("one"), do("two")], "deferPhase": do("after")})
    async with further_applier(here, tmp_path, script) as first:
        created = await first.create(definitions, action_set("run"))
        await script.begun("one").wait()
        asyncio.get_running_loop().call_later(2, go.set)

    done = await ended(here, created.name, created.operation_id)

    assert (done.state, set(states(done).values())) == (COMPLETE, {"COMPLETE"})
    assert [step for step, _ in script.calls] == ["one"]
    assert [step for step, _ in here.script.calls] == ["two", "after"]
    assert [each.interruptions for each in done.actions[0].phases] == [0, 0]


async def test_when_an_applier_has_stopped_a_phase_that_may_run_again_was_not_interrupted(
    here: World, tmp_path: Path
) -> None:
    script = Script()
    script.does("one", waits_for(asyncio.Event()))
    async with further_applier(here, tmp_path, script) as first:
        created = await first.create(blueprint(run={"phases": [do("one")]}), action_set("run"))
        await script.begun("one").wait()

    done = await ended(here, created.name, created.operation_id)

    [phase] = done.actions[0].phases
    assert (done.state, phase.attempt, phase.interruptions) == (COMPLETE, 1, 0)
    assert script.calls == here.script.calls == [("one", "0/0/1")]


@pytest.mark.parametrize("place", ["phases", "deferPhase"])
async def test_when_an_applier_has_stopped_a_phase_that_runs_once_was_interrupted(
    here: World, tmp_path: Path, place: str
) -> None:
    script, slow = Script(), do("slow", func="DoOnce")
    script.does("slow", waits_for(asyncio.Event()))
    phases = {"phases": [slow], "deferPhase": do("after")} if place == "phases" else {}
    async with further_applier(here, tmp_path, script) as first:
        definitions = blueprint(run=phases or {"phases": [do("one")], "deferPhase": slow})
        created = await first.create(definitions, action_set("run"))
        await script.begun("slow").wait()

    done = await ended(here, created.name, created.operation_id)

    [failure] = done.failures
    assert (done.state, failure.reason) == (FAILED, INTERRUPTED)
    assert failure.message == "its applier was stopped, and DoOnce runs at most once"
    assert [step for step, _ in here.script.calls] == (["after"] if place == "phases" else [])
    assert not {"PENDING", "RUNNING"} & set(states(done).values())


async def test_when_an_applier_has_stopped_the_operation_of_a_phase_goes_on(here: World, tmp_path: Path) -> None:
    name = await changed_stack(here)
    async with further_applier(here, tmp_path) as first:
        created, opened = await in_the_middle_of(first, 1, (example(), follows(name, "restore")))
        asyncio.get_running_loop().call_later(60, opened.set)

    done = await ended(here, created.name, created.operation_id)

    assert (done.state, set(states(done).values())) == (COMPLETE, {"COMPLETE"}), done.cause
    [child] = [each for each in await operations(here) if each.parent]
    assert (child.state, child.id) == (SUCCEEDED, outputs(done)["apply"]["operation"])
    assert [each.interruptions for each in done.actions[0].phases] == [0, 0]
    assert (await here.services.plan(PACKAGE, stack="fleet")).no_change


async def test_a_late_phase_waits_for_its_operation_though_its_applier_has_stopped(here: World, tmp_path: Path) -> None:
    name = await changed_stack(here)
    definitions = example()
    definitions["spec"]["actions"]["restore"]["phases"][1]["timeout"] = "2s"
    async with further_applier(here, tmp_path) as first:
        created, opened = await in_the_middle_of(first, 1, (definitions, follows(name, "restore")))
        asyncio.get_running_loop().call_later(60, opened.set)

    done = await ended(here, created.name, created.operation_id)

    [child] = [each for each in await operations(here) if each.parent]
    assert child.update_time.ToMicroseconds() <= done.end_time.ToMicroseconds()
    assert (done.state, done.failures[0].reason) == (FAILED, action_pb2.PHASE_REASON_TIMEOUT)
    assert child.state == operation_pb2.OPERATION_STATE_ROLLED_BACK


async def test_an_applier_that_stops_accepts_no_action_set(here: World, tmp_path: Path) -> None:
    script = Script()
    script.does("one", waits_for(asyncio.Event()))
    definitions = blueprint(run={"phases": [do("one")]}), action_set("run")
    async with further_applier(here, tmp_path, script) as first:
        await first.create(*definitions)
        await script.begun("one").wait()
        stopping = first
    with pytest.raises(ServiceUnavailable):
        await stopping.create(*definitions)


async def test_when_an_applier_has_stopped_an_action_set_goes_on_waiting_for_its_stack(
    here: World, tmp_path: Path
) -> None:
    go = asyncio.Event()
    here.script.does("hold", waits_for(go))
    locking = blueprint(
        hold={"kind": "Stack", "lock": True, "phases": [do("hold")]},
        then={"kind": "Stack", "lock": True, "phases": [do("then")]},
    )
    stack = {"object": {"kind": "Stack", "name": "prod"}}
    holding = await here.create(locking, action_set({"name": "hold", **stack}))
    await here.script.begun("hold").wait()
    async with further_applier(here, tmp_path) as first:
        waiting = await first.create(locking, action_set({"name": "then", **stack}, wait="24h"))
        await first.until_event(waiting.operation_id, "waiting")
    go.set()
    await here.events(holding.operation_id)

    done = await ended(here, waiting.name, waiting.operation_id)

    assert done.state == COMPLETE


async def test_a_store_that_does_not_answer_for_a_while_delays_a_phase(here: World) -> None:
    go = asyncio.Event()
    here.script.does("one", waits_for(go))
    created = await here.create(blueprint(run={"phases": [do("one"), do("two")]}), action_set("run"))
    await here.script.begun("one").wait()
    async with out_of_reach(here, "stack"):
        go.set()
        await asyncio.sleep(8)

    done = await ended(here, created.name, created.operation_id)

    assert (done.state, [each.interruptions for each in done.actions[0].phases]) == (COMPLETE, [0, 0])
    assert [step for step, _ in here.script.calls] == ["one", "two"]


async def test_a_store_that_does_not_answer_as_long_as_the_lease_stops_what_is_not_recorded(here: World) -> None:
    """Nothing runs that is not recorded: the second phase begins when the store answers again."""
    here.script.does("one", gives(out=1))
    created = await here.create(blueprint(run={"phases": [do("one"), do("two")]}), action_set("run"))
    await here.script.begun("one").wait()
    async with out_of_reach(here, "stack"):
        await asyncio.sleep(60)
        calls = [step for step, _ in here.script.calls]

    done = await ended(here, created.name, created.operation_id)

    assert (done.state, calls) == (COMPLETE, ["one"])


@pytest.mark.parametrize("seconds", [8, 25, 60])
async def test_a_store_that_does_not_answer_for_a_while_fails_no_restore(here: World, seconds: int) -> None:
    name = await changed_stack(here)
    created, opened = await in_the_middle_of(here, 1, (example(), follows(name, "restore")))
    async with out_of_reach(here, "stack"):
        opened.set()
        await asyncio.sleep(seconds)

    done = await ended(here, created.name, created.operation_id)

    assert (done.state, set(states(done).values())) == (COMPLETE, {"COMPLETE"}), done.cause
    assert [each.state for each in await operations(here) if each.parent] == [SUCCEEDED]
    assert (await here.services.plan(PACKAGE, stack="fleet")).no_change


async def test_a_store_that_does_not_answer_for_a_while_fails_no_export(here: World) -> None:
    """An export reads and writes in the store."""
    await here.services.apply(PACKAGE, stack="fleet")
    definitions = example()
    del definitions["spec"]["actions"]["backup"]["phases"][0]["retry"]
    go = asyncio.Event()
    here.script.does("first", waits_for(go))
    definitions["spec"]["actions"]["backup"]["phases"].insert(0, do("first"))
    created = await here.create(definitions, action_set({"name": "backup", **of_fleet()}))
    await here.script.begun("first").wait()
    gate = here.driver.gate_description(1)
    go.set()
    await gate.reached.wait()
    async with out_of_reach(here, "stack"):
        gate.opened.set()
        await asyncio.sleep(8)

    done = await ended(here, created.name, created.operation_id)

    assert (done.state, [each.attempt for each in done.actions[0].phases]) == (COMPLETE, [1, 1, 1]), done.cause


async def test_a_phase_waits_for_its_operation_while_the_store_does_not_answer(here: World, tmp_path: Path) -> None:
    """Another applier runs the operation, so it is followed in the store."""
    name = await changed_stack(here)
    never = replace(QUICK, recovery=1e6)
    async with further_applier(here, tmp_path, timeouts=never, holder="first") as first:
        here.driver.fail(calls={1: CallFault.CUT_OFF})
        gate = here.driver.gate(2)
        created = await first.create(example(), follows(name, "restore"))
        await gate.reached.wait()
        async with out_of_reach(here, "stack"):
            gate.opened.set()
            await asyncio.sleep(8)
        done = await ended(first, created.name, created.operation_id)

    assert (done.state, set(states(done).values())) == (COMPLETE, {"COMPLETE"}), done.cause
    [child] = [each for each in await operations(here) if each.parent]
    assert child.state == SUCCEEDED
    assert child.holder != "first"


async def test_a_platform_that_does_not_answer_fails_the_phase_with_the_reason_of_the_service(here: World) -> None:
    await here.services.apply(PACKAGE, stack="fleet")
    definitions = example()
    definitions["spec"]["actions"]["backup"]["phases"][0]["retry"] = {"attempts": 2, "backoff": "1s"}
    here.driver.hide()

    done = await here.run(definitions, action_set({"name": "backup", **of_fleet()}))

    [failure] = done.failures
    assert (done.state, failure.error_reason, failure.attempt) == (FAILED, Reason.SERVICE_UNAVAILABLE, 2)


def of_fleet() -> dict[str, Any]:
    """The stack ``fleet`` as the object of an action of the blueprint of the examples."""
    return {"blueprint": "stack-backup", "object": {"kind": "Stack", "name": "fleet"}}


async def test_a_platform_that_is_gone_from_the_configuration_fails_the_phase(here: World) -> None:
    target = {"kind": "Stack", "name": "fleet", "target": {"platform": "gone"}}

    done = await here.run(example(), action_set({"name": "backup", "blueprint": "stack-backup", "object": target}))

    [failure] = done.failures
    assert (done.state, failure.error_reason) == (FAILED, Reason.STACK_NOT_FOUND)


async def test_a_restore_to_a_platform_that_is_gone_from_the_configuration_fails(here: World) -> None:
    await here.services.apply(PACKAGE, stack="fleet")
    name = await backup(here)
    target = {"kind": "Stack", "name": "fleet", "target": {"platform": "gone"}}

    done = await here.run(example(), follows(name, "restore", overrides={"object": target}))

    [failure] = done.failures
    assert (done.state, failure.error_reason) == (FAILED, Reason.PLATFORM_UNKNOWN)
    assert await here.services.stack_names() == ["fleet"]


async def test_a_stack_that_was_deleted_meanwhile_fails_the_next_phase_that_needs_it(here: World) -> None:
    """An export reserves nothing."""
    await here.services.apply(PACKAGE, stack="fleet")
    go = asyncio.Event()
    here.script.does("first", waits_for(go))
    definitions = example()
    definitions["spec"]["actions"]["backup"]["phases"].insert(0, do("first"))
    created = await here.create(definitions, action_set({"name": "backup", **of_fleet()}))
    await here.script.begun("first").wait()
    await here.services.uninstall("fleet")
    go.set()

    done = await ended(here, created.name, created.operation_id)

    assert (done.state, done.failures[0].error_reason) == (FAILED, Reason.STACK_NOT_FOUND)


async def test_an_action_set_waits_for_an_unfinished_operation_no_longer_than_it_says(here: World) -> None:
    name = await changed_stack(here)
    here.driver.heal()
    gate = here.driver.gate(0)
    applying = asyncio.create_task(here.services.apply(PACKAGE, stack="fleet"))
    await gate.reached.wait()
    operation = (await operations(here))[0].id

    done = await here.run(example(), follows(name, "restore", wait="5s"))

    assert (done.state, len(done.failures)) == (FAILED, 0)
    assert done.cause == f"stack fleet is in use by operation {operation}, and was not free within 5s"
    gate.opened.set()
    assert (await applying).state == SUCCEEDED


async def test_an_action_set_does_not_recover_an_operation_that_is_blocked(here: World) -> None:
    name = await changed_stack(here)
    here.driver.fail(calls={0: CallFault.AWAY_AFTERWARDS}, later=CallFault.AWAY)
    here.driver.hide(1)
    blocked = await here.services.apply(PACKAGE, stack="fleet")
    assert blocked.state == operation_pb2.OPERATION_STATE_BLOCKED
    here.driver.heal()

    done = await here.run(example(), follows(name, "restore", wait="5s"))

    [operation] = [each for each in await operations(here) if each.state == blocked.state]
    assert done.state == FAILED
    assert f"stack fleet is in use by operation {operation.id}" in done.cause


async def test_a_phase_waits_for_a_child_that_a_person_recovers(here: World) -> None:
    name = await changed_stack(here)
    here.driver.fail(calls={0: CallFault.AWAY_AFTERWARDS}, later=CallFault.AWAY)
    here.driver.hide(1)
    created = await here.create(example(), follows(name, "restore"))
    child = await child_of(here, created)
    await here.events(child.id)
    here.driver.heal()
    await recover(here, child.id)

    done = await ended(here, created.name, created.operation_id)

    assert (done.state, set(states(done).values())) == (COMPLETE, {"COMPLETE"}), done.cause
    assert outputs(done)["apply"]["operation"] == child.id
    assert (await here.services.plan(PACKAGE, stack="fleet")).no_change


def sleeps(name: str, duration: str = "1s") -> dict[str, Any]:
    """A phase that waits: the store accepts functions of the product only."""
    return {"name": name, "func": "Sleep", "args": {"duration": duration}}


MAKES = {"phases": [sleeps("one")], "outputArtifacts": {"made": {"keyValue": {"when": "{{ time }}"}}}}


def uses(phase: str, *artifacts: str) -> dict[str, Any]:
    """An action with one phase, which has input artifacts."""
    return {"inputArtifactNames": list(artifacts), "phases": [sleeps(phase)]}


@pytest.mark.parametrize("is_deleted", [True, False])
async def test_a_blueprint_that_is_edited_or_deleted_does_not_change_what_runs(here: World, is_deleted: bool) -> None:
    await put(here, blueprint(run={"phases": [sleeps("one", "5s"), sleeps("two")]}))
    created = await here.create(action_set("run"))
    await here.until_event(created.operation_id, "phase_started")
    await (remove(here, "b") if is_deleted else put(here, blueprint(run={"phases": [sleeps("other")]})))

    done = await ended(here, created.name, created.operation_id)

    assert (done.state, states(done)) == (COMPLETE, {"run/one": "COMPLETE", "run/two": "COMPLETE"})


async def test_a_successor_runs_the_blueprint_of_today_or_that_of_its_predecessor(here: World) -> None:
    await put(here, blueprint(run=MAKES, use=uses("then", "made")))
    first = await here.run(action_set("run"))
    await put(here, blueprint(run=MAKES, use=uses("now", "made")))

    now = await here.run(follows(first.name, "use"))
    pinned = await here.run(follows(first.name, "use"), pinned=True)
    await remove(here, "b")
    gone = await here.run(follows(first.name, "use"))

    assert [list(states(each)) for each in (now, pinned, gone)] == [["use/now"], ["use/then"], ["use/then"]]
    assert {each.state for each in (now, pinned, gone)} == {COMPLETE}


@pytest.mark.parametrize(
    ("today", "problem"),
    [
        ({}, 'blueprint "b" has no action "use"; actions: run'),
        ({"use": uses("now", "made", "more")}, 'the action needs artifact "more"'),
    ],
)
async def test_what_the_blueprint_of_today_no_longer_has_is_a_violation(
    here: World, today: dict[str, Any], problem: str
) -> None:
    await put(here, blueprint(run=MAKES, use=uses("then", "made")))
    first = await here.run(action_set("run"))
    await put(here, blueprint(run=MAKES, **today))

    with pytest.raises(Invalid, match=problem):
        await here.create(follows(first.name, "use"))
    assert (await here.run(follows(first.name, "use"), pinned=True)).state == COMPLETE


async def test_a_snapshot_that_is_deleted_while_it_is_used_stays_for_its_user(here: World) -> None:
    name = await changed_stack(here)
    go = asyncio.Event()
    here.script.does("first", waits_for(go))
    definitions = example()
    definitions["spec"]["actions"]["restore"]["phases"].insert(0, do("first"))
    created = await here.create(definitions, follows(name, "restore"))
    await here.script.begun("first").wait()
    deleted = await here.run(example(), follows(name, "delete"))
    assert (deleted.state, outputs(deleted)) == (COMPLETE, {"drop": {"deleted": True}})
    assert await live_snapshots(here) == []
    with pytest.raises(ArtifactGone, match=f"deleted by {deleted.name}"):
        await here.create(definitions, follows(name, "restore"))
    go.set()

    done = await ended(here, created.name, created.operation_id)

    assert (done.state, set(states(done).values())) == (COMPLETE, {"COMPLETE"}), done.cause
    assert (await here.services.plan(PACKAGE, stack="fleet")).no_change
    snapshot = outputs(await here.get(name))["export"]["snapshot"]
    with pytest.raises(ArtifactGone):
        await read_contents(here, snapshot)


async def read_contents(here: World, snapshot: str) -> int:
    """Read a snapshot; returns the number of messages with its contents."""
    store = here.services.peers["stack"]
    request = snapshot_pb2.GetSnapshotRequest(id=snapshot)
    stream = store.stream(SnapshotServiceStub(store.channel).GetSnapshot, request)
    return len([each async for each in stream if each.HasField("content")])


async def test_of_two_that_delete_one_snapshot_both_are_complete(here: World) -> None:
    await here.services.apply(PACKAGE, stack="fleet")
    name = await backup(here)
    go = asyncio.Event()
    definitions = example()
    definitions["spec"]["actions"]["delete"]["phases"].insert(0, do("first"))
    here.script.does("first", waits_for(go))
    created = [await here.create(definitions, follows(name, "delete")) for _ in range(2)]
    go.set()

    done = [await ended(here, each.name, each.operation_id) for each in created]

    assert {each.state for each in done} == {COMPLETE}
    assert sorted(outputs(each)["drop"]["deleted"] for each in done) == [False, True]


@pytest.mark.parametrize("seconds", [3600.0, -3600.0])
async def test_a_clock_that_is_set_makes_no_phase_run_twice(tmp_path: Path, seconds: float) -> None:
    loop, offset = asyncio.get_running_loop(), 0.0
    assert isinstance(loop, VirtualLoop)

    def clock() -> int:
        return loop.clock() + round(offset * 1_000_000)

    go = asyncio.Event()
    async with world(tmp_path, clock=clock) as here:
        here.script.does("one", waits_for(go))
        phases = [do("one", timeout="2h"), do("two")]
        created = await here.create(blueprint(run={"phases": phases, "deferPhase": do("after")}), action_set("run"))
        await here.script.begun("one").wait()
        offset = seconds
        # Leases are renewed meanwhile, or pass to the next applier.
        await asyncio.sleep(90)
        go.set()

        done = await ended(here, created.name, created.operation_id)

        assert (done.state, set(states(done).values())) == (COMPLETE, {"COMPLETE"}), done.cause
        assert [step for step, _ in here.script.calls if step != "one"] == ["two", "after"]
        assert {key for step, key in here.script.calls if step == "one"} == {"0/0/1"}


async def test_an_applier_refuses_more_action_sets_than_it_may_have(here: World, tmp_path: Path) -> None:
    script, go = Script(), asyncio.Event()
    script.does("one", waits_for(go))
    definitions = blueprint(run={"phases": [do("one")]}), action_set("run")
    async with further_applier(here, tmp_path, script, max_action_sets=2) as first:
        created = [await first.create(*definitions) for _ in range(2)]
        with pytest.raises(LimitReached, match="the applier has 2 unfinished action sets"):
            await first.create(*definitions)
        go.set()
        await asyncio.gather(*(first.events(each.operation_id) for each in created))
        assert (await first.run(*definitions)).state == COMPLETE


async def test_abandoned_action_sets_are_claimed_up_to_the_bound_and_the_rest_later(tmp_path: Path) -> None:
    script, go = Script(), asyncio.Event()
    script.does("one", waits_for(go))
    definitions = blueprint(run={"phases": [do("one")]}), action_set("run")
    async with world(tmp_path, script, max_action_sets=2) as here:
        async with further_applier(here, tmp_path, script) as first:
            created = [await first.create(*definitions) for _ in range(3)]
            await asyncio.gather(*(first.until_event(each.operation_id, "phase_started") for each in created))
        # They are claimed when the leases of the first applier have ended.
        await asyncio.sleep(60)
        assert len(script.calls) == 5
        go.set()

        done = [await ended(here, each.name, each.operation_id) for each in created]

        assert {each.state for each in done} == {COMPLETE}
        assert len(script.calls) == 6


async def test_given_secrets_that_died_with_their_applier_fail_the_phase_that_needs_them(
    here: World, deaths: Deaths
) -> None:
    definitions = blueprint(
        run={
            "secretNames": ["pg"],
            "phases": [do("one"), do("two", secret="{{ secrets.pg.password }}"), do("three")],
            "deferPhase": do("after"),
        }
    )
    request = action_set({"name": "run", "secrets": {"pg": {"password": {"given": True}}}})
    deaths.at("after_phase_effect")

    done = await here.run(definitions, request, secrets={"pg.password": "canary"})

    [failure] = done.failures
    assert (done.state, failure.reason) == (FAILED, INTERRUPTED)
    assert failure.message.endswith("run again, with the secrets")
    assert states(done) == {
        "run/one": "COMPLETE",
        "run/two": "FAILED",
        "run/three": "SKIPPED",
        "run/after": "COMPLETE",
    }


async def test_given_secrets_that_died_with_their_applier_do_not_matter_when_nothing_needs_them(
    here: World, deaths: Deaths
) -> None:
    definitions = blueprint(
        run={"secretNames": ["pg"], "phases": [do("one", secret="{{ secrets.pg.password }}"), do("two")]}
    )
    request = action_set({"name": "run", "secrets": {"pg": {"password": {"given": True}}}})
    deaths.at("after_phase_record")

    done = await here.run(definitions, request, secrets={"pg.password": "canary"})

    assert (done.state, deaths.count) == (COMPLETE, 1)


TOKENS = {f"tokens.{key.replace('-', '_')}": f"value of {key}" for key in SECRETS}
"""The secrets of ``restoring(secrets=True)``, as they come with a request."""


def unchecked() -> dict[str, Any]:
    """The blueprint of the examples whose restore has one phase only, which takes secrets."""
    document = restoring(secrets=True)
    del document["spec"]["actions"]["restore"]["phases"][0]
    return document


def with_tokens(name: str) -> dict[str, Any]:
    """A restore of the backup *name* whose secrets come with the request."""
    places = {key.removeprefix("tokens."): {"given": True} for key in TOKENS}
    return follows(name, "restore", overrides={"secrets": {"tokens": places}})


@pytest.mark.parametrize("place", ["after_child_begin", "after_child_end", "after_phase_effect"])
async def test_given_secrets_that_died_with_their_applier_do_not_matter_to_an_operation_that_has_them(
    here: World, deaths: Deaths, place: str
) -> None:
    """The phase takes the outcome of its operation, which another applier runs, or which has ended."""
    await here.services.apply(text(*EVERY_KIND), stack="fleet")
    name = await backup(here)
    await here.services.uninstall("fleet")
    deaths.at(place)

    done = await here.run(unchecked(), with_tokens(name), secrets=TOKENS)

    assert (done.state, deaths.count) == (COMPLETE, 1), done.cause
    assert await here.services.secret_keys() == SECRETS
    [child] = [each for each in await operations(here) if each.parent]
    assert outputs(done)["apply"]["operation"] == child.id


async def test_given_secrets_that_died_with_their_applier_begin_no_operation(here: World, deaths: Deaths) -> None:
    await here.services.apply(text(*EVERY_KIND), stack="fleet")
    name = await backup(here)
    await here.services.uninstall("fleet")
    deaths.at("after_phase_intent")

    done = await here.run(unchecked(), with_tokens(name), secrets=TOKENS)

    [failure] = done.failures
    assert (done.state, failure.reason) == (FAILED, INTERRUPTED)
    assert failure.message.endswith("run again, with the secrets")
    assert [each for each in await operations(here) if each.parent] == []
    assert (await here.run(unchecked(), with_tokens(name), secrets=TOKENS)).state == COMPLETE


def held_at(script: Script, step: str) -> asyncio.Event:
    """Let the next call of *step* wait until the event is set; later ones end at once."""
    go = asyncio.Event()
    script.does(step, waits_for(go), gives(out="later"))
    return go


@pytest.fixture
async def cut_off(tmp_path: Path) -> tuple[Path, action_pb2.ActionSet]:
    """A store restored from its backup of when the second of three phases ran, and the action set."""
    script = Script()
    go = held_at(script, "two")
    definitions = blueprint(
        run={"kind": "Stack", "lock": True, "phases": [do("one"), do("two"), do("three")], "deferPhase": do("after")}
    )
    async with world(tmp_path, script) as here:
        stack = {"name": "run", "object": {"kind": "Stack", "name": "prod"}}
        created = await here.create(definitions, action_set(stack, name="cut-off"))
        await script.begun("two").wait()
        back_up(tmp_path)
        go.set()
        await here.events(created.operation_id)
    restore(tmp_path)
    return tmp_path, created


async def test_a_restored_store_that_is_marked_blocks_an_unfinished_action_set(
    cut_off: tuple[Path, action_pb2.ActionSet],
) -> None:
    folder, created = cut_off
    async with world(folder) as here:
        await mark_restored(here)
        await asyncio.sleep(60)
        blocked = await here.get(created.name)
        assert (blocked.state, here.script.calls) == (BLOCKED, [])
        operation = next(each for each in await operations(here) if each.id == created.operation_id)
        assert operation.blocked_reason == operation_pb2.BLOCKED_REASON_STORE_RESTORED
        with pytest.raises(PkgerError, match=f"is reserved by action set {created.name}"):
            await here.services.apply(PACKAGE, stack="prod")

        await recover(here, created.operation_id)

        done = await here.get(created.name)
        assert (done.state, done.cause) == (FAILED, RESTORED)
        assert states(done) == {
            "run/one": "COMPLETE",
            "run/two": "FAILED",
            "run/three": "SKIPPED",
            "run/after": "COMPLETE",
        }
        assert [(each.reason, each.message) for each in done.failures] == [(INTERRUPTED, RESTORED)]
        assert [step for step, _ in here.script.calls] == ["after"]
        await here.services.apply(PACKAGE, stack="prod")


async def test_what_becomes_of_the_phases_of_a_restored_store_is_one_write(
    cut_off: tuple[Path, action_pb2.ActionSet], calls: Calls
) -> None:
    """A death between two would leave phases that run again."""
    folder, created = cut_off
    async with world(folder) as here:
        await mark_restored(here)
        here.script.does("after", waits_for(asyncio.Event()))
        recovery = asyncio.create_task(recover(here, created.operation_id))
        await here.script.begun("after").wait()
        # The other one is that of the deferPhase.
        assert calls.count("AdvanceOperation") == 2
        recovery.cancel()


async def test_a_restored_store_that_is_not_marked_resumes_an_unfinished_action_set(
    cut_off: tuple[Path, action_pb2.ActionSet],
) -> None:
    """Nothing tells that the store was restored: what ran outside runs twice."""
    folder, created = cut_off
    async with world(folder) as here:
        done = await ended(here, created.name, created.operation_id)

        assert (done.state, set(states(done).values())) == (COMPLETE, {"COMPLETE"})
        assert [step for step, _ in here.script.calls] == ["two", "three", "after"]
        assert done.actions[0].phases[1].interruptions == 1


async def test_a_restored_store_that_is_not_marked_does_not_continue_the_operation_of_a_phase(tmp_path: Path) -> None:
    """The platform has seen a later operation on the stack."""
    definitions = example()
    definitions["spec"]["actions"]["restore"]["phases"][1]["timeout"] = "1m"
    async with world(tmp_path) as here:
        name = await changed_stack(here)
        created, opened = await in_the_middle_of(here, 1, (definitions, follows(name, "restore")))
        back_up(tmp_path)
        opened.set()
        await here.events(created.operation_id)
        await here.services.apply(CHANGED, stack="fleet")
    restore(tmp_path)
    async with world(tmp_path) as here:
        before = await here.services.resources()
        done = await ended(here, created.name, created.operation_id)

        assert (done.state, done.failures[0].reason) == (FAILED, action_pb2.PHASE_REASON_CHILD_BLOCKED)
        [child] = [each for each in await operations(here) if each.parent]
        assert child.blocked_reason == operation_pb2.BLOCKED_REASON_STORE_RESTORED
        assert await here.services.resources() == before


async def test_an_action_set_that_stays_blocked_is_deleted_with_force(
    cut_off: tuple[Path, action_pb2.ActionSet],
) -> None:
    folder, created = cut_off
    async with world(folder) as here:
        await mark_restored(here)
        with pytest.raises(ActionSetUnfinished):
            await delete(here, created.name)

        await delete(here, created.name, force=True)

        with pytest.raises(ActionSetNotFound):
            await here.get(created.name)
        await asyncio.sleep(60)
        assert here.script.calls == []
        await here.services.apply(PACKAGE, stack="prod")
