"""Applies without the name of a stack, for which one is found or created (planner.proto, StackRef.nameless)."""

from dataclasses import replace
from typing import Any

import pytest
from pkger.model.v1 import object_pb2, operation_pb2
from pkger.stack.v1 import stack_pb2
from pkger.stack.v1.stack_pb2_grpc import StackServiceStub

from services.core.errors import PlanStale, RequestInvalid, ResourceOwned
from services.core.model import Verb
from tests.applier.faulty import ItemFault
from tests.applier.world import ROLLED_BACK, SUCCEEDED, Case, World, end
from tests.apply.packages import an_object, text
from tests.cluster import Shown
from tests.drivers.client import delete

SENSORS = an_object("Label", "l", "sensors")
RAW = an_object("Bucket", "b", "raw", ["l"])
BOARD = an_object("Dashboard", "d", "board")


async def planned(case: Case, *objects: dict[str, Any], store: bool = True, **more: Any) -> Shown:
    """A plan without the name of a stack."""
    ref = object_pb2.StackRef(nameless=True)
    return await case.services.plan(text(*objects), stack_ref=ref, org=case.org, store=store, **more)


async def applied(case: Case, *objects: dict[str, Any], **more: Any) -> operation_pb2.Finished:
    """The end of an apply of such a plan."""
    return end(await case.apply_plan(await planned(case, *objects, **more)))


async def stacks(case: Case) -> list[stack_pb2.Stack]:
    peer = case.services.peers["stack"]
    request = stack_pb2.ListStacksRequest(target=object_pb2.Target(org=case.org))
    return list((await peer.call(StackServiceStub(peer.channel).ListStacks, request)).stacks)


async def keys(case: Case, stack: str) -> list[str]:
    """Names of the objects in the record of a stack."""
    peer = case.services.peers["stack"]
    request = stack_pb2.ListResourcesRequest(stack=object_pb2.StackRef(id=stack))
    answer = await peer.call(StackServiceStub(peer.channel).ListResources, request)
    return [each.key.name for each in answer.resources]


async def test_the_first_apply_creates_a_stack_and_the_next_uses_it(faulty: World) -> None:
    case = faulty.case("")
    plan = await planned(case, SENSORS, RAW)
    assert (plan.header.stack_id, plan.header.stack_name, plan.header.creates_nameless_stack) == ("", "", True)
    assert await stacks(case) == []

    first = end(await case.apply_plan(plan))

    [made] = await stacks(case)
    assert (first.state, first.stack_id, made.id, made.name) == (SUCCEEDED, made.id, made.id, "")
    again = await planned(case, SENSORS, RAW)
    assert (again.header.stack_id, again.header.no_change, again.header.creates_nameless_stack) == (
        made.id,
        True,
        False,
    )
    assert (await applied(case, RAW, SENSORS, an_object("Task", "t", "t", query="x", every="1h"))).stack_id == made.id
    assert await keys(case, made.id) == ["b", "l", "t"]


async def test_nothing_leaves_the_stack(faulty: World) -> None:
    case = faulty.case("")
    stack = (await applied(case, SENSORS, RAW, BOARD)).stack_id
    renamed = an_object("Label", "other", "sensors", color="#ff0000")

    plan = await planned(case, renamed)

    assert (plan.header.stack_id, plan.header.untouched_count) == (stack, 2)
    assert [(step.verb, step.key.name) for step in plan.steps] == [(Verb.UPDATE, "other")]
    assert end(await case.apply_plan(plan)).state == SUCCEEDED
    assert await keys(case, stack) == ["b", "d", "other"]
    assert len((await case.look()).resources) == 3


async def test_an_object_of_a_name_that_may_repeat_is_found_by_its_key_and_name(faulty: World) -> None:
    case = faulty.case("")
    stack = (await applied(case, BOARD)).stack_id
    assert (await planned(case, BOARD)).header.stack_id == stack
    assert (await planned(case, an_object("Dashboard", "d", "another"))).header.creates_nameless_stack
    assert (await planned(case, an_object("Dashboard", "another", "board"))).header.creates_nameless_stack

    [board] = (await case.look()).resources
    await case.services.mutate(delete("Dashboard", board.id), org=case.org)
    assert (await planned(case, BOARD)).header.stack_id == stack, "a deleted resource is created again in its stack"


async def test_the_newest_stack_that_owns_an_object_is_chosen_and_the_others_are_named(faulty: World) -> None:
    case = faulty.case("")
    first, second = [(await applied(case, each)).stack_id for each in (SENSORS, BOARD)]
    assert first != second

    with pytest.raises(ResourceOwned) as caught:
        await planned(case, SENSORS, BOARD)

    assert first in str(caught.value)


async def test_what_a_named_stack_owns_is_refused_although_it_is_equal(faulty: World) -> None:
    case = await faulty.case_with(text(SENSORS))
    with pytest.raises(ResourceOwned) as caught:
        await planned(replace(case, stack=""), SENSORS, RAW)
    assert "stack 's'" in str(caught.value)


async def test_a_first_apply_that_fails_leaves_no_stack(faulty: World) -> None:
    case = faulty.case("")
    case.driver.fail({1: ItemFault.REJECT})
    finished = await applied(case, SENSORS, RAW)
    assert finished.state == ROLLED_BACK
    assert await stacks(case) == []
    assert (await case.look()).resources == []


async def test_of_two_first_applies_the_second_is_planned_again(faulty: World) -> None:
    case = faulty.case("")
    one, two = await planned(case, SENSORS), await planned(case, SENSORS)
    assert one.digest == two.digest
    stack = end(await case.apply_plan(one)).stack_id
    with pytest.raises(PlanStale):
        await case.apply_plan(two)
    again = await planned(case, SENSORS)
    assert (again.header.stack_id, again.header.no_change) == (stack, True)
    assert len(await stacks(case)) == 1


async def test_its_digest_differs_from_that_of_a_plan_without_a_stack(faulty: World) -> None:
    case = faulty.case("")
    without = await case.services.plan(text(SENSORS), org=case.org)
    assert (await planned(case, SENSORS, store=False)).digest != without.digest


async def test_only_a_package_finds_its_stack(faulty: World) -> None:
    case, nameless = faulty.case(""), object_pb2.StackRef(nameless=True)
    with pytest.raises(RequestInvalid, match="destroy needs a stack that is named"):
        await case.services.plan(org=case.org, destroy=True, stack_ref=nameless)
    with pytest.raises(RequestInvalid, match="name the stack by id or by name"):
        await planned_with(case, object_pb2.StackRef(nameless=False))
    with pytest.raises(RequestInvalid, match="name the stack, by id or by name"):
        await case.apply(text(SENSORS), stack_ref=nameless)


async def planned_with(case: Case, ref: object_pb2.StackRef) -> Shown:
    return await case.services.plan(text(SENSORS), stack_ref=ref, org=case.org)
