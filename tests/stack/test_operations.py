"""JournalService: an operation from its begin up to its end, and reads of it."""

import sqlite3
from base64 import urlsafe_b64encode
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from pkger.journal.v1 import journal_pb2
from pkger.journal.v1.journal_pb2 import StepRecord, StepState
from pkger.model.v1 import operation_pb2
from pkger.model.v1.object_pb2 import StackRef, Target
from pkger.model.v1.operation_pb2 import (
    OPERATION_STATE_APPLYING,
    OPERATION_STATE_BLOCKED,
    OPERATION_STATE_FAILED,
    OPERATION_STATE_PREPARING,
    OPERATION_STATE_ROLLED_BACK,
    OPERATION_STATE_ROLLING_BACK,
    OPERATION_STATE_SUCCEEDED,
    REJECTION_REASON_NAME_TAKEN,
    OperationEvent,
)
from pkger.model.v1.plan_pb2 import OPERATION_KIND_APPLY, OPERATION_KIND_UNINSTALL

from services.core.errors import Internal, LeaseLost, OperationNotFound, RequestInvalid, StackLeased, StackNotFound
from services.rpc.parts import MAX_PART_BYTES
from tests.stack.service import (
    ELSEWHERE,
    HERE,
    Client,
    Clock,
    a_create,
    a_plan,
    entry,
    finish_many,
    stage_started,
    start_request,
    write_request,
)

DONE, INTENT = StepState.STEP_STATE_DONE, StepState.STEP_STATE_INTENT


async def test_an_operation_shows_its_progress(service: Client, clock: Clock) -> None:
    began = clock.now
    begun = await service.begin("prod", operation="operation-1", holder="me", steps=None)
    assert await service.operation("operation-1") == operation_pb2.Operation(
        id="operation-1",
        kind=OPERATION_KIND_APPLY,
        state=OPERATION_STATE_PREPARING,
        stack_id=begun.stack.id,
        stack_name="prod",
        target=Target(platform="embedded", org="default"),
        create_time=begun.stack.create_time,
        update_time=begun.stack.create_time,
        holder="me",
    )

    clock.forward(1)
    await service.start(begun, steps=3)
    started = await service.operation("operation-1")
    assert (started.state, started.step_count, started.done_count) == (OPERATION_STATE_APPLYING, 3, 0)
    assert (started.create_time.ToMicroseconds(), started.update_time.ToMicroseconds()) == (began, clock.now)

    clock.forward(1)
    await service.advance(begun, [StepRecord(step=0, state=DONE), StepRecord(step=1, state=INTENT)], done_count=1)
    advanced = await service.operation("operation-1")
    assert (advanced.done_count, advanced.update_time.ToMicroseconds()) == (1, clock.now)

    clock.forward(1)
    await service.renew(begun)
    assert (await service.operation("operation-1")).update_time.ToMicroseconds() == clock.now

    await service.advance(begun, rollback=True, cause="step 1 failed")
    turned = await service.operation("operation-1")
    assert (turned.state, turned.cause) == (OPERATION_STATE_ROLLING_BACK, "step 1 failed")

    clock.forward(-60)
    await service.abandon(begun, cause="step 1 failed badly")
    ended = await service.operation("operation-1")
    assert (ended.state, ended.cause) == (OPERATION_STATE_ROLLED_BACK, "step 1 failed badly")
    assert ended.update_time == turned.update_time


async def test_an_unknown_operation_is_not_found(service: Client) -> None:
    unknown = await service.begin("prod")
    unknown.operation = "operation-x"
    for call in (
        service.operation("operation-x"),
        service.events("operation-x"),
        service.claim("operation-x"),
        service.cancel("operation-x"),
        service.start(unknown),
        service.advance(unknown),
    ):
        with pytest.raises(OperationNotFound) as raised:
            await call
        assert raised.value.metadata == {"operation": "operation-x"}


@pytest.mark.parametrize("steps", [None, 3])
async def test_an_operation_without_a_stack_has_a_hidden_row_that_is_removed_with_it(
    service: Client, steps: int | None
) -> None:
    begun = await service.begin(none=ELSEWHERE, steps=steps)

    assert (begun.stack.name, begun.stack.target.org, begun.is_pending) == ("", "another", False)
    assert await service.names() == []
    operation = await service.operation(begun.operation)
    assert (operation.stack_id, operation.stack_name, operation.target.org) == ("", "", "another")
    await service.renew(begun)

    answer = await service.abandon(begun)

    assert answer.generation == 0
    assert answer == await service.abandon(begun)
    with pytest.raises(StackNotFound):
        await service.get(begun.stack.id)
    ended = await service.operation(begun.operation)
    assert ended.state == (OPERATION_STATE_ROLLED_BACK if steps else OPERATION_STATE_FAILED)


async def test_any_number_of_operations_without_a_stack_run_at_once(service: Client) -> None:
    first, second = await service.begin(none=HERE), await service.begin(none=HERE)

    assert first.stack.id != second.stack.id
    await service.finish(first, OPERATION_STATE_SUCCEEDED, remove=journal_pb2.Remove())
    await service.renew(second)


async def test_an_operation_without_a_stack_leaves_no_record(service: Client) -> None:
    begun = await service.begin(none=HERE)

    with pytest.raises(RequestInvalid) as raised:
        await service.record(begun, [entry("one")])

    assert raised.value.metadata["field"] == "outcome"
    await service.finish(begun, OPERATION_STATE_SUCCEEDED, abandon=journal_pb2.Abandon())


async def test_an_operation_that_died_before_it_sent_anything_failed_with_the_next_sweep(
    service: Client, clock: Clock
) -> None:
    """The stack that was created for it is removed with it."""
    dead = [await service.begin("prod", steps=None), await service.begin(none=HERE, steps=None)]
    clock.forward(60)

    swept = await service.sweep()

    assert (swept.ended, swept.stacks) == (2, 2)
    for begun in dead:
        operation = await service.operation(begun.operation)
        assert (operation.state, operation.cause) == (
            OPERATION_STATE_FAILED,
            "its applier was gone before it sent anything",
        )
        with pytest.raises(StackNotFound):
            await service.get(begun.stack.id)
    assert (await service.events(dead[0].operation)).events == []


@pytest.mark.parametrize("way", ["id", "name", "none"])
async def test_a_repeated_begin_returns_the_same_response_and_renews_the_lease(
    service: Client, clock: Clock, way: str
) -> None:
    known = await service.create("prod")
    asked = {"id": {"stack_id": known.id}, "name": {"name": "prod"}, "none": {"none": HERE}}[way]
    first = await service.begin(operation="operation-1", steps=None, **asked)  # type: ignore[arg-type]
    clock.forward(10)

    again = await service.begin(operation="operation-1", steps=None, **asked)  # type: ignore[arg-type]

    assert (again.stack, again.token) == (first.stack, first.token)
    assert again.expire_time.ToMicroseconds() == clock.now + 30_000_000
    assert len((await service.operations()).operations) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"holder": "another applier"},
        {"name": "other"},
        {"name": "prod", "target": ELSEWHERE},
        {"none": HERE},
    ],
)
async def test_a_name_of_an_operation_is_used_once(service: Client, change: dict[str, object]) -> None:
    await service.begin("prod", operation="operation-1", steps=None)

    with pytest.raises(RequestInvalid) as raised:
        await service.begin(**{"name": "prod", "operation": "operation-1", **change})  # type: ignore[arg-type]

    assert raised.value.metadata["field"] == "operation_id"
    assert await service.names() == []


async def test_a_repeated_begin_is_refused_after_the_lease_expired(service: Client, clock: Clock) -> None:
    started = await service.begin("started", operation="operation-1")
    with pytest.raises(RequestInvalid):
        await service.begin("started", operation="operation-1")

    await service.begin("expired", operation="operation-2", steps=None)
    clock.forward(60)
    with pytest.raises(RequestInvalid):
        await service.begin("expired", operation="operation-2")

    assert (await service.operation(started.operation)).state == OPERATION_STATE_APPLYING


async def test_a_repeated_start_takes_effect_once(service: Client) -> None:
    begun = await service.begin("prod", steps=3)
    await service.advance(begun, [StepRecord(step=1, state=DONE)], seqs=[2], done_count=1)

    await service.start(begun, steps=3)
    await service.store_plan(a_plan(3, "operation-other"))
    with pytest.raises(RequestInvalid) as raised:
        await service.start(begun, plan="plan-other")

    assert raised.value.metadata["field"] == "plan_id"
    operation = await service.operation(begun.operation)
    assert (operation.step_count, operation.done_count) == (3, 1)
    assert len((await service.events(begun.operation)).events) == 2


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"plan_id": ""}, "plan_id"),
        ({"accepted": None}, "accepted"),
        ({"accepted": stage_started("operation-1", 1)}, "accepted"),
        ({"accepted": OperationEvent(seq=2, accepted=operation_pb2.Accepted())}, "accepted"),
    ],
)
async def test_an_operation_starts_with_a_plan_and_its_first_event(
    service: Client, change: dict[str, object], field: str
) -> None:
    begun = await service.begin("prod", steps=None)
    await service.plan_for(begun, 1)
    request = start_request(begun)
    fields = {"plan_id": request.start.plan_id, "accepted": request.start.accepted}
    request.start.CopyFrom(journal_pb2.Start(**fields | change))  # type: ignore[arg-type]

    with pytest.raises(RequestInvalid) as raised:
        await service.peer.call(service.journal.AdvanceOperation, request)

    assert raised.value.metadata["field"] == f"start.{field}"
    assert (await service.operation(begun.operation)).state == OPERATION_STATE_PREPARING


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        ({"records": [StepRecord(step=3, state=DONE)]}, "steps"),
        ({"records": [StepRecord(step=-1, state=DONE)]}, "steps"),
        ({"records": [StepRecord(step=0)]}, "step_state"),
        ({"records": [StepRecord(step=0, state=99)]}, "step_state"),  # type: ignore[arg-type]
        ({"seqs": [3]}, "events"),
        ({"seqs": [2, 4]}, "events"),
        ({"seqs": [0]}, "events"),
        ({"position": 1}, "position"),
        ({"position": 3}, "position"),
        ({"position": 0}, "position"),
        ({"position": -1}, "position"),
        ({"done_count": 4}, "done_count"),
        ({"done_count": -1}, "done_count"),
        ({"seal": True, "rollback": True}, "rollback"),
    ],
)
async def test_an_invalid_write_is_refused_as_a_whole(service: Client, request_: dict[str, object], field: str) -> None:
    begun = await service.begin("prod", steps=3)
    before = await service.operation(begun.operation)

    with pytest.raises(RequestInvalid) as raised:
        await service.advance(begun, **{"records": [StepRecord(step=1, state=DONE)], **request_})  # type: ignore[arg-type]

    assert raised.value.metadata["field"] == field
    assert await service.operation(begun.operation) == before
    assert len((await service.events(begun.operation)).events) == 1


async def test_an_empty_event_is_refused(service: Client) -> None:
    begun = await service.begin("prod")

    request = write_request(begun, events=[begun.next_event()])
    with pytest.raises(RequestInvalid) as raised:
        await service.peer.call(service.journal.AdvanceOperation, request)

    assert raised.value.metadata["field"] == "events"


async def test_an_operation_that_did_not_start_does_not_advance(service: Client) -> None:
    begun = await service.begin("prod", steps=None)

    with pytest.raises(RequestInvalid) as raised:
        await service.advance(begun)

    assert raised.value.metadata["field"] == "operation_id"


async def test_a_sealed_operation_does_not_roll_back(service: Client) -> None:
    sealed, turned = await service.begin("sealed"), await service.begin("turned")
    for _ in range(2):
        await service.advance(sealed, seal=True)
        await service.advance(turned, rollback=True)

    with pytest.raises(RequestInvalid):
        await service.advance(sealed, rollback=True)
    with pytest.raises(RequestInvalid):
        await service.advance(turned, seal=True)

    assert (await service.operation(sealed.operation)).state == OPERATION_STATE_APPLYING
    assert (await service.operation(turned.operation)).state == OPERATION_STATE_ROLLING_BACK


async def test_a_later_record_of_a_step_replaces_the_one_before(service: Client, clock: Clock) -> None:
    begun = await service.begin("prod", steps=4)
    intent = StepRecord(step=2, state=INTENT, resource_id="0a", before_ids=["1", "ü"])
    failed = StepRecord(
        step=2, state=StepState.STEP_STATE_FAILED, message="no room", reason=REJECTION_REASON_NAME_TAKEN
    )
    other = StepRecord(step=0, state=StepState.STEP_STATE_SKIPPED, message="the lease was lost")

    await service.advance(begun, [intent])
    await service.advance(begun, [failed, other])
    await service.advance(begun, [StepRecord(step=1, state=INTENT), StepRecord(step=1, state=DONE)])
    clock.forward(60)

    _, answer = await service.claim(begun.operation)
    assert list(answer.steps) == [other, StepRecord(step=1, state=DONE), failed]


async def test_a_write_that_breaks_the_rules_is_found_when_the_journal_is_read(service: Client, clock: Clock) -> None:
    """Only reads fold the writes, so only they check the transitions of steps (docs/reference/engine.md, "Journal")."""
    begun = await service.begin("prod", steps=3)
    await service.advance(begun, [StepRecord(step=1, state=DONE)])
    await service.advance(begun, [StepRecord(step=1, state=INTENT)])
    clock.forward(60)

    with pytest.raises(Internal):
        await service.claim(begun.operation)
    # The lease is free.
    assert await service.abandoned() == [begun.operation]


async def test_states_of_steps_are_folded_from_events(service: Client, clock: Clock) -> None:
    """Records hold the rest: resources that existed before, and the observed spec."""
    begun = await service.begin("prod", steps=4)
    sent = operation_pb2.StepsSent(direction=operation_pb2.DIRECTION_DO, steps=[0, 1, 2])
    ended = operation_pb2.StepsEnded(
        outcomes=[
            operation_pb2.StepOutcome(step=0, done=operation_pb2.StepDone(resource_id="0a")),
            operation_pb2.StepOutcome(
                step=1, failed=operation_pb2.StepFailed(message="no room", reason=REJECTION_REASON_NAME_TAKEN)
            ),
        ]
    )
    there = StepRecord(step=2, state=INTENT, before_ids=["1", "ü"])
    await service.append(begun, there, steps_sent=sent)
    await service.append(begun, steps_ended=ended, done_count=1)
    undone = operation_pb2.StepsSent(direction=operation_pb2.DIRECTION_UNDO, steps=[0])
    await service.append(begun, steps_sent=undone, done_count=1)
    clock.forward(60)

    _, claimed = await service.claim(begun.operation)

    assert list(claimed.steps) == [
        StepRecord(step=0, state=StepState.STEP_STATE_UNDO_INTENT, resource_id="0a"),
        StepRecord(step=1, state=StepState.STEP_STATE_FAILED, message="no room", reason=REJECTION_REASON_NAME_TAKEN),
        there,
    ]
    assert (claimed.operation.done_count, claimed.position, claimed.last_seq) == (1, 4, 4)


@pytest.mark.parametrize("step", [-1, 3])
async def test_an_event_about_a_step_that_is_not_in_the_plan_is_refused(service: Client, step: int) -> None:
    begun = await service.begin("prod", steps=3)
    sent = operation_pb2.StepsSent(direction=operation_pb2.DIRECTION_DO, steps=[0, step])

    with pytest.raises(RequestInvalid) as raised:
        await service.append(begun, steps_sent=sent)

    assert raised.value.metadata["field"] == "steps"


async def test_a_repeated_advance_takes_effect_once(service: Client) -> None:
    begun = await service.begin("prod", steps=3)

    for _ in range(3):
        await service.advance(
            begun,
            [StepRecord(step=1, state=DONE)],
            [2, 3],
            rollback=True,
            cause="it failed",
            position=2,
            done_count=1,
        )

    operation = await service.operation(begun.operation)
    assert (operation.done_count, operation.cause) == (1, "it failed")
    assert [event.seq for event in (await service.events(begun.operation)).events] == [1, 2, 3]
    with pytest.raises(RequestInvalid) as raised:
        await service.advance(begun, seqs=[2, 3], position=2)
    assert raised.value.metadata["field"] == "position"
    await service.advance(begun, seqs=[4, 5], done_count=1)
    assert [event.seq for event in (await service.events(begun.operation)).events] == [1, 2, 3, 4, 5]
    assert (await service.operation(begun.operation)).cause == "it failed"


@pytest.mark.parametrize(
    "change", [{"seal": True}, {"rollback": True}, {"rollback": True, "cause": "it failed"}, {"done_count": 1}]
)
async def test_another_write_at_the_same_position_is_refused(service: Client, change: dict[str, Any]) -> None:
    """Otherwise its applier would continue as if it had been written."""
    begun = await service.begin("prod", steps=3)
    await service.advance(begun, position=2)
    before = await service.operation(begun.operation)

    with pytest.raises(RequestInvalid) as raised:
        await service.advance(begun, position=2, **change)

    assert raised.value.metadata["field"] == "position"
    assert await service.operation(begun.operation) == before


@pytest.mark.parametrize(
    "event",
    [
        OperationEvent(seq=2, steps_sent=operation_pb2.StepsSent(steps=[0])),
        OperationEvent(seq=2, finished=operation_pb2.Finished()),
        OperationEvent(seq=2, accepted=operation_pb2.Accepted()),
        OperationEvent(operation_id="operation-other", seq=2, stage_started=operation_pb2.StageStarted()),
    ],
)
async def test_an_event_of_the_wrong_type_is_refused(service: Client, event: OperationEvent) -> None:
    begun = await service.begin("prod", steps=3)
    event.operation_id = event.operation_id or begun.operation
    request = write_request(begun, position=2, events=[event])

    with pytest.raises(RequestInvalid) as raised:
        await service.peer.call(service.journal.AdvanceOperation, request)

    assert raised.value.metadata["field"] == "events"
    assert (await service.operation(begun.operation)).done_count == 0


async def test_a_repeated_start_with_another_event_is_refused(service: Client) -> None:
    begun = await service.begin("prod", steps=3)
    request = start_request(begun)
    request.start.accepted.accepted.digest = "another"

    with pytest.raises(RequestInvalid) as raised:
        await service.peer.call(service.journal.AdvanceOperation, request)

    assert raised.value.metadata["field"] == "accepted"


async def test_a_late_repeated_write_succeeds_and_changes_nothing(service: Client) -> None:
    """It was sent twice, and the operation has continued since."""
    begun = await service.begin("prod", steps=3)
    await service.advance(begun, [StepRecord(step=1, state=INTENT)], [2], position=2)
    await service.advance(begun, [StepRecord(step=1, state=DONE)], [3], position=3, done_count=1)
    before = await service.operation(begun.operation)

    await service.advance(begun, [StepRecord(step=1, state=INTENT)], [2], position=2)

    assert await service.operation(begun.operation) == before
    assert [event.seq for event in (await service.events(begun.operation)).events] == [1, 2, 3]


async def test_events_are_read_in_order_as_they_were_written(service: Client) -> None:
    begun = await service.begin("prod", steps=2)
    await service.advance(begun, seqs=[2, 3])
    first = start_request(begun).start.accepted
    later = [stage_started(begun.operation, seq) for seq in (2, 3)]

    answer = await service.events(begun.operation)

    assert list(answer.events) == [first, *later]
    assert (answer.has_more, answer.state) == (False, OPERATION_STATE_APPLYING)
    assert list((await service.events(begun.operation, -5)).events) == [first, *later]
    assert list((await service.events(begun.operation, 1)).events) == later
    assert list((await service.events(begun.operation, 3)).events) == []


async def test_more_than_1000_events_are_read_in_parts(service: Client) -> None:
    begun = await service.begin("prod")
    await service.advance(begun, seqs=range(2, 2302))

    seqs: list[int] = []
    parts = []
    while True:
        answer = await service.events(begun.operation, seqs[-1] if seqs else 0)
        parts.append(len(answer.events))
        seqs += [event.seq for event in answer.events]
        if not answer.has_more:
            break

    assert parts == [1000, 1000, 301]
    assert seqs == list(range(1, 2302))


async def test_an_answer_with_events_is_no_larger_than_a_message(service: Client) -> None:
    begun = await service.begin("prod")
    cause = "x" * 250_000
    for seq in range(2, 6):
        started = operation_pb2.RollbackStarted(cause=cause)
        event = OperationEvent(operation_id=begun.operation, seq=seq, rollback_started=started)
        request = write_request(begun, position=seq, events=[event])
        await service.peer.call(service.journal.AdvanceOperation, request)

    answer = await service.events(begun.operation)

    assert ([event.seq for event in answer.events], answer.has_more) == ([1, 2, 3, 4], True)
    assert answer.ByteSize() < MAX_PART_BYTES
    assert [event.seq for event in (await service.events(begun.operation, 4)).events] == [5]


async def test_a_write_or_renewal_returns_that_a_cancel_was_requested(service: Client) -> None:
    begun = await service.begin("prod", steps=None)
    assert not (await service.renew(begun)).cancel_requested

    for _ in range(2):
        await service.cancel(begun.operation)

    assert (await service.renew(begun)).cancel_requested
    await service.start(begun)
    assert await service.advance(begun)

    await service.abandon(begun)
    with pytest.raises(OperationNotFound):
        await service.cancel(begun.operation)


async def test_operations_are_listed_newest_first_even_if_their_stack_is_removed(service: Client, clock: Clock) -> None:
    names = []
    for name in ("a", "b", "a"):
        names.append((await service.begin(name)).operation)
        clock.forward(60)
        heir, _ = await service.claim(names[-1])
        await service.record(heir)
    stack = await service.get_named("a")
    removal = await service.begin("a")
    await service.remove(removal)
    clock.forward(1)
    running = await service.begin(none=HERE)

    newest = [running.operation, removal.operation, *reversed(names)]

    assert [operation.id for operation in (await service.operations()).operations] == newest
    on_a = (await service.operations(stack_id=stack.id)).operations
    assert [operation.id for operation in on_a] == [newest[1], newest[2], newest[4]]
    assert {operation.stack_id for operation in on_a} == {stack.id}


@pytest.mark.parametrize(("page_size", "sizes"), [(1, [1] * 7), (3, [3, 3, 1]), (7, [7]), (0, [7]), (500, [7])])
async def test_pages_hold_every_operation_once(service: Client, clock: Clock, page_size: int, sizes: list[int]) -> None:
    """This includes operations that began at the same moment, and one that begins between two pages."""
    names = []
    for number in range(7):
        names.append((await service.begin(f"stack {number}", steps=None)).operation)
        clock.forward(number % 2)

    pages = [await service.operations(page_size=page_size)]
    while token := pages[-1].next_page_token:
        clock.forward(1)
        await service.begin(none=HERE)
        pages.append(await service.operations(page_size=page_size, page_token=token))

    listed = [operation.id for page in pages for operation in page.operations]
    assert [len(page.operations) for page in pages] == sizes
    assert sorted(listed) == sorted(names)
    assert listed[0] == names[6]


async def test_a_page_has_50_operations_by_default(service: Client) -> None:
    for _ in range(51):
        await service.begin(none=HERE, steps=None)

    assert len((await service.operations()).operations) == 50


@pytest.mark.parametrize(
    "token",
    ["x", *(urlsafe_b64encode(text).decode() for text in (b'["a","b"]', b"[1]", b'[18446744073709551615,"a"]'))],
)
async def test_a_page_token_of_another_origin_is_refused(service: Client, token: str) -> None:
    with pytest.raises(RequestInvalid) as raised:
        await service.operations(page_token=token)

    assert raised.value.metadata["field"] == "page_token"


async def test_the_oldest_finished_operations_are_removed_above_1000(
    service: Client, tmp_path: Path, clock: Clock
) -> None:
    """Unfinished operations of any age are retained."""
    blocked = await service.begin("blocked")
    await service.abandon(blocked, state=OPERATION_STATE_BLOCKED)
    oldest = await service.begin("oldest")
    await service.advance(oldest, [StepRecord(step=0, state=DONE)], seqs=[2])
    await service.record(oldest)
    clock.forward(1)
    last = await service.begin("oldest", operation="operation-last")
    await service.record(last)
    clock.forward(1)
    finish_many(tmp_path / "stack.db", 1000, clock)

    assert (await service.sweep()).operations == 1

    with pytest.raises(OperationNotFound):
        await service.operation(oldest.operation)
    await service.operation("operation-0")
    await service.operation(blocked.operation)
    # It is the last operation of its stack.
    await service.operation(last.operation)
    with sqlite3.connect(tmp_path / "stack.db") as connection:
        for table in ("journal", "plans"):
            left = connection.execute(f"SELECT COUNT(*) FROM {table} WHERE operation = ?", [oldest.operation])
            assert left.fetchone() == (0,)
        name = oldest.operation.replace("operation", "plan")
        for table in ("plan_headers", "plan_parts"):
            assert connection.execute(f"SELECT * FROM {table} WHERE plan = ?", [name]).fetchall() == []
    connection.close()


async def test_the_kind_of_an_operation_is_stored(service: Client) -> None:
    stack = await service.create("prod")
    request = journal_pb2.BeginOperationRequest(
        stack=StackRef(id=stack.id), operation_id="operation-1", kind=OPERATION_KIND_UNINSTALL, holder="me"
    )
    request.ttl.FromSeconds(10)

    await service.begin_answer(request)

    assert (await service.operation("operation-1")).kind == OPERATION_KIND_UNINSTALL
    request.kind = OPERATION_KIND_APPLY
    with pytest.raises(RequestInvalid):
        await service.begin_answer(request)
    with pytest.raises(StackLeased):
        await service.begin("prod")


async def test_only_its_own_token_writes_to_an_operation(service: Client) -> None:
    """A higher token, of another operation, is refused like a lower one."""
    ended = await service.begin("prod")
    await service.record(ended)
    running = await service.begin("prod")
    assert ended.token < running.token

    ended.token, running.token = running.token, running.token + 1
    for write in (service.advance(ended), service.start(ended), service.advance(running), service.renew(running)):
        with pytest.raises(LeaseLost):
            await write


async def test_operations_are_listed_by_target_state_kind_and_time(service: Client, clock: Clock) -> None:
    """The times of a page are those at which operations began; the second is left out."""
    applied, times = await service.begin("a", operation="operation-a"), []
    await service.record(applied, [entry("one")])
    for name in "bc":
        clock.forward(10)
        times.append(moment(clock.now))
        await service.begin(name, operation=f"operation-{name}")
    await service.store_plan(a_plan(1, "operation-u", kind=OPERATION_KIND_UNINSTALL, stack_id=applied.stack.id))
    clock.forward(10)
    times.append(moment(clock.now))
    uninstall = await service.begin_planned("plan-u", "operation-u")

    async def listed(**filters: Any) -> str:
        found = (await service.operations(**filters)).operations
        return "".join(operation.id.removeprefix("operation-") for operation in found)

    assert await listed() == "ucba"
    assert await listed(target=Target()) == "ucba"
    assert await listed(target=Target(org="elsewhere")) == ""
    assert await listed(states=[OPERATION_STATE_SUCCEEDED]) == "a"
    assert await listed(states=[OPERATION_STATE_SUCCEEDED, OPERATION_STATE_PREPARING]) == "ua"
    assert await listed(kinds=[OPERATION_KIND_UNINSTALL]) == "u"
    assert await listed(kinds=[OPERATION_KIND_UNINSTALL, OPERATION_KIND_APPLY]) == "ucba"
    assert await listed(since=times[0]) == "ucb"
    assert await listed(until=times[2]) == "cba"
    assert await listed(since=times[0], until=times[1], kinds=[OPERATION_KIND_APPLY]) == "b"
    assert await listed(since=later(times[0]), until=later(times[1])) == "c"
    assert await listed(stack_id=uninstall.stack.id, states=[OPERATION_STATE_PREPARING]) == "u"
    assert await listed(since=Timestamp(seconds=253_402_300_799)) == ""
    assert await listed(until=Timestamp(seconds=-62_135_596_800)) == ""
    first = await service.operations(until=times[2], page_size=1)
    assert [operation.id for operation in first.operations] == ["operation-c"]
    assert await listed(until=times[2], page_token=first.next_page_token) == "ba"


@pytest.mark.parametrize(
    "filters", [{"states": [0]}, {"states": [99]}, {"kinds": [0]}, {"since": Timestamp(seconds=10**15)}]
)
async def test_a_filter_that_is_not_valid_is_refused(service: Client, filters: dict[str, Any]) -> None:
    with pytest.raises(RequestInvalid):
        await service.operations(**filters)


async def test_an_operation_has_its_plan_its_end_and_its_result(service: Client, clock: Clock) -> None:
    begun = await service.begin("prod", operation="operation-1")
    running = await service.operation("operation-1")
    assert (running.plan_id, running.HasField("end_time"), running.HasField("result")) == ("plan-1", False, False)
    clock.forward(5)

    await service.record(begun, [entry("one")])

    ended = await service.operation("operation-1")
    assert ended.end_time.ToMicroseconds() == clock.now
    assert ended.result == operation_pb2.Finished(state=OPERATION_STATE_SUCCEEDED, generation=1)
    await service.begin("prod", operation="operation-2", steps=None)
    listed = (await service.operations()).operations
    assert [(operation.plan_id, operation.HasField("result")) for operation in listed] == [
        ("", False),
        ("plan-1", True),
    ]
    assert listed[1] == ended


async def test_an_operation_that_ended_before_it_started_has_an_end_and_no_result(
    service: Client, clock: Clock
) -> None:
    begun = await service.begin("prod", steps=None)
    await service.abandon(begun)

    failed = await service.operation(begun.operation)

    assert (failed.end_time.ToMicroseconds(), failed.HasField("result"), failed.plan_id) == (clock.now, False, "")


async def test_a_list_of_operations_has_only_the_number_of_blocked_steps(service: Client) -> None:
    begun = await service.begin("prod", steps=2000)
    blocked = [
        operation_pb2.BlockedStep(
            step=a_create(number), message="the outcome is unknown", direction=operation_pb2.DIRECTION_DO
        )
        for number in range(2000)
    ]
    unknown = operation_pb2.BLOCKED_REASON_UNKNOWN_OUTCOME
    state = OPERATION_STATE_BLOCKED
    request = journal_pb2.FinishOperationRequest(
        operation_id=begun.operation,
        token=begun.token,
        position=2,
        abandon=journal_pb2.Abandon(),
        state=state,
        finished=begun.next_event(finished=operation_pb2.Finished(state=state)),
        blocked_reason=unknown,
        blocked_steps=blocked,
    )
    await service.peer.call(service.journal.FinishOperation, request)

    operation = await service.operation(begun.operation)
    [listed] = (await service.operations()).operations

    assert list(operation.blocked_steps) == blocked
    assert (operation.blocked_reason, operation.blocked_step_count) == (unknown, 2000)
    assert (operation.HasField("end_time"), operation.HasField("result")) == (False, False)
    assert (listed.blocked_reason, listed.blocked_step_count, list(listed.blocked_steps)) == (unknown, 2000, [])
    heir, claimed = await service.claim(begun.operation)
    assert list(claimed.operation.blocked_steps) == blocked
    await service.advance(heir)
    assert (await service.operation(begun.operation)).blocked_step_count == 0


async def test_the_observed_spec_of_a_step_is_kept(service: Client, clock: Clock) -> None:
    begun = await service.begin("prod", steps=2)
    done = StepRecord(step=0, state=DONE, resource_id="0a", observed_spec_json='{"name":"ä"}')
    await service.advance(begun, [done, StepRecord(step=1, state=DONE, resource_id="0b")])
    clock.forward(60)

    _, claimed = await service.claim(begun.operation)

    assert [record.observed_spec_json for record in claimed.steps] == ['{"name":"ä"}', ""]


async def test_a_page_of_operations_is_no_larger_than_1_mib(service: Client) -> None:
    for name in "abc":
        begun = await service.begin(name)
        await service.abandon(begun, cause=name * 200_000)

    first = await service.operations()
    second = await service.operations(page_token=first.next_page_token)

    assert [len(page.operations) for page in (first, second)] == [2, 1]
    assert first.ByteSize() < MAX_PART_BYTES


def moment(microseconds: int) -> Timestamp:
    time = Timestamp()
    time.FromMicroseconds(microseconds)
    return time


def later(time: Timestamp) -> Timestamp:
    """The next nanosecond."""
    return Timestamp(seconds=time.seconds, nanos=time.nanos + 1)
