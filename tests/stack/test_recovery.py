"""JournalService: an applier dies, another one resumes its operation, and the first one wakes up again."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from google.protobuf.duration_pb2 import Duration
from pkger.journal.v1 import journal_pb2
from pkger.journal.v1.journal_pb2 import StepRecord, StepState
from pkger.model.v1 import operation_pb2
from pkger.model.v1.operation_pb2 import (
    OPERATION_STATE_APPLYING,
    OPERATION_STATE_BLOCKED,
    OPERATION_STATE_FAILED,
    OPERATION_STATE_PREPARING,
    OPERATION_STATE_ROLLED_BACK,
    OPERATION_STATE_SUCCEEDED,
)

from services.core.errors import (
    LeaseLost,
    OperationNotFound,
    OperationUnfinished,
    RequestInvalid,
    StackLeased,
    StackNotFound,
)
from services.rpc.claim_parts import joined_claim
from tests.stack.service import HERE, Begun, Client, Clock, a_plan, body_of, entry, service_in_memory

DONE, INTENT = StepState.STEP_STATE_DONE, StepState.STEP_STATE_INTENT

WRITES: dict[str, Callable[[Client, Begun], Awaitable[object]]] = {
    "start": lambda service, late: service.start(late),
    "advance": lambda service, late: service.advance(late, [StepRecord(step=0, state=DONE)], seqs=[2]),
    "seal": lambda service, late: service.advance(late, seal=True),
    "roll back": lambda service, late: service.advance(late, rollback=True),
    "renew": lambda service, late: service.renew(late),
    "record": lambda service, late: service.record(late, [entry("late")]),
    "abandon": lambda service, late: service.abandon(late),
    "remove": lambda service, late: service.remove(late),
    "block": lambda service, late: service.abandon(late, state=OPERATION_STATE_BLOCKED),
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("when", ["expired", "claimed", "blocked", "finished", "begun again"])
async def test_an_applier_that_lost_its_lease_writes_nothing(
    service: Client, clock: Clock, write: str, when: str
) -> None:
    await service.apply("prod", [entry("one")])
    late = await service.begin("prod", seconds=10)
    clock.forward(11)
    if when != "expired":
        heir, _ = await service.claim(late.operation)
        if when == "blocked":
            await service.abandon(heir, state=OPERATION_STATE_BLOCKED)
        if when in ("finished", "begun again"):
            await service.record(heir, [entry("two")])
        if when == "begun again":
            await service.begin("prod")
    before = await service.get(late.stack.id), await service.operation(late.operation)

    with pytest.raises(LeaseLost) as raised:
        await WRITES[write](service, late)

    assert raised.value.metadata == {"stack": late.stack.id, "token": str(late.token)}
    assert (await service.get(late.stack.id), await service.operation(late.operation)) == before


async def test_an_operation_is_resumed_by_another_applier(service: Client, clock: Clock) -> None:
    before = await service.apply("prod", [entry("one")], ["a.yml"])
    dead = await service.begin("prod", operation="operation-1", seconds=10, steps=3)
    await service.advance(dead, [StepRecord(step=number, state=INTENT) for number in range(2)], seqs=[2])
    await service.advance(dead, [StepRecord(step=0, state=DONE, resource_id="0a")], seqs=[3], seal=True, done_count=1)
    await service.cancel("operation-1")
    assert await service.abandoned() == []
    clock.forward(10.000001)
    assert await service.abandoned() == ["operation-1"]

    heir, claimed = await service.claim("operation-1", holder="applier-2", seconds=20)

    assert claimed == journal_pb2.ClaimOperationResponse(
        stack=before,
        token=clock.now,
        operation=await service.operation("operation-1"),
        steps=[StepRecord(step=0, state=DONE, resource_id="0a"), StepRecord(step=1, state=INTENT)],
        sealed=True,
        cancel_requested=True,
        last_seq=3,
        position=3,
        expire_time=claimed.expire_time,
        last_token=dead.token,
    )
    assert claimed.expire_time.ToMicroseconds() == clock.now + 20_000_000
    assert (claimed.operation.holder, claimed.operation.state) == ("applier-2", OPERATION_STATE_APPLYING)
    assert await service.abandoned() == []

    with pytest.raises(LeaseLost):
        await service.advance(dead, [StepRecord(step=1, state=DONE)], seqs=[4])
    await service.advance(heir, [StepRecord(step=1, state=StepState.STEP_STATE_PLANNED)], seqs=[4], done_count=1)
    stack = await service.record(heir, [entry("one"), entry("two")], ["b.yml"])

    assert (stack.generation, list(stack.sources)) == (2, ["b.yml"])
    assert [event.seq for event in (await service.events("operation-1")).events] == [1, 2, 3, 4, 5]
    ended = await service.operation("operation-1")
    assert (ended.state, ended.done_count) == (OPERATION_STATE_SUCCEEDED, 1)


async def test_an_operation_with_a_held_lease_is_not_claimed(service: Client) -> None:
    """Not even by its holder, another task of which may run it: a repeated claim waits until the lease is free."""
    begun = await service.begin("prod", holder="applier-1")

    for holder in ("applier-1", "applier-2"):
        with pytest.raises(StackLeased) as raised:
            await service.claim(begun.operation, holder)
        assert raised.value.metadata["operation"] == begun.operation


@pytest.mark.parametrize(("change", "field"), [({"holder": ""}, "holder"), ({"ttl": None}, "ttl")])
async def test_a_claim_needs_a_holder_and_a_valid_duration(
    service: Client, clock: Clock, change: dict[str, object], field: str
) -> None:
    begun = await service.begin("prod", seconds=10)
    clock.forward(11)
    fields = {"operation_id": begun.operation, "holder": "me", "ttl": Duration(seconds=10)} | change

    request = journal_pb2.ClaimOperationRequest(**fields)  # type: ignore[arg-type]
    with pytest.raises(RequestInvalid) as raised:
        await joined_claim(service.peer.stream(service.journal.ClaimOperation, request))

    assert raised.value.metadata["field"] == field
    assert await service.abandoned() == [begun.operation]


async def test_operations_with_an_expired_lease_are_abandoned_oldest_first(service: Client, clock: Clock) -> None:
    names = []
    for name in ("c", "b", "a"):
        names.append((await service.begin(name, seconds=10)).operation)
        clock.forward(1)
    names.append((await service.begin("preparing", seconds=10, steps=None)).operation)
    clock.forward(1)
    await service.abandon(await service.begin("blocked", seconds=10), state=OPERATION_STATE_BLOCKED)
    await service.record(await service.begin("finished", seconds=10))
    names.append((await service.begin(none=HERE, seconds=10)).operation)
    await service.begin("at work", seconds=60)
    clock.forward(11)

    assert await service.abandoned() == names


async def test_at_most_100_abandoned_operations_are_listed(service: Client, clock: Clock) -> None:
    for _ in range(101):
        await service.begin(none=HERE)
    clock.forward(60)

    assert len(await service.abandoned()) == 100


@pytest.mark.parametrize("succeeds", [True, False])
async def test_a_first_apply_that_died_after_it_sent_something_keeps_its_stack_until_it_is_recovered(
    service: Client, clock: Clock, succeeds: bool
) -> None:
    dead = await service.begin("prod")
    clock.forward(60)
    for call in (
        service.begin("prod"),
        service.begin(stack_id=dead.stack.id),
        service.create("prod"),
        service.delete(dead.stack.id),
    ):
        with pytest.raises(OperationUnfinished) as raised:
            await call
        assert raised.value.metadata == {"stack": "prod", "operation": dead.operation, "state": "APPLYING"}

    heir, claimed = await service.claim(dead.operation)
    assert claimed.is_pending
    if succeeds:
        stack = await service.record(heir, [entry("one")])
        assert await service.get_named("prod") == stack
    else:
        await service.advance(heir, rollback=True)
        await service.abandon(heir)
        with pytest.raises(StackNotFound):
            await service.get(dead.stack.id)
        assert (await service.create("prod")).id != dead.stack.id


async def test_a_stack_with_an_operation_that_died_before_it_sent_anything_is_deleted(
    service: Client, clock: Clock
) -> None:
    stack = await service.create("prod")
    dead = await service.begin("prod", steps=None)
    clock.forward(60)

    await service.delete(stack.id)

    assert (await service.operation(dead.operation)).state == OPERATION_STATE_FAILED
    with pytest.raises(OperationNotFound):
        await service.claim(dead.operation)


async def test_an_operation_that_sent_nothing_can_be_claimed(service: Client, clock: Clock) -> None:
    dead = await service.begin("prod", steps=None)
    clock.forward(60)

    heir, claimed = await service.claim(dead.operation)

    assert (list(claimed.steps), claimed.last_seq) == ([], 0)
    assert claimed.operation.state == OPERATION_STATE_PREPARING
    await service.abandon(heir)
    assert (await service.operation(dead.operation)).state == OPERATION_STATE_FAILED


async def test_an_operation_may_die_many_times(service: Client, clock: Clock) -> None:
    begun = await service.begin("prod", steps=3)
    for number in range(3):
        await service.advance(begun, [StepRecord(step=number, state=DONE)], seqs=[begun.last_seq + 1])
        clock.forward(60)
        begun, claimed = await service.claim(begun.operation)
        assert [record.step for record in claimed.steps] == list(range(number + 1))
        assert (begun.token, claimed.rollback) == (clock.now, False)

    await service.advance(begun, rollback=True)
    clock.forward(60)
    begun, claimed = await service.claim(begun.operation)
    assert claimed.rollback
    await service.finish(begun, OPERATION_STATE_ROLLED_BACK, abandon=journal_pb2.Abandon())

    assert [event.seq for event in (await service.events(begun.operation)).events] == [1, 2, 3, 4, 5]
    assert (await service.events(begun.operation)).events[-1].finished == operation_pb2.Finished(
        state=OPERATION_STATE_ROLLED_BACK
    )


async def test_a_journal_that_is_larger_than_a_message_can_be_claimed(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each step has a message of the driver."""
    for module in ("services.rpc.server", "services.rpc.channel"):
        monkeypatch.setattr(f"{module}.MESSAGE_LIMIT", 1024 * 1024)
    async with service_in_memory(tmp_path / "small.db", clock) as small:
        begun = await small.begin("prod", seconds=10, operation="operation-1", steps=3000)
        for start in range(0, 3000, 500):
            records = [
                StepRecord(step=step, state=StepState.STEP_STATE_UNKNOWN, message="x" * 900)
                for step in range(start, start + 500)
            ]
            await small.advance(begun, records)
        clock.forward(11)
        _, claimed = await small.claim("operation-1")
        assert claimed.ByteSize() > 2 * 1024 * 1024
        assert [record.step for record in claimed.steps] == list(range(3000))
        assert await small.read_plan(claimed.operation.plan_id) == (a_plan(3000).header, body_of(a_plan(3000)))
