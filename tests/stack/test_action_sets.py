"""JournalService: the operation of an action set, from its begin to its end."""

import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pkger.journal.v1 import action_set_pb2, journal_pb2
from pkger.model.v1 import action_pb2, operation_pb2
from pkger.model.v1.operation_pb2 import (
    CANCEL_EFFECT_BLOCKED,
    CANCEL_EFFECT_STOPS,
    OPERATION_STATE_APPLYING,
    OPERATION_STATE_BLOCKED,
    OPERATION_STATE_CANCELLED,
    OPERATION_STATE_FAILED,
    OPERATION_STATE_PREPARING,
    OPERATION_STATE_ROLLING_BACK,
    OPERATION_STATE_SUCCEEDED,
    OperationEvent,
    OperationState,
)
from pkger.model.v1.plan_pb2 import OPERATION_KIND_ACTION

from services.core.errors import ActionSetExists, ArtifactGone, LeaseLost, LimitReached, RequestInvalid
from stack_svc.rules.action_sets import MOST_UNFINISHED
from tests.stack.action_sets import (
    COMPLETE,
    begin,
    begin_child,
    create,
    finish,
    make_snapshot,
    manifest,
    named,
    new_action_set,
    phase,
    start,
    start_request,
    write,
)
from tests.stack.service import (
    Client,
    Clock,
    service_in_memory,
    write_request,
)
from tests.stack.service import (
    start_request as start_with_plan,
)

FAILED = action_set_pb2.STOP_REASON_FAILED


async def test_an_operation_becomes_an_action_set_with_its_start(service: Client, clock: Clock) -> None:
    run = await begin(service)
    before = await service.operation(run.operation)
    assert (before.kind, before.state, before.action_set) == (OPERATION_KIND_ACTION, OPERATION_STATE_PREPARING, "")
    made = new_action_set("nightly", labels={"b": "2", "a": "1"}, predecessor="first")
    await start(service, run, made)
    clock.forward(1)
    await write(service, run, phase(0))
    clock.forward(1)
    await write(service, run, phase(0, COMPLETE, outputs_json='{"a":1}'), phase(1), done_count=1)

    operation = await service.operation(run.operation)
    assert (operation.action_set, operation.state) == ("nightly", OPERATION_STATE_APPLYING)
    assert (operation.step_count, operation.done_count, operation.stack_id) == (3, 1, "")
    clock.forward(31)
    heir, answer = await service.claim(run.operation)
    assert (heir.position, heir.last_seq) == (3, 1)
    assert answer.action_set == made
    assert not answer.steps
    assert [[each.index for each in records.phases] for records in answer.records] == [[0], [0, 1]]
    assert [records.write_time.ToMicroseconds() for records in answer.records] == [
        clock.now - 32_000_000,
        clock.now - 31_000_000,
    ]
    with pytest.raises(LeaseLost):
        await write(service, run, phase(1, COMPLETE))


async def test_a_repeated_start_has_one_effect(service: Client) -> None:
    run = await begin(service)
    for _ in range(2):
        await start(service, run, new_action_set("nightly", labels={"a": "1", "b": "2"}))
    await write(service, run, phase(0))
    await start(service, run, new_action_set("nightly", labels={"b": "2", "a": "1"}))
    with pytest.raises(RequestInvalid, match="started with another action set"):
        await start(service, run, new_action_set("nightly", ["prod"]))
    with pytest.raises(RequestInvalid, match="started with another action set"):
        await start(service, run, new_action_set("other"))


async def test_a_name_is_taken_once(service: Client) -> None:
    first = await create(service, "nightly")
    run = await begin(service)
    with pytest.raises(ActionSetExists):
        await start(service, run, new_action_set("nightly"))
    assert (await service.operation(run.operation)).state == OPERATION_STATE_PREPARING
    await finish(service, first)
    with pytest.raises(ActionSetExists):
        await start(service, run, new_action_set("nightly"))
    await start(service, run, new_action_set("other"))


async def test_a_store_has_a_bound_on_unfinished_action_sets(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "stack.db"
    async with service_in_memory(path, clock) as service:
        last = await create(service, "last")
        with sqlite3.connect(path) as connection:
            connection.executemany(
                "INSERT INTO operations (id, stack, stackless, stack_name, platform, org, kind, state, holder, token,"
                " create_time, update_time, action_set) VALUES (?, ?, 1, '', '', '', 'ACTION', 'APPLYING', '', 1, 1, 1,"
                " 'a')",
                [(f"o-{number}", f"s-{number}") for number in range(MOST_UNFINISHED - 1)],
            )
        connection.close()
        run = await begin(service)
        with pytest.raises(LimitReached) as raised:
            await start(service, run, new_action_set("one more"))
        assert raised.value.metadata == {"where": "store", "limit": "1000"}
        await finish(service, last)
        await start(service, run, new_action_set("one more"))


async def refusal(service: Client, request: journal_pb2.AdvanceOperationRequest) -> str:
    """The field that a refused write names."""
    with pytest.raises(RequestInvalid) as raised:
        await service.peer.call(service.journal.AdvanceOperation, request)
    return raised.value.metadata["field"]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"name": ""}, "start.action_set.name"),
        ({"pinned_json": ""}, "start.action_set.pinned_json"),
        ({"pinned_json": "x" * (4 * 1024 * 1024 + 1)}, "start.action_set.pinned_json"),
        ({"phase_count": 0}, "start.action_set.phase_count"),
        ({"reserved": [named("")]}, "start.action_set.reserved.name"),
    ],
)
async def test_a_start_that_is_not_valid_is_refused(service: Client, fields: dict[str, Any], field: str) -> None:
    run = await begin(service)
    made = action_set_pb2.NewActionSet(**{"name": "a", "pinned_json": "{}", "phase_count": 1, **fields})
    assert await refusal(service, start_request(run, made)) == field
    other = start_request(run, new_action_set("a"))
    other.start.accepted.accepted.action_set = "b"
    assert await refusal(service, other) == "start.accepted"


async def test_operations_with_a_plan_and_action_sets_do_not_mix(service: Client) -> None:
    stack = await service.create("prod")
    request = journal_pb2.BeginOperationRequest(stack=named("prod"), operation_id="o", kind=OPERATION_KIND_ACTION)
    request.holder, request.ttl.seconds = "me", 30
    with pytest.raises(RequestInvalid, match="an action set has no stack"):
        await service.begin_answer(request)

    planned = await service.begin(stack_id=stack.id, steps=None)
    assert await refusal(service, start_request(planned, new_action_set("a"))) == "start.action_set"
    await service.start(planned)
    assert await refusal(service, write_request(planned, position=2, action={"phases": [phase(0)]})) == "action"
    assert await refusal(service, write_request(planned, position=2, snapshots=[manifest("prod")])) == "action"

    run = await begin(service)
    await service.plan_for(run, 3)
    assert await refusal(service, start_with_plan(run)) == "start"
    await start(service, run, new_action_set("a"))
    step = journal_pb2.StepRecord(step=1, state=journal_pb2.STEP_STATE_INTENT)
    for content in ({"steps": [step]}, {"seal": True}, {"rollback": True, "cause": "x"}):
        assert await refusal(service, write_request(run, position=2, **content)) == "writes"
    unknown = {"phases": [action_set_pb2.PhaseRecord(action=0)]}
    assert await refusal(service, write_request(run, position=2, action=unknown)) == "action.phases.state"


ENDS = {
    "PREPARING": {OPERATION_STATE_FAILED},
    "APPLYING": {
        OPERATION_STATE_SUCCEEDED,
        OPERATION_STATE_FAILED,
        OPERATION_STATE_CANCELLED,
        OPERATION_STATE_BLOCKED,
    },
    "ROLLING_BACK": {OPERATION_STATE_FAILED, OPERATION_STATE_CANCELLED, OPERATION_STATE_BLOCKED},
}


@pytest.mark.parametrize("before", ENDS)
@pytest.mark.parametrize("state", [value for value in OperationState.values() if value])
async def test_an_action_set_ends_in_a_state_of_its_own(
    service: Client, before: str, state: OperationState.ValueType
) -> None:
    run = await begin(service)
    if before != "PREPARING":
        await start(service, run, new_action_set("a"))
    if before == "ROLLING_BACK":
        await write(service, run, stop=FAILED, cause="it failed")
    if state in ENDS[before]:
        await finish(service, run, state, "why")
        operation = await service.operation(run.operation)
        assert (operation.state, operation.cause) == (state, "why" if run.position else "")
    else:
        with pytest.raises(RequestInvalid):
            await finish(service, run, state)


async def test_an_action_set_leaves_no_record(service: Client) -> None:
    run = await create(service, "a")
    for outcome in ({"remove": journal_pb2.Remove()}, {"record": journal_pb2.Record()}):
        with pytest.raises(RequestInvalid, match="is not an outcome"):
            await service.finish(run, OPERATION_STATE_SUCCEEDED, **outcome)
    request = journal_pb2.FinishOperationRequest(
        operation_id=run.operation,
        token=run.token,
        position=3,
        state=OPERATION_STATE_SUCCEEDED,
        abandon=journal_pb2.Abandon(),
        writes=[journal_pb2.JournalWrite(position=2, action=action_set_pb2.ActionRecords(reserve=True))],
        finished=run.next_event(finished=operation_pb2.Finished()),
    )
    with pytest.raises(RequestInvalid, match="reserved before the end"):
        await service.peer.call(service.journal.FinishOperation, request)


async def test_an_operation_with_a_plan_is_never_cancelled(service: Client) -> None:
    begun = await service.begin("prod")
    with pytest.raises(RequestInvalid, match="cannot end CANCELLED"):
        await service.abandon(begun, state=OPERATION_STATE_CANCELLED)


async def test_a_request_id_is_given_back_only_before_the_start(service: Client) -> None:
    early = await begin(service, request_id="r")
    await finish(service, early, OPERATION_STATE_FAILED)
    run = await begin(service, request_id="r")
    assert run.operation != early.operation
    await start(service, run, new_action_set("a"))
    await finish(service, run, OPERATION_STATE_FAILED)
    assert (await begin(service, request_id="r")).operation == run.operation


async def test_what_stops_an_action_set_first_is_its_cause(service: Client) -> None:
    run = await create(service, "a")
    await write(service, run, phase(0))
    failed = phase(0, action_pb2.PHASE_STATE_FAILED, message="first")
    await write(service, run, failed, stop=FAILED, cause="phase one failed", done_count=1)
    await write(service, run, stop=action_set_pb2.STOP_REASON_CANCELLED, cause="cancelled")
    operation = await service.operation(run.operation)
    assert (operation.state, operation.cause) == (OPERATION_STATE_ROLLING_BACK, "phase one failed")


async def test_a_repeated_write_has_one_effect(service: Client) -> None:
    run = await create(service, "a")
    values = {"y": "2", "x": "1"}
    for each in (values, dict(sorted(values.items()))):
        artifact = action_set_pb2.ArtifactRecord(artifact=action_pb2.Artifact(name="backup", values=each))
        await write(service, run, phase(0), artifacts=[artifact], position=2)
    with pytest.raises(RequestInvalid, match="the next position"):
        await write(service, run, phase(1), position=2)
    with pytest.raises(RequestInvalid, match="of 3 steps"):
        await write(service, run, phase(1), done_count=4)


async def test_a_cancel_stops_an_action_set(service: Client, clock: Clock) -> None:
    run = await create(service, "a")
    request = journal_pb2.RequestCancelRequest(operation_id=run.operation)

    async def effect() -> operation_pb2.CancelEffect.ValueType:
        return (await service.peer.call(service.journal.RequestCancel, request)).effect

    assert await effect() == CANCEL_EFFECT_STOPS
    assert (await write(service, run, phase(0))).cancel_requested
    await finish(service, run, OPERATION_STATE_BLOCKED)
    assert await effect() == CANCEL_EFFECT_BLOCKED


async def test_a_defect_or_a_restored_store_blocks_an_action_set(service: Client) -> None:
    run, other = await create(service, "a"), await create(service, "b")
    for number in range(3):
        report = journal_pb2.ReportDefectRequest(operation_id=run.operation, token=run.token, problem="a bug")
        answer = await service.peer.call(service.journal.ReportDefect, report)
        assert answer.HasField("finished") == (number == 2)
        run, _ = await service.claim(run.operation)
    assert (await service.operation(run.operation)).state == OPERATION_STATE_BLOCKED
    await write(service, run, phase(0))
    assert (await service.operation(run.operation)).state == OPERATION_STATE_APPLYING

    marked = await service.peer.call(service.journal.MarkRestored, journal_pb2.MarkRestoredRequest())
    assert sorted(marked.blocked_operation_ids) == sorted([run.operation, other.operation])
    heir, claimed = await service.claim(other.operation)
    assert claimed.action_set.name == "b"
    await write(service, heir, stop=action_set_pb2.STOP_REASON_STORE_RESTORED, cause="restored")
    operation = await service.operation(other.operation)
    assert (operation.state, operation.cause) == (OPERATION_STATE_ROLLING_BACK, "restored")
    await finish(service, heir, OPERATION_STATE_FAILED, "restored")


async def test_a_child_begins_under_the_lease_of_its_parent(service: Client, clock: Clock) -> None:
    run = await create(service, "a")
    child = await begin_child(service, run, named("prod"))
    operation = await service.operation(child.operation)
    assert operation.parent == run.operation
    await service.abandon(child)

    for parent in (replace(run, token=run.token + 1), replace(run, operation="other")):
        with pytest.raises(LeaseLost):
            await begin_child(service, parent, named("other"))
    clock.forward(31)
    with pytest.raises(LeaseLost):
        await begin_child(service, run, named("other"))
    heir, _ = await service.claim(run.operation)
    await finish(service, heir)
    with pytest.raises(LeaseLost):
        await begin_child(service, heir, named("other"))


async def test_a_snapshot_needs_its_contents(service: Client) -> None:
    run = await create(service, "a")
    with pytest.raises(RequestInvalid, match="the store has no attachment sha256:"):
        await write(service, run, phase(0), snapshots=[manifest("prod", "package")])
    for text in ("", "[]", "{", '{"format":2}', manifest("prod").replace('"objects":2', '"objects":"2"')):
        with pytest.raises(RequestInvalid, match="is no manifest of a snapshot"):
            await write(service, run, phase(0), snapshots=[text])
    first = await make_snapshot(service, run, "prod", "package")
    again = await make_snapshot(service, run, "prod", "package")
    assert first == again
    other = await create(service, "b")
    with pytest.raises(RequestInvalid, match="another action set made snapshot"):
        await make_snapshot(service, other, "prod", "package")


async def test_an_action_set_uses_only_snapshots_that_are_there(service: Client) -> None:
    maker = await create(service, "a")
    made = await make_snapshot(service, maker, "prod", "package")
    await create(service, "b", snapshots=[made])
    run = await begin(service)
    with pytest.raises(ArtifactGone):
        await start(service, run, new_action_set("c", snapshots=[made, f"sha256:{'0' * 64}"]))
    await start(service, run, new_action_set("c", snapshots=[made]))


async def test_writes_without_phases_are_events_only(service: Client) -> None:
    run = await create(service, "a")
    waiting = OperationEvent(operation_id=run.operation, seq=2, waiting=operation_pb2.Waiting(stack_name="prod"))
    request = write_request(run, position=2, events=[waiting])
    await service.peer.call(service.journal.AdvanceOperation, request)
    assert [event.WhichOneof("event") for event in (await service.events(run.operation)).events] == [
        "accepted",
        "waiting",
    ]
