"""
Stored plans: retained for a day, applied once. Requests: each begins one operation (docs/reference/engine.md, "Plans",
AIP-155).
"""

import asyncio
from pathlib import Path

import pytest
from pkger.journal.v1 import journal_pb2
from pkger.model.v1 import object_pb2, operation_pb2, plan_pb2

from services.core.errors import (
    LeaseLost,
    OperationNotFound,
    OperationUnfinished,
    PkgerError,
    PlanExpired,
    PlanNotFound,
    PlanStale,
    PlanUsed,
    RequestIdReused,
    RequestInvalid,
    StackLeased,
    StackNotFound,
)
from tests.stack.service import Begun, Client, Clock, a_plan, body_of, entry, finish_many, request_key, start_request

DAY = 24 * 3600
UNINSTALL = plan_pb2.OPERATION_KIND_UNINSTALL


NAME = "0123456789abcdef"


def planned(name: str = NAME, **fields: object) -> journal_pb2.NewPlan:
    here = object_pb2.Target(platform="embedded", org="default")
    plan = a_plan(2, id=name, digest="sha256:00", target=here)
    plan.header.MergeFrom(plan_pb2.Plan(**fields))  # type: ignore[arg-type]
    return plan


async def begun_for(service: Client, plan: str) -> Begun:
    answer = await service.begin_planned(plan)
    return Begun(answer.operation.id, answer.stack, answer.token, answer.expire_time, answer.is_pending)


async def test_a_stored_plan_is_read_as_it_was_stored(service: Client, clock: Clock) -> None:
    plan = planned(stack_name="prod", base_generation=3)

    stored = await service.store_plan(plan)

    assert (stored.plan_id, stored.create_time.ToMicroseconds()) == (NAME, clock.now)
    assert stored.expire_time.ToMicroseconds() == clock.now + DAY * 1_000_000
    header = plan.header
    header.state = plan_pb2.PLAN_STATE_PENDING
    header.create_time.CopyFrom(stored.create_time)
    header.expire_time.CopyFrom(stored.expire_time)
    assert await service.plan(NAME) == header
    with pytest.raises(PlanNotFound):
        await service.plan("plan-1")


async def test_a_plan_is_stored_once_under_a_unique_id(service: Client) -> None:
    await service.store_plan(planned())
    await service.store_plan(planned())
    with pytest.raises(RequestInvalid):
        await service.store_plan(planned(digest="sha256:01"))
    with pytest.raises(RequestInvalid) as raised:
        await service.store_plan(journal_pb2.NewPlan())

    assert raised.value.metadata["field"] == "plan.header.id"
    assert (await service.plan(NAME)).digest == "sha256:00"


async def test_a_plan_expires_after_a_day_and_is_removed_by_the_next_sweep(service: Client, clock: Clock) -> None:
    old, new = planned("plan-1"), planned("plan-2")
    await service.store_plan(old)
    clock.forward(DAY)
    assert (await service.plan("plan-1")).state == plan_pb2.PLAN_STATE_PENDING
    clock.forward(1)
    assert (await service.plan("plan-1")).state == plan_pb2.PLAN_STATE_EXPIRED
    with pytest.raises(PlanExpired) as raised:
        await service.begin_planned("plan-1")
    assert raised.value.metadata == {"plan": "plan-1", "expired": "2023-11-15T22:13:20Z"}

    await service.store_plan(new)

    assert (await service.sweep()).plans == 1
    with pytest.raises(PlanNotFound):
        await service.plan("plan-1")
    assert [plan.id for plan in (await service.plans()).plans] == ["plan-2"]


async def test_plans_are_listed_newest_first_by_target_stack_and_page(service: Client, clock: Clock) -> None:
    for number, (stack, org) in enumerate([("a", ""), ("b", ""), ("a", "there"), ("a", "")]):
        await service.store_plan(planned(f"plan-{number}", stack_name=stack, target=object_pb2.Target(org=org)))
        clock.forward(1)

    first = await service.plans(page_size=3)
    second = await service.plans(page_size=3, page_token=first.next_page_token)

    assert [plan.id for plan in (*first.plans, *second.plans)] == [f"plan-{number}" for number in (3, 2, 1, 0)]
    assert not second.next_page_token
    here = await service.plans(object_pb2.Target(), "a")
    assert [plan.id for plan in here.plans] == ["plan-3", "plan-0"]
    shown = here.plans[0]
    assert (shown.stack_name, shown.digest, shown.state) == ("a", "sha256:00", plan_pb2.PLAN_STATE_PENDING)
    assert (shown.kind, shown.counts.creates) == (plan_pb2.OPERATION_KIND_APPLY, 2)


async def test_a_plan_is_applied_once_by_the_operation_that_starts_with_it(service: Client) -> None:
    await service.store_plan(planned(stack_name="prod"))
    answer = await service.begin_planned("0123456789abcdef", "operation-1")
    assert await service.read_plan(NAME) == (planned(stack_name="prod").header, body_of(planned()))
    assert (answer.operation.kind, answer.is_pending) == (plan_pb2.OPERATION_KIND_APPLY, True)
    begun = Begun("operation-1", answer.stack, answer.token, answer.expire_time, True)
    assert (await service.plan("0123456789abcdef")).state == plan_pb2.PLAN_STATE_PENDING

    # Twice: the response to the first may have been lost.
    await service.start(begun, plan="0123456789abcdef")
    await service.start(begun, plan="0123456789abcdef")

    running = await service.plan("0123456789abcdef")
    assert (running.state, running.operation_id) == (plan_pb2.PLAN_STATE_APPLYING, "operation-1")
    assert (await service.operation("operation-1")).step_count == 2
    assert (await service.operation("operation-1")).plan_id == running.id
    with pytest.raises(RequestInvalid):
        await service.start(begun, steps=2)

    await service.record(begun, [entry("one")])

    assert (await service.plan(running.id)).state == plan_pb2.PLAN_STATE_APPLIED
    with pytest.raises(PlanUsed) as raised:
        await service.begin_planned(running.id)
    assert raised.value.metadata == {"plan": running.id, "operation": "operation-1"}


async def test_of_two_operations_for_one_plan_one_starts(service: Client) -> None:
    """Without a stack, there is no lease that excludes the second."""
    await service.store_plan(planned())
    first, second = [await begun_for(service, NAME) for _ in range(2)]

    await service.start(first, plan=NAME)
    with pytest.raises(PlanUsed):
        await service.start(second, plan=NAME)

    assert (await service.operation(second.operation)).state == operation_pb2.OPERATION_STATE_PREPARING
    await service.abandon(second)


async def test_the_plan_of_an_operation_that_does_not_start_can_be_applied_by_another(service: Client) -> None:
    await service.store_plan(planned(stack_name="prod"))
    await service.abandon(await begun_for(service, NAME))

    begun = await begun_for(service, NAME)
    await service.start(begun, plan=NAME)
    await service.abandon(begun)

    assert (await service.plan(NAME)).state == plan_pb2.PLAN_STATE_APPLIED


async def test_the_plan_of_a_blocked_operation_is_still_applying(service: Client) -> None:
    await service.store_plan(planned(stack_name="prod"))
    begun = await begun_for(service, NAME)
    await service.start(begun, plan=NAME)

    await service.abandon(begun, state=operation_pb2.OPERATION_STATE_BLOCKED)

    assert (await service.plan(NAME)).state == plan_pb2.PLAN_STATE_APPLYING
    with pytest.raises(OperationUnfinished):
        await service.begin_planned(NAME)


async def test_a_stale_plan_stays_stale(service: Client) -> None:
    await service.store_plan(planned(stack_name="prod"))
    begun = await begun_for(service, NAME)
    stale = journal_pb2.StalePlan(plan_id=NAME, problem="Bucket 'one' is gone")

    failed = operation_pb2.OPERATION_STATE_FAILED
    await service.finish(begun, failed, abandon=journal_pb2.Abandon(), stale_plan=stale)

    assert (await service.plan(NAME)).state == plan_pb2.PLAN_STATE_STALE
    with pytest.raises(PlanStale) as raised:
        await service.begin_planned(NAME)
    assert raised.value.metadata == {"plan": NAME, "problem": "Bucket 'one' is gone"}
    # The refused operation released its lease.
    await service.abandon(await service.begin("prod", steps=None))


async def test_a_plan_that_runs_is_not_stale(service: Client) -> None:
    await service.store_plan(planned(stack_name="prod"))
    begun = await begun_for(service, NAME)
    await service.start(begun, plan=NAME)
    stale = journal_pb2.StalePlan(plan_id=NAME, problem="no")

    rolled_back = operation_pb2.OPERATION_STATE_ROLLED_BACK
    with pytest.raises(RequestInvalid):
        await service.finish(begun, rolled_back, abandon=journal_pb2.Abandon(), stale_plan=stale)


async def test_an_operation_for_a_plan_works_on_the_stack_of_the_plan(service: Client) -> None:
    stack = await service.create("prod")
    await service.store_plan(planned("plan-1", stack_id=stack.id, stack_name="prod", kind=UNINSTALL))
    await service.store_plan(planned("plan-2", stack_name="prod"))
    await service.store_plan(planned("plan-3", stack_id="0" * 16, stack_name="prod"))

    begun = await service.begin_planned("plan-1")

    assert (begun.stack.id, begun.operation.kind) == (stack.id, UNINSTALL)
    with pytest.raises(StackLeased):
        await service.begin_planned("plan-2")
    with pytest.raises(StackNotFound):
        await service.begin_planned("plan-3")
    with pytest.raises(PlanNotFound):
        await service.begin_planned("plan-4")


async def test_a_repeated_begin_for_a_plan_returns_the_same_operation(service: Client) -> None:
    await service.store_plan(planned(stack_name="prod"))
    first = await service.begin_planned(NAME, "operation-1")

    assert await service.begin_planned(NAME, "operation-1") == first


async def test_an_operation_that_names_neither_kind_nor_plan_is_refused(service: Client) -> None:
    request = journal_pb2.BeginOperationRequest(operation_id="operation-1", holder="me")
    request.target.SetInParent()
    request.ttl.FromSeconds(10)

    with pytest.raises(RequestInvalid) as raised:
        await service.begin_answer(request)

    assert raised.value.metadata["field"] == "kind"


async def test_a_request_stores_one_plan(service: Client, clock: Clock) -> None:
    assert await service.find_plan("r-1", "d-1") == ""
    assert (await service.store_plan(planned("plan-1"), "r-1", "d-1")).plan_id == "plan-1"

    assert await service.find_plan("r-1", "d-1") == "plan-1"
    assert (await service.store_plan(planned("plan-2"), "r-1", "d-1")).plan_id == "plan-1"
    for again in (service.find_plan("r-1", "d-2"), service.store_plan(planned("plan-2"), "r-1", "d-2")):
        with pytest.raises(RequestIdReused):
            await again
    assert len((await service.plans()).plans) == 1
    clock.forward(DAY + 1)
    assert (await service.store_plan(planned("plan-2"), "r-1", "d-2")).plan_id == "plan-2"


async def test_a_request_begins_one_operation(service: Client, clock: Clock) -> None:
    begun = await service.begin("prod", operation="operation-1", request_id="r-1", request_digest="d-1")
    again = await begin_again(service)
    assert (again.operation.id, again.token, again.HasField("stack")) == ("operation-1", 0, False)
    with pytest.raises(RequestIdReused):
        await begin_again(service, digest="d-2")

    await service.record(begun, [entry("one")])

    assert (await begin_again(service)).operation.state == operation_pb2.OPERATION_STATE_SUCCEEDED
    clock.forward(DAY + 1)
    assert (await begin_again(service)).token


async def test_two_requests_at_the_same_moment_begin_one_operation(service: Client) -> None:
    answers = await asyncio.gather(*(begin_again(service, f"operation-{number}") for number in range(8)))

    assert len({answer.operation.id for answer in answers}) == 1
    assert len((await service.operations()).operations) == 1


@pytest.mark.parametrize("dies", [True, False])
async def test_a_request_whose_operation_ended_before_it_started_may_begin_another(
    service: Client, clock: Clock, dies: bool
) -> None:
    begun = await service.begin("prod", operation="operation-1", steps=None, request_id="r-1", request_digest="d-1")
    if dies:
        clock.forward(31)
    else:
        await service.abandon(begun)

    answer = await begin_again(service)

    assert answer.operation.id == "operation-2"
    assert answer.token
    with pytest.raises(LeaseLost):
        await service.start(begun)


async def begin_again(
    service: Client, operation: str = "operation-2", digest: str = "d-1"
) -> journal_pb2.BeginOperationResponse:
    """The response to a second begin for request r-1."""
    request = journal_pb2.BeginOperationRequest(
        create_missing=True,
        operation_id=operation,
        kind=plan_pb2.OPERATION_KIND_APPLY,
        holder="applier-2",
        request=request_key("r-1", digest),
    )
    request.stack.name = "prod"
    request.ttl.FromSeconds(30)
    return await service.begin_answer(request)


async def test_a_repeated_request_returns_the_same_operation_even_if_another_died_on_its_stack(
    service: Client, clock: Clock
) -> None:
    begun = await service.begin("prod", operation="operation-1", request_id="r-1", request_digest="d-1")
    await service.record(begun, [entry("one")])
    await service.begin("prod", steps=None)
    clock.forward(60)

    again = await begin_again(service)

    assert (again.operation.id, again.token) == ("operation-1", 0)


async def test_a_refused_operation_stores_no_answer_to_its_request(service: Client) -> None:
    """A client that gets an error retries with the same id."""
    holder = await service.begin("prod")
    for _ in range(2):
        with pytest.raises(StackLeased):
            await begin_again(service)
    await service.record(holder)

    assert (await begin_again(service)).token


async def test_a_plan_is_removed_with_its_operation(service: Client, tmp_path: Path, clock: Clock) -> None:
    await service.store_plan(planned(stack_name="prod"))
    begun = await begun_for(service, NAME)
    await service.start(begun, plan=NAME)
    await service.record(begun)
    clock.forward(1)
    await service.record(await service.begin("prod", operation="operation-last"))
    clock.forward(1)
    finish_many(tmp_path / "stack.db", 1000, clock)

    assert (await service.sweep()).operations == 1
    with pytest.raises(PkgerError) as raised:
        await service.plan(NAME)
    assert isinstance(raised.value, PlanNotFound)


async def test_a_plan_that_no_operation_ran_is_deleted(service: Client) -> None:
    await service.store_plan(planned())
    await service.delete_plan(NAME)
    for ask in (service.plan, service.delete_plan, service.begin_planned):
        with pytest.raises(PlanNotFound):
            await ask(NAME)
    # The name is free again.
    await service.store_plan(planned(stack_name="prod"))
    assert (await service.plan(NAME)).stack_name == "prod"


async def test_a_plan_that_is_stale_or_expired_is_deleted(service: Client, clock: Clock) -> None:
    await service.store_plan(planned())
    clock.forward(DAY + 1)
    await service.delete_plan(NAME)
    with pytest.raises(PlanNotFound):
        await service.plan(NAME)


async def test_the_plan_of_an_operation_is_not_deleted(service: Client) -> None:
    await service.store_plan(planned())
    begun = await begun_for(service, NAME)
    await service.start(begun, plan=NAME)
    with pytest.raises(PlanUsed) as refused:
        await service.delete_plan(NAME)
    assert refused.value.metadata["operation"] == begun.operation
    assert (await service.plan(NAME)).operation_id == begun.operation


async def test_a_plan_for_an_operation_is_for_no_other(service: Client) -> None:
    first, second = await service.begin("first", steps=None), await service.begin("second", steps=None)
    await service.plan_for(first, 3)
    plan = await service.plan(first.operation.replace("operation", "plan"))
    assert (plan.state, plan.operation_id) == (plan_pb2.PLAN_STATE_APPLYING, first.operation)
    assert not plan.HasField("expire_time")

    with pytest.raises(PlanUsed):
        await service.begin_planned(plan.id)
    with pytest.raises(PlanUsed):
        await service.start(second, plan=plan.id)


async def test_a_plan_for_an_operation_replaces_the_one_before_until_it_starts(service: Client) -> None:
    """
    A repeated call replaces the plan, because the answer to the first call may be lost. The start names the digest that
    the applier read, so a plan that arrives late is not run instead.
    """
    begun = await service.begin("prod", steps=None)
    await service.plan_for(begun, 3)
    other = a_plan(2, begun.operation, digest="sha256:01")
    await service.store_plan(other, operation=begun.operation)
    with pytest.raises(PlanStale):
        await service.peer.call(service.journal.AdvanceOperation, start_request(begun))

    await service.plan_for(begun, 2)
    await service.peer.call(service.journal.AdvanceOperation, start_request(begun))

    assert (await service.operation(begun.operation)).step_count == 2
    with pytest.raises(LeaseLost):
        await service.plan_for(begun, 3)
    with pytest.raises(OperationNotFound):
        await service.store_plan(a_plan(1, "operation-none"), operation="operation-none")


@pytest.mark.parametrize("end", ["applier", "next operation", "sweep", "restore"])
async def test_an_operation_that_does_not_start_leaves_no_plan(service: Client, clock: Clock, end: str) -> None:
    begun = await service.begin("prod", steps=None, seconds=10)
    await service.plan_for(begun, 3)
    match end:
        case "applier":
            await service.abandon(begun)
        case "next operation":
            clock.forward(11)
            await service.begin("prod", steps=None)
        case "sweep":
            clock.forward(11)
            await service.sweep()
        case _:
            await service.peer.call(service.journal.MarkRestored, journal_pb2.MarkRestoredRequest())

    assert (await service.operation(begun.operation)).state == operation_pb2.OPERATION_STATE_FAILED
    assert not (await service.plans()).plans
