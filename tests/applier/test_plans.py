"""
A stored plan runs exactly as it is, once, or writes nothing and says why (docs/reference/engine.md, "Plans" and
"Tests").
"""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from pkger.driver.v1 import driver_pb2
from pkger.model.v1 import operation_pb2, plan_pb2

from services.core.errors import (
    DigestMismatch,
    PkgerError,
    PlanNotFound,
    PlanStale,
    PlanUsed,
    ReplacementRefused,
    RequestIdReused,
    RequestInvalid,
    StackMoved,
    StackNotFound,
    ValuesMissing,
)
from services.rpc.plan_parts import JoinedPlan
from tests.applier.faulty import CallFault, ItemFault
from tests.applier.packages import CHANGES, FRESH, MIXED, UPDATED
from tests.applier.world import BLOCKED, ROLLED_BACK, SUCCEEDED, Case, World, check, end
from tests.apply.packages import an_object, text
from tests.cluster import InvalidPackage, Shown

SMALL = text(an_object("Label", "red", "red"), an_object("Bucket", "raw", "raw", ["red"]))
OTHER = text(an_object("Label", "red", "red", color="#ff0000"), an_object("Bucket", "raw", "raw", ["red"]))


def named(name: str, digest: str = "") -> Shown:
    """A plan of which only the name is known."""
    return Shown(JoinedPlan(header=plan_pb2.Plan(id=name, digest=digest)))


async def refused(case: Case, plan: Shown, reason: type[PkgerError]) -> PkgerError:
    """The error that refuses the apply of *plan*; nothing is written, and the stack is not leased afterwards."""
    case.driver.heal()
    before = await case.look()
    with pytest.raises(reason) as raised:
        await case.apply_plan(plan)
    assert case.driver.sent == []
    assert await case.look() == before
    return raised.value


async def on_the_platform(case: Case, *mutations: driver_pb2.Mutation) -> None:
    """Change the platform as other writers do."""
    results = (await case.services.mutate(*mutations, org=case.org)).results
    assert all(result.HasField("done") for result in results)


async def label_id(case: Case, name: str) -> str:
    return next(each.id for each in (await case.look()).resources if f'"name":"{name}"' in each.spec_json)


async def test_a_plan_is_stored_as_it_is_shown(faulty: World) -> None:
    case = faulty.case()

    plan = await case.plan(SMALL)

    assert (plan.state, plan.header.stack_name, plan.header.stack_id) == (plan_pb2.PLAN_STATE_PENDING, "s", "")
    assert re.fullmatch("[0-9a-f]{16}", plan.name)
    assert plan.header.expire_time.seconds - plan.header.create_time.seconds == 24 * 3600
    assert (await case.services.stored_plan(plan.name)).parts == plan.parts
    shown = await case.services.plan(SMALL, stack="s", org=case.org)
    assert (shown.digest, shown.name) == (plan.digest, "")


@pytest.mark.parametrize("change", CHANGES)
async def test_a_stored_plan_runs_like_an_apply(faulty: World, change: str) -> None:
    package, changed = CHANGES[change]
    clean = await faulty.case_with(*filter(None, [package]))
    await clean.apply(changed)
    case = await faulty.case_with(*filter(None, [package]))
    plan, before = await case.plan(changed), await case.look()

    events = await case.apply_plan(plan)

    assert end(events).state == SUCCEEDED
    accepted = events.plan
    assert (accepted.digest, accepted.name, list(accepted.steps)) == (plan.digest, plan.name, list(plan.steps))
    check(before, events, await case.look(), (await clean.look()).content)
    assert [event async for event in case.watch(events[0].operation_id)] == events
    stored = await case.services.stored_plan(plan.name)
    assert (stored.state, stored.header.operation_id) == (plan_pb2.PLAN_STATE_APPLIED, events[0].operation_id)


async def test_the_plan_that_an_apply_makes_for_itself_is_stored_too(faulty: World) -> None:
    case = faulty.case()
    events = await case.apply(SMALL)
    stored = await case.services.stored_plan(events.plan.name)
    assert (stored.state, stored.header.operation_id) == (plan_pb2.PLAN_STATE_APPLIED, events[0].operation_id)
    assert stored.steps == events.plan.steps
    assert isinstance(await refused(case, stored, PlanUsed), PlanUsed)


async def test_a_plan_is_applied_once(faulty: World) -> None:
    case = faulty.case()
    plan = await case.plan(SMALL)
    operation = (await case.apply_plan(plan))[0].operation_id

    error = await refused(case, plan, PlanUsed)

    assert error.metadata == {"plan": plan.name, "operation": operation}


async def test_a_plan_that_was_undone_is_used_all_the_same(faulty: World) -> None:
    case = faulty.case()
    plan = await case.plan(SMALL)
    case.driver.fail({1: ItemFault.REJECT})
    assert end(await case.apply_plan(plan)).state == ROLLED_BACK

    await refused(case, plan, PlanUsed)


async def test_of_two_appliers_with_one_plan_one_runs_it(faulty: World) -> None:
    """Without a stack, so that no lease keeps them apart."""
    case = faulty.case(stack="")
    plan = await case.plan(SMALL)

    ended = await asyncio.gather(*(case.apply_plan(plan) for _ in range(4)), return_exceptions=True)

    events = [each for each in ended if not isinstance(each, BaseException)]
    assert [end(each).state for each in events] == [SUCCEEDED]
    # Depending on the time of its checks, the second one may have found the resources of the first.
    assert {type(each) for each in ended if isinstance(each, BaseException)} <= {PlanUsed, PlanStale}
    assert len((await case.look()).resources) == 2


async def test_a_plan_is_stale_when_its_stack_has_changed(faulty: World) -> None:
    case = await faulty.case_with(SMALL)
    plan = await case.plan(FRESH)
    await case.apply(OTHER)

    error = await refused(case, plan, StackMoved)

    assert error.metadata == {"stack": "s", "expected": "1", "actual": "2"}
    assert (await case.services.stored_plan(plan.name)).state == plan_pb2.PLAN_STATE_STALE
    again = await refused(case, plan, PlanStale)
    assert again.metadata == {"plan": plan.name, "problem": str(error)}
    assert end(await case.apply_plan(await case.plan(FRESH))).state == SUCCEEDED


async def test_a_plan_for_a_new_stack_is_stale_when_there_is_one(faulty: World) -> None:
    """Generation 0 is compared like any other."""
    case = faulty.case()
    plan = await case.plan(SMALL)
    await case.apply(SMALL)

    assert (await refused(case, plan, StackMoved)).metadata == {"stack": "s", "expected": "0", "actual": "1"}


async def test_a_plan_for_a_stack_that_is_gone_finds_no_other_of_the_name(faulty: World) -> None:
    case = await faulty.case_with(SMALL)
    plan = await case.plan(FRESH)
    await case.uninstall()
    await case.apply(SMALL)

    await refused(case, plan, StackNotFound)


@pytest.mark.parametrize("stack", ["s", ""])
async def test_a_plan_at_generation_0_is_stale_when_the_platform_has_changed(faulty: World, stack: str) -> None:
    case = faulty.case(stack)
    plan = await case.plan(SMALL)
    create = driver_pb2.CreateResource(kind="Label", spec_json='{"name":"red"}')
    await on_the_platform(case, driver_pb2.Mutation(create=create))
    created = await label_id(case, "red")

    error = await refused(case, plan, PlanStale)

    problem = f"Label 'red' is to be named 'red', but Label resource {created} has that name"
    assert error.metadata == {"plan": plan.name, "problem": problem}
    assert (await case.services.stored_plan(plan.name)).state == plan_pb2.PLAN_STATE_STALE
    assert (await refused(case, plan, PlanStale)).metadata == error.metadata


async def test_a_plan_says_what_is_stale_on_the_platform(faulty: World) -> None:
    case = await faulty.case_with(FRESH)
    plan = await case.plan(UPDATED)
    red = await label_id(case, "red")
    (task,) = [each for each in (await case.look()).resources if each.kind == "Task"]
    update = driver_pb2.UpdateResource(kind="Label", id=red, spec_json='{"name":"red","color":"#000000"}')
    delete = driver_pb2.DeleteResource(kind="Task", id=task.id)
    await on_the_platform(case, driver_pb2.Mutation(update=update), driver_pb2.Mutation(delete=delete))

    error = await refused(case, plan, PlanStale)

    assert sorted(error.metadata["problem"].split("; ")) == [
        "Label 'red' changed in color, description",
        "Task 'roll' is gone",
    ]


@pytest.mark.parametrize("stack", ["s", ""])
async def test_a_plan_is_stale_when_what_it_adopts_belongs_to_another_stack(faulty: World, stack: str) -> None:
    """Nothing changed on the platform."""
    case = faulty.case(stack)
    adopting = text(an_object("Label", "red", "red"))
    await case.services.apply(adopting, org=case.org)
    plan = await case.plan(text(an_object("Label", "red", "red", color="#00ff00")))
    assert [diff.status for diff in plan.resource_diffs] == [plan_pb2.DIFF_STATUS_EXISTS]
    await case.services.apply(adopting, stack="theirs", org=case.org)

    error = await refused(case, plan, PlanStale)

    assert error.metadata["problem"] == "Label 'red' is owned by stack 'theirs' now"


async def test_what_a_plan_does_not_touch_may_change(faulty: World) -> None:
    case = await faulty.case_with(FRESH)
    plan = await case.plan(MIXED)
    create = driver_pb2.CreateResource(kind="Bucket", spec_json='{"name":"theirs"}')
    await on_the_platform(case, driver_pb2.Mutation(create=create))

    assert end(await case.apply_plan(plan)).state == SUCCEEDED


async def test_another_plan_than_the_approved_one_is_refused(faulty: World) -> None:
    case = faulty.case()
    plan = await case.plan(SMALL)
    agreed = named(plan.name, "sha256:00")

    error = await refused(case, agreed, DigestMismatch)

    assert error.metadata == {"plan": plan.name, "expected": "sha256:00", "actual": plan.digest}
    await refused(case, named("plan-1"), PlanNotFound)
    assert end(await case.apply_plan(plan)).state == SUCCEEDED


async def test_of_several_reasons_against_a_plan_the_first_is_reported(faulty: World) -> None:
    """In this order: used, another digest, another generation, a changed platform, missing values."""
    case = await faulty.case_with(SMALL)
    unknown = an_object("Label", "new", "new") | {"metadata": {"name": {"envRef": {"key": "stage"}}}}
    package = text(an_object("Label", "red", "red", color="#00ff00"), unknown)
    used, moved = await case.plan(OTHER), await case.plan(package)
    await case.apply_plan(used)
    stale = await case.plan(package)
    missing = await case.plan(package)

    async def reason(plan: Shown, digest: str) -> type[Exception]:
        with pytest.raises(PkgerError) as raised:
            async for _ in case.services.apply_plan(plan.name, digest, allow_missing=False):
                pass
        return type(raised.value)

    assert await reason(missing, missing.digest) is ValuesMissing
    red = await label_id(case, "red")
    update = driver_pb2.UpdateResource(kind="Label", id=red, spec_json='{"name":"red"}')
    await on_the_platform(case, driver_pb2.Mutation(update=update))
    assert await reason(used, "sha256:00") is PlanUsed
    assert await reason(moved, "sha256:00") is DigestMismatch
    assert await reason(moved, moved.digest) is StackMoved
    assert await reason(stale, stale.digest) is PlanStale


async def test_a_plan_with_missing_values_runs_when_that_is_allowed(faulty: World) -> None:
    case = faulty.case()
    unknown = an_object("Label", "new", "new") | {"metadata": {"name": {"envRef": {"key": "stage"}}}}
    plan = await case.plan(text(unknown))
    with pytest.raises(ValuesMissing):
        [event async for event in case.services.apply_plan(plan.name, allow_missing=False)]

    assert (await case.services.stored_plan(plan.name)).state == plan_pb2.PLAN_STATE_PENDING
    assert end(await case.apply_plan(plan)).state == SUCCEEDED


async def test_a_plan_has_to_be_named(faulty: World) -> None:
    with pytest.raises(RequestInvalid) as raised:
        await faulty.case().apply_plan(named(""))
    assert raised.value.metadata["field"] == "plan_id"


async def test_a_stored_end_of_a_stack_ends_it(faulty: World) -> None:
    case = await faulty.case_with(SMALL)
    plan = await case.plan(destroy=True, after_uninstall=plan_pb2.AFTER_UNINSTALL_DELETE)
    assert plan.header.kind == plan_pb2.OPERATION_KIND_UNINSTALL

    events = await case.apply_plan(plan)

    assert (end(events).state, end(events).stack_id) == (SUCCEEDED, "")
    after = await case.look()
    assert (after.record, list(after.resources)) == (None, [])
    operation = await case.settled()
    assert operation.kind == plan_pb2.OPERATION_KIND_UNINSTALL


async def test_a_stored_plan_without_a_stack_leaves_no_record(faulty: World) -> None:
    case = faulty.case(stack="")
    assert end(await case.apply_plan(await case.plan(SMALL))).state == SUCCEEDED
    assert (len((await case.look()).resources), (await case.look()).record) == (2, None)


async def test_an_unfinished_operation_on_the_stack_is_ended_before_a_plan(faulty: World) -> None:
    """It is rolled back, so the plan fits again."""
    case = await faulty.case_with(SMALL)
    plan = await case.plan(FRESH)
    both = (an_object("Label", "red", "red", color="#ff0000"), an_object("Bucket", "raw", "raw", description="other"))
    case.driver.fail(calls={1: CallFault.AWAY}, later=CallFault.AWAY)
    blocked = await case.apply(text(*both))
    assert end(blocked).state == BLOCKED
    case.driver.heal()

    assert end(await case.apply_plan(plan)).state == SUCCEEDED

    assert [event async for event in case.watch(blocked[0].operation_id)][-1].finished.state == ROLLED_BACK


Call = Callable[[Case, str], Awaitable[list[operation_pb2.OperationEvent]]]


async def applying(case: Case, request_id: str) -> list[operation_pb2.OperationEvent]:
    return await case.apply(OTHER, request_id=request_id)


async def applying_a_plan(case: Case, request_id: str) -> list[operation_pb2.OperationEvent]:
    """The request for the plan has an id, too: repeated, it returns the same plan, however old that is."""
    plan = await case.plan(OTHER, request_id=f"{request_id}-plan")
    return await case.apply_plan(plan, request_id=request_id)


async def uninstalling(case: Case, request_id: str) -> list[operation_pb2.OperationEvent]:
    return await case.uninstall(request_id)


each_call = pytest.mark.parametrize("call", [applying, applying_a_plan, uninstalling])


@each_call
async def test_a_request_that_is_sent_again_is_answered_with_the_same_operation(faulty: World, call: Call) -> None:
    case = await faulty.case_with(SMALL)
    first = await call(case, "r-1")
    case.driver.heal()

    assert await call(case, "r-1") == first
    assert case.driver.sent == []


@each_call
async def test_a_request_that_is_sent_twice_at_once_makes_one_operation(faulty: World, call: Call) -> None:
    case = await faulty.case_with(SMALL)

    streams = await asyncio.gather(*(call(case, "r-1") for _ in range(4)))

    assert end(streams[0]).state == SUCCEEDED
    assert all(events == streams[0] for events in streams)


async def test_a_request_id_stands_for_one_content(faulty: World) -> None:
    case = await faulty.case_with(SMALL)
    plan = await case.plan(OTHER, request_id="r-2")
    await case.apply(OTHER, request_id="r-1")

    for other in (
        case.apply(FRESH, request_id="r-1"),
        case.uninstall(request_id="r-1"),
        case.apply_plan(plan, request_id="r-1"),
        case.plan(OTHER, request_id="r-1"),
        case.plan(FRESH, request_id="r-2"),
    ):
        with pytest.raises(RequestIdReused):
            await other


async def test_a_request_that_got_no_operation_can_be_sent_again(faulty: World) -> None:
    """A failure before the start is not stored as its result: here a refused replacement, and an invalid package."""
    case = faulty.case()
    package = text(an_object("NotificationEndpointSlack", "chat", "chat", url="https://example.com"))
    create = driver_pb2.CreateResource(kind="NotificationEndpointPagerDuty", spec_json=PAGER)
    await on_the_platform(case, driver_pb2.Mutation(create=create))
    for _ in range(2):
        with pytest.raises(ReplacementRefused):
            await case.apply(package, request_id="r-1")
        with pytest.raises(InvalidPackage):
            await case.apply(text(an_object("Label", "Bad Name", "x")), request_id="r-2")
    pager = await label_id(case, "chat")
    delete = driver_pb2.DeleteResource(kind="NotificationEndpointPagerDuty", id=pager)
    await on_the_platform(case, driver_pb2.Mutation(delete=delete))

    assert end(await case.apply(package, request_id="r-1")).state == SUCCEEDED


PAGER = '{"name":"chat","routingKey":{"secretRef":{"key":"k"}}}'


async def test_a_request_that_runs_is_followed_from_its_first_event(faulty: World) -> None:
    case = faulty.case()
    gate = case.driver.gate(0)
    first = asyncio.create_task(case.apply(SMALL, request_id="r-1"))
    await gate.reached.wait()
    second: AsyncIterator[operation_pb2.OperationEvent] = case.events(SMALL, request_id="r-1")
    received = [await anext(second)]

    gate.opened.set()

    received += [event async for event in second]
    assert received == await first
    assert end(received).state == SUCCEEDED
