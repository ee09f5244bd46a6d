"""JournalService: the states in which operations may end, and the outcomes for their stacks."""

from collections.abc import Awaitable
from itertools import product

import pytest
from pkger.journal.v1 import journal_pb2
from pkger.model.v1 import operation_pb2
from pkger.model.v1.operation_pb2 import (
    OPERATION_STATE_BLOCKED,
    OPERATION_STATE_FAILED,
    OPERATION_STATE_ROLLED_BACK,
    OPERATION_STATE_SUCCEEDED,
    OPERATION_STATE_UNSPECIFIED,
    OperationState,
)

from services.core.errors import (
    LeaseLost,
    OperationNotFound,
    OperationUnfinished,
    RequestInvalid,
    StackMoved,
    StackNotFound,
)
from tests.stack.service import HERE, Begun, Client, Clock, entry

MAY_END = {
    ("preparing", "FAILED"),
    ("preparing", "UNSPECIFIED"),
    *product(("applying", "blocked"), ("SUCCEEDED", "ROLLED_BACK", "BLOCKED")),
    *product(("sealed", "sealed and blocked"), ("SUCCEEDED", "BLOCKED")),
    *product(("rolling back", "rolling back and blocked"), ("ROLLED_BACK", "BLOCKED")),
}
FOUND = sorted({found for found, _ in MAY_END})

MAY_LEAVE = {
    ("SUCCEEDED", "record"),
    ("SUCCEEDED", "abandon"),
    ("SUCCEEDED", "remove"),
    ("ROLLED_BACK", "record"),
    ("ROLLED_BACK", "abandon"),
    ("BLOCKED", "abandon"),
    ("FAILED", "abandon"),
}
OUTCOMES: dict[str, dict[str, object]] = {
    "record": {"record": journal_pb2.Record(platform_changed=True)},
    "abandon": {"abandon": journal_pb2.Abandon()},
    "remove": {"remove": journal_pb2.Remove()},
}


async def brought_to(service: Client, found: str, name: str = "prod") -> Begun:
    """An operation on the stack *name*, brought into the state *found*."""
    begun = await service.begin(name, steps=None if found == "preparing" else 3)
    if found.startswith("sealed"):
        await service.advance(begun, seal=True)
    if found.startswith("rolling back"):
        await service.advance(begun, rollback=True)
    if found.endswith("blocked"):
        await service.abandon(begun, state=OPERATION_STATE_BLOCKED)
        begun, _ = await service.claim(begun.operation)
    return begun


@pytest.mark.parametrize("found", FOUND)
@pytest.mark.parametrize("ends", OperationState.keys())
async def test_an_operation_ends_only_in_states_that_the_engine_allows(service: Client, found: str, ends: str) -> None:
    begun = await brought_to(service, found)
    before = await service.operation(begun.operation)
    ends = ends.removeprefix("OPERATION_STATE_")
    state = OperationState.Value(f"OPERATION_STATE_{ends}")

    if (found, ends) in MAY_END:
        await service.abandon(begun, state=state)
        after = await service.operation(begun.operation)
        assert after.state == (state or OPERATION_STATE_FAILED)
    else:
        with pytest.raises(RequestInvalid) as raised:
            await service.abandon(begun, state=state)
        assert raised.value.metadata["field"] == "state"
        assert await service.operation(begun.operation) == before
        await service.renew(begun)


@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize("ends", ["SUCCEEDED", "ROLLED_BACK", "BLOCKED", "FAILED"])
async def test_each_end_allows_some_outcomes_only(service: Client, outcome: str, ends: str) -> None:
    """A BLOCKED operation has not ended and a FAILED one sent nothing, so neither changes the record."""
    before = await service.create("prod")
    begun = await brought_to(service, "preparing" if ends == "FAILED" else "applying")
    state = OperationState.Value(f"OPERATION_STATE_{ends}")

    if (ends, outcome) in MAY_LEAVE:
        await service.finish(begun, state, **OUTCOMES[outcome])  # type: ignore[arg-type]
        assert await service.names() == ([] if outcome == "remove" else ["prod"])
    else:
        with pytest.raises(RequestInvalid) as raised:
            await service.finish(begun, state, **OUTCOMES[outcome])  # type: ignore[arg-type]
        assert raised.value.metadata["field"] == "outcome"
        assert await service.get(before.id) == before


@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize("ends", ["SUCCEEDED", "ROLLED_BACK", "BLOCKED", "FAILED"])
async def test_a_pending_stack_becomes_active_with_a_record_of_success_only(
    service: Client, outcome: str, ends: str
) -> None:
    if (ends, outcome) not in MAY_LEAVE:
        return
    begun = await brought_to(service, "preparing" if ends == "FAILED" else "applying")
    assert begun.is_pending

    state = OperationState.Value(f"OPERATION_STATE_{ends}")
    for _ in range(2):
        await service.finish(begun, state, **OUTCOMES[outcome])  # type: ignore[arg-type]
        if (ends, outcome) in {("SUCCEEDED", "record"), ("BLOCKED", "abandon")}:
            await service.get(begun.stack.id)
        else:
            with pytest.raises(StackNotFound):
                await service.get(begun.stack.id)

    assert await service.names() == (["prod"] if (ends, outcome) == ("SUCCEEDED", "record") else [])


async def test_a_stack_has_the_sources_of_the_apply_that_made_it_and_then_of_those_that_changed_anything(
    service: Client,
) -> None:
    made = await service.record(await service.begin("prod"), sources=["empty.yml"])
    assert (list(made.sources), made.generation) == (["empty.yml"], 0)

    same = await service.record(await service.begin("prod"), sources=["other.yml"])
    assert list(same.sources) == ["empty.yml"]

    changed = await service.record(await service.begin("prod"), [entry("b")], ["full.yml"])
    assert list(changed.sources) == ["full.yml"]


async def test_an_operation_that_started_ends_with_an_event(service: Client) -> None:
    begun = await service.begin("prod")
    request = journal_pb2.FinishOperationRequest(
        operation_id=begun.operation,
        token=begun.token,
        position=2,
        state=OPERATION_STATE_SUCCEEDED,
        record=journal_pb2.Record(),
    )

    with pytest.raises(RequestInvalid) as absent:
        await service.peer.call(service.journal.FinishOperation, request)
    request.finished.CopyFrom(begun.next_event(stage_started=operation_pb2.StageStarted()))
    with pytest.raises(RequestInvalid) as wrong:
        await service.peer.call(service.journal.FinishOperation, request)
    request.finished.CopyFrom(begun.next_event(finished=operation_pb2.Finished()))
    request.finished.seq += 1
    with pytest.raises(RequestInvalid) as gap:
        await service.peer.call(service.journal.FinishOperation, request)

    assert [error.value.metadata["field"] for error in (absent, wrong, gap)] == ["finished", "finished", "events"]
    await service.record(begun)
    assert (await service.events(begun.operation)).events[-1] == begun.next_event(
        finished=operation_pb2.Finished(state=OPERATION_STATE_SUCCEEDED)
    )


async def test_a_refused_end_leaves_everything_as_it_was(service: Client) -> None:
    """Event, state, record and lease are written together or not at all."""
    await service.apply("prod", [entry("one")])
    begun = await service.begin("prod")
    before = await service.operation(begun.operation)

    with pytest.raises(StackMoved):
        await service.record(begun, [entry("two")], base_generation=7)

    assert await service.operation(begun.operation) == before
    assert len((await service.events(begun.operation)).events) == 1
    await service.advance(begun, rollback=True, seqs=[2])
    await service.abandon(begun)


@pytest.mark.parametrize("name", ["prod", ""])
async def test_a_blocked_operation_blocks_its_stack_until_it_is_recovered(
    service: Client, clock: Clock, name: str
) -> None:
    """The lease is free, but no applier claims the operation by itself."""
    begun = await service.begin(name) if name else await service.begin(none=HERE)
    answer = await service.abandon(begun, state=OPERATION_STATE_BLOCKED, cause="the outcome of step 1 is unknown")
    assert (
        await service.abandon(begun, state=OPERATION_STATE_BLOCKED, cause="the outcome of step 1 is unknown") == answer
    )
    assert (await service.get(begun.stack.id), answer.generation) == (begun.stack, 0)
    clock.forward(3600)

    calls: list[Awaitable[object]] = [service.begin(stack_id=begun.stack.id), service.delete(begun.stack.id)]
    if name:
        calls += [service.begin(name), service.create(name)]
    for call in calls:
        with pytest.raises(OperationUnfinished) as raised:
            await call
        assert raised.value.metadata == {
            "stack": name or begun.stack.id,
            "operation": begun.operation,
            "state": "BLOCKED",
        }
    await service.begin(none=HERE)
    assert await service.abandoned() == []
    operation = await service.operation(begun.operation)
    assert (operation.state, operation.cause) == (OPERATION_STATE_BLOCKED, "the outcome of step 1 is unknown")
    assert len((await service.events(begun.operation)).events) == 2
    await service.cancel(begun.operation)

    heir, claimed = await service.claim(begun.operation)
    assert (claimed.operation.state, claimed.cancel_requested) == (OPERATION_STATE_BLOCKED, True)
    await service.advance(heir, rollback=True, seqs=[3])
    await service.abandon(heir)
    assert [event.WhichOneof("event") for event in (await service.events(begun.operation)).events] == [
        "accepted",
        "finished",
        "stage_started",
        "finished",
    ]
    with pytest.raises(StackNotFound):
        await service.get(begun.stack.id)


@pytest.mark.parametrize("rolls_back", [False, True])
async def test_a_recovered_operation_resumes_in_its_direction_with_the_first_write(
    service: Client, clock: Clock, rolls_back: bool
) -> None:
    """If its applier dies before that write, the operation stays BLOCKED; if it dies later, any applier may claim."""
    begun = await brought_to(service, "rolling back and blocked" if rolls_back else "blocked")
    clock.forward(60)
    assert await service.abandoned() == []

    heir, _ = await service.claim(begun.operation)
    await service.advance(heir)
    clock.forward(60)

    state = "ROLLING_BACK" if rolls_back else "APPLYING"
    assert (await service.operation(begun.operation)).state == OperationState.Value(f"OPERATION_STATE_{state}")
    assert await service.abandoned() == [begun.operation]


@pytest.mark.parametrize("outcome", OUTCOMES)
async def test_a_repeated_end_with_another_state_is_refused(service: Client, outcome: str) -> None:
    await service.create("prod")
    begun = await service.begin("prod")
    await service.finish(begun, OPERATION_STATE_SUCCEEDED, **OUTCOMES[outcome])  # type: ignore[arg-type]

    for state in (OPERATION_STATE_ROLLED_BACK, OPERATION_STATE_BLOCKED, OPERATION_STATE_UNSPECIFIED):
        with pytest.raises(LeaseLost):
            await service.finish(begun, state, **OUTCOMES["abandon"])  # type: ignore[arg-type]


async def test_a_repeated_end_returns_the_same_response_after_the_stack_is_removed(service: Client) -> None:
    begun = await service.begin("prod")
    record = await service.changes_to(begun.stack.id, [entry("one")])
    answer = await service.finish(begun, OPERATION_STATE_SUCCEEDED, record=record)
    await service.remove(await service.begin("prod"))

    assert await service.finish(begun, OPERATION_STATE_SUCCEEDED, record=record) == answer
    assert await service.names() == []


async def test_a_finished_operation_cannot_be_claimed(service: Client) -> None:
    begun = await service.begin("prod")
    await service.record(begun)

    with pytest.raises(OperationNotFound):
        await service.claim(begun.operation)


async def test_the_store_fills_in_the_generation_of_the_last_event(service: Client) -> None:
    """It replaces the value that the applier sends."""
    await service.apply("prod", [entry("one")])
    begun = await service.begin("prod")
    finished = operation_pb2.Finished(state=OPERATION_STATE_SUCCEEDED, generation=77, cause="ü")
    request = journal_pb2.FinishOperationRequest(
        operation_id=begun.operation,
        token=begun.token,
        position=2,
        base_generation=1,
        state=OPERATION_STATE_SUCCEEDED,
        record=journal_pb2.Record(platform_changed=True),
        finished=begun.next_event(finished=finished),
    )

    answers = [await service.peer.call(service.journal.FinishOperation, request) for _ in range(2)]

    assert [answer.generation for answer in answers] == [2, 2]
    finished.generation = 2
    assert (await service.events(begun.operation)).events[-1].finished == finished
    assert (await service.operation(begun.operation)).result == finished


@pytest.mark.parametrize(
    ("ends", "outcome", "generation"),
    [
        ("SUCCEEDED", "record", 2),
        ("SUCCEEDED", "abandon", 1),
        ("SUCCEEDED", "remove", 0),
        ("ROLLED_BACK", "abandon", 1),
        ("BLOCKED", "abandon", 1),
        ("FAILED", "abandon", 1),
    ],
)
async def test_every_end_has_the_generation(service: Client, ends: str, outcome: str, generation: int) -> None:
    await service.apply("prod", [entry("one")])
    begun = await brought_to(service, "preparing" if ends == "FAILED" else "applying")
    state = OperationState.Value(f"OPERATION_STATE_{ends}")

    for _ in range(2):
        answer = await service.finish(begun, state, **OUTCOMES[outcome])  # type: ignore[arg-type]
        assert answer.generation == generation

    generations = [event.finished.generation for event in (await service.events(begun.operation)).events[1:]]
    assert generations == ([] if ends == "FAILED" else [generation])
