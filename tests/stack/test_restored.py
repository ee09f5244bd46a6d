"""
JournalService: a store restored from a backup blocks the operations that were unfinished then
(docs/reference/engine.md, "Restored stores").
"""

import pytest
from pkger.journal.v1 import journal_pb2
from pkger.model.v1 import operation_pb2
from pkger.model.v1.object_pb2 import StackRef
from pkger.model.v1.operation_pb2 import (
    BLOCKED_REASON_CONFLICT,
    BLOCKED_REASON_STORE_RESTORED,
    OPERATION_STATE_BLOCKED,
    OPERATION_STATE_FAILED,
    OPERATION_STATE_ROLLED_BACK,
    OPERATION_STATE_SUCCEEDED,
)
from pkger.model.v1.plan_pb2 import OPERATION_KIND_APPLY

from services.core.errors import LeaseLost, OperationUnfinished, PlanStale
from tests.stack.service import HERE, Begun, Client, Clock, a_create, a_plan, duration, entry


async def mark(service: Client) -> journal_pb2.MarkRestoredResponse:
    return await service.peer.call(service.journal.MarkRestored, journal_pb2.MarkRestoredRequest())


async def block(
    service: Client, begun: Begun, reason: operation_pb2.BlockedReason.ValueType, seen_token: int = 0
) -> None:
    """Block an operation, with one blocked step unless the reason concerns no step."""
    steps = [operation_pb2.BlockedStep(step=a_create(1))] if reason == BLOCKED_REASON_CONFLICT else []
    request = journal_pb2.FinishOperationRequest(
        operation_id=begun.operation,
        position=begun.position + 1,
        token=begun.token,
        abandon=journal_pb2.Abandon(),
        state=OPERATION_STATE_BLOCKED,
        blocked_reason=reason,
        blocked_steps=steps,
        finished=begun.next_event(finished=operation_pb2.Finished(state=OPERATION_STATE_BLOCKED)),
        seen_token=seen_token,
    )
    await service.peer.call(service.journal.FinishOperation, request)


async def last_token(service: Client, operation: str) -> tuple[int, int]:
    """Claim an operation; return the token of the claim and the one before it."""
    _, claimed = await service.claim(operation)
    return claimed.token, claimed.last_token


async def test_every_lease_comes_with_the_token_before_it(service: Client, clock: Clock) -> None:
    begin = journal_pb2.BeginOperationRequest(
        operation_id="operation-1",
        stack=StackRef(name="prod"),
        create_missing=True,
        kind=OPERATION_KIND_APPLY,
        holder="me",
        ttl=duration(30),
    )
    # Sent again, as the response was lost.
    for _ in range(2):
        answer = await service.begin_answer(begin)
        assert (answer.token, answer.last_token) == (clock.now, 0)
    clock.forward(31)
    assert await last_token(service, "operation-1") == (clock.now, answer.token)
    clock.forward(-60)
    assert await last_token(service, "operation-1") == (answer.token + 31_000_001, answer.token + 31_000_000)


async def test_every_lease_comes_with_the_highest_token_that_was_shown_before(service: Client, clock: Clock) -> None:
    await service.apply("prod", [entry("one")])
    highest = 0
    for is_shown in (False, True, False, True):
        begin = journal_pb2.BeginOperationRequest(
            operation_id=f"operation-{clock.now}",
            stack=StackRef(name="prod"),
            kind=OPERATION_KIND_APPLY,
            holder="me",
            ttl=duration(30),
        )
        assert (await service.begin_answer(begin)).shown_token == highest
        clock.forward(31)
        begun = await service.begin("prod")
        clock.forward(31)
        heir, claimed = await service.claim(begun.operation)
        assert claimed.shown_token == highest
        await service.finish(heir, OPERATION_STATE_ROLLED_BACK, abandon=journal_pb2.Abandon(), is_shown=is_shown)
        highest = heir.token if is_shown else highest


@pytest.mark.parametrize("ahead", [5, -5], ids=["ahead of the clock", "behind the clock"])
async def test_new_tokens_are_higher_than_the_token_that_the_platform_has_seen(
    service: Client, clock: Clock, ahead: int
) -> None:
    begun = await service.begin("prod", steps=3)
    seen = begun.token + ahead
    await block(service, begun, BLOCKED_REASON_STORE_RESTORED, seen)
    with pytest.raises(LeaseLost):
        await service.advance(begun, seqs=[3])
    highest = max(seen, begun.token)
    assert await last_token(service, begun.operation) == (highest + 1, highest)


async def test_only_a_restored_store_takes_a_token_of_the_platform(service: Client) -> None:
    begun = await service.begin("prod", steps=3)
    await block(service, begun, BLOCKED_REASON_CONFLICT, begun.token + 5)
    assert await last_token(service, begun.operation) == (begun.token + 1, begun.token)


async def test_a_restored_store_blocks_unfinished_operations(service: Client, clock: Clock) -> None:
    await service.apply("finished", [entry("one")])
    blocked = await service.begin("blocked", steps=3)
    await block(service, blocked, BLOCKED_REASON_CONFLICT)
    clock.forward(1)
    at_work = await service.begin("at work", steps=3, seconds=600)
    clock.forward(1)
    preparing = await service.begin("preparing", steps=None, request_id="r")
    clock.forward(1)
    stackless = await service.begin(none=HERE, steps=3)

    marked = await mark(service)

    assert list(marked.blocked_operation_ids) == [blocked.operation, at_work.operation, stackless.operation]
    assert list(marked.ended_operation_ids) == [preparing.operation]
    for name in marked.blocked_operation_ids:
        operation = await service.operation(name)
        assert (operation.state, operation.blocked_reason) == (OPERATION_STATE_BLOCKED, BLOCKED_REASON_STORE_RESTORED)
        assert operation.cause == "the store was restored from a backup; changes after the backup are unknown"
        last = (await service.events(name)).events[-1]
        assert (last.finished.state, last.finished.cause) == (OPERATION_STATE_BLOCKED, operation.cause)
    assert [each.step.number for each in (await service.operation(blocked.operation)).blocked_steps] == [1]
    assert (await service.operation(preparing.operation)).state == OPERATION_STATE_FAILED
    for begun in (at_work, preparing, stackless):
        with pytest.raises(LeaseLost):
            await service.renew(begun)
    assert await service.abandoned() == []
    with pytest.raises(OperationUnfinished):
        await service.begin("at work")
    await service.begin("preparing", request_id="r")
    heir, _ = await service.claim(at_work.operation)
    await service.record(heir, [entry("two")])
    assert (await service.operation(at_work.operation)).state == OPERATION_STATE_SUCCEEDED


async def test_marking_a_restored_store_again_changes_nothing(service: Client) -> None:
    begun = await service.begin("prod", steps=3)
    await mark(service)
    before = await service.operation(begun.operation), await service.events(begun.operation)
    assert await mark(service) == journal_pb2.MarkRestoredResponse()
    assert (await service.operation(begun.operation), await service.events(begun.operation)) == before


async def test_plans_of_a_restored_store_are_stale(service: Client, clock: Clock) -> None:
    for number in (1, 2):
        plan = a_plan(1, f"operation-{number}", stack_name="prod")
        await service.peer.call(service.journal.StorePlan, journal_pb2.StorePlanRequest(plan=plan))
        clock.forward(1)
    assert list((await mark(service)).stale_plan_ids) == ["plan-1", "plan-2"]
    assert list((await mark(service)).stale_plan_ids) == []
    with pytest.raises(PlanStale, match="restored from a backup"):
        await service.begin_planned("plan-1")


async def test_a_restored_store_keeps_why_an_operation_rolls_back(service: Client) -> None:
    begun = await service.begin("prod", steps=3)
    await service.advance(begun, rollback=True, cause="create Bucket 'b': no")
    await mark(service)
    cause = (await service.operation(begun.operation)).cause
    assert cause.startswith("the store was restored from a backup")
    assert cause.endswith("; before: create Bucket 'b': no")
    # A caller agrees to continue, and then the store is restored once more.
    heir, _ = await service.claim(begun.operation)
    await service.advance(heir)
    assert list((await mark(service)).blocked_operation_ids) == [begun.operation]
    assert (await service.operation(begun.operation)).cause == cause
