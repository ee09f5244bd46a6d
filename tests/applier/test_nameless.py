"""Applies without the name of a stack, for which one is found or created (planning.proto, PlanStandalonePackage)."""

import random
from dataclasses import replace
from typing import Any

import pytest
from pkger.model.v1 import object_pb2, operation_pb2
from pkger.parser.v1 import parser_pb2
from pkger.planner.v1 import planner_pb2
from pkger.stack.v1 import stack_pb2
from pkger.stack.v1.stack_pb2_grpc import StackServiceStub

from services.core.errors import PlanStale, RequestInvalid, ResourceOwned, SharedDiffers
from services.core.model import Verb
from tests.applier.faulty import ItemFault
from tests.applier.world import ROLLED_BACK, SUCCEEDED, Case, World, end
from tests.apply.packages import an_object, text
from tests.cluster import Shown
from tests.drivers.client import delete
from tests.samples import slow

SENSORS = an_object("Label", "l", "sensors")
RAW = an_object("Bucket", "b", "raw", ["l"])
BOARD = an_object("Dashboard", "d", "board")

CREATED, SHARED = object_pb2.ORIGIN_CREATED, object_pb2.ORIGIN_SHARED


async def planned(case: Case, *objects: dict[str, Any], store: bool = True, **more: Any) -> Shown:
    """A plan without the name of a stack."""
    return await case.services.plan(text(*objects), standalone=True, org=case.org, store=store, **more)


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


async def origins(case: Case, stack: str) -> dict[str, int]:
    """The origins of the resources of a stack, by the names of their objects."""
    record = await case.services.record(stack_id=stack)
    return {entry.key.name: entry.origin for entry in record.resources}


async def test_the_first_apply_creates_a_stack_and_the_next_uses_it(faulty: World) -> None:
    case = faulty.case("")
    plan = await planned(case, SENSORS, RAW)
    assert (plan.header.stack_id, plan.header.stack_name) == ("", "")
    assert await stacks(case) == []

    first = end(await case.apply_plan(plan))

    [made] = await stacks(case)
    assert (first.state, first.stack_id, made.id, made.name) == (SUCCEEDED, made.id, made.id, "")
    again = await planned(case, SENSORS, RAW)
    assert (again.header.stack_id, again.header.no_change) == (made.id, True)
    assert (await applied(case, RAW, SENSORS, an_object("Task", "t", "t", query="x", every="1h"))).stack_id == made.id
    assert await keys(case, made.id) == ["b", "l", "t"]


async def test_nothing_leaves_the_stack(faulty: World) -> None:
    case = faulty.case("")
    stack = (await applied(case, SENSORS, RAW, BOARD)).stack_id
    changed, new = an_object("Label", "l", "sensors", color="#ff0000"), an_object("Label", "m", "more")

    plan = await planned(case, changed, new)

    assert (plan.header.stack_id, plan.header.untouched_count) == (stack, 2)
    assert [(step.verb, step.key.name) for step in plan.steps] == [(Verb.UPDATE, "l"), (Verb.CREATE, "m")]
    assert end(await case.apply_plan(plan)).state == SUCCEEDED
    assert await keys(case, stack) == ["b", "d", "l", "m"]


async def test_equal_keys_are_another_template_if_the_source_and_all_names_differ(faulty: World) -> None:
    case = faulty.case("")
    stack = (await applied(case, BOARD)).stack_id
    renamed = an_object("Dashboard", "d", "another")
    assert (await planned(case, renamed)).header.stack_id == stack
    source = parser_pb2.Source(name="elsewhere.json", text=text(renamed))
    package = planner_pb2.PackageSources(sources=[source])
    elsewhere = await case.services.plan(standalone=True, org=case.org, package=package)
    assert elsewhere.header.stack_id == ""
    assert (await planned(case, an_object("Dashboard", "another", "board"))).header.stack_id == ""

    [board] = (await case.look()).resources
    await case.services.mutate(delete("Dashboard", board.id), org=case.org)
    assert (await planned(case, BOARD)).header.stack_id == stack, "a deleted resource is created again in its stack"


async def test_a_resource_that_another_stack_without_a_name_owns_is_shared(faulty: World) -> None:
    case = faulty.case("")
    first, second = [(await applied(case, each)).stack_id for each in (SENSORS, an_object("Label", "tag", "sensors"))]
    assert first != second
    assert await origins(case, first) == {"l": CREATED}
    assert await origins(case, second) == {"tag": SHARED}


async def test_a_resource_that_differs_is_taken_over(faulty: World) -> None:
    case = faulty.case("")
    first = (await applied(case, SENSORS, RAW)).stack_id
    plan = await planned(case, an_object("Label", "tag", "sensors", color="#ff0000"), BOARD)
    assert plan.warnings == [f"Label 'tag' is taken over from stack '{first}': the change is theirs as well"]

    second = end(await case.apply_plan(plan)).stack_id

    assert await origins(case, first) == {"b": CREATED, "l": SHARED}
    assert await origins(case, second) == {"d": CREATED, "tag": CREATED}
    assert (await planned(case, an_object("Label", "tag", "sensors", color="#ff0000"), BOARD)).header.no_change
    back = await planned(case, SENSORS, RAW)
    assert (back.header.stack_id, [step.key.name for step in back.steps]) == (first, ["l"])


async def test_a_rollback_hands_nothing_over(faulty: World) -> None:
    case = faulty.case("")
    first = (await applied(case, SENSORS)).stack_id
    case.driver.fail({1: ItemFault.REJECT})

    finished = await applied(
        case, an_object("Label", "tag", "sensors", color="#ff0000"), an_object("Bucket", "b", "raw")
    )

    assert finished.state == ROLLED_BACK
    assert [(stack.id, stack.generation) for stack in await stacks(case)] == [(first, 1)]
    assert await origins(case, first) == {"l": CREATED}
    assert (await planned(case, SENSORS)).header.no_change


async def test_a_resource_that_would_be_replaced_is_not_taken_over(faulty: World) -> None:
    case = faulty.case("")
    await applied(case, an_object("Bucket", "b", "raw", schemaType="implicit"))
    with pytest.raises(SharedDiffers):
        await planned(case, an_object("Bucket", "other", "raw", schemaType="explicit"))


async def test_a_plan_that_takes_over_is_stale_once_another_apply_has_changed_the_resource(faulty: World) -> None:
    case = faulty.case("")
    await applied(case, SENSORS)
    plans = [await planned(case, an_object("Label", name, "sensors", color=f"#00000{name}")) for name in "12"]
    second = end(await case.apply_plan(plans[0])).stack_id
    with pytest.raises(PlanStale):
        await case.apply_plan(plans[1])
    assert await origins(case, second) == {"1": CREATED}


@pytest.mark.parametrize("seed", [0, 1, *map(slow, range(2, 5))])
async def test_removing_a_stack_removes_what_only_its_template_declares(faulty: World, seed: int) -> None:
    """Of templates that share and contest labels and buckets, in any order of applies and removals."""
    case, rng = faulty.case(""), random.Random(seed)
    templates = {number: a_template(f"t{number}", rng) for number in range(5)}
    made: dict[int, str] = {}
    for _ in range(16):
        number = rng.choice(list(templates))
        if number in made and rng.random() < 0.5:
            removed = await case.services.uninstall(stack_id=made.pop(number))
            assert (removed.state, removed.leftover_count) == (SUCCEEDED, 0)
        else:
            finished = await applied(case, *templates[number])
            assert finished.stack_id == made.setdefault(number, finished.stack_id)
            assert (await planned(case, *templates[number])).header.no_change
        declared = {(each["kind"], each["spec"]["name"]) for number in made for each in templates[number]}
        assert sorted((each.kind, each.display_name) for each in (await case.look()).resources) == sorted(declared)
    assert len({*made.values()}) == len(made)


def a_template(name: str, rng: random.Random) -> list[dict[str, Any]]:
    """A template of its own dashboard, and of labels and a bucket that others declare as well, not always equally."""
    labels = [
        an_object("Label", f"{name}-{number}", f"label {number}", color=rng.choice(["#000001", "#000002"]))
        for number in rng.sample(range(3), rng.randint(0, 2))
    ]
    attached = [each["metadata"]["name"] for each in labels]
    bucket = an_object("Bucket", f"{name}-b", rng.choice(["one", "two"]), attached)
    return [*labels, bucket, an_object("Dashboard", f"{name}-d", name, attached)]


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
    case = faulty.case("")
    with pytest.raises(RequestInvalid, match="stack: destroy removes what a stack owns, so name the stack"):
        await case.services.plan(org=case.org, standalone=True, destroy=True)
    with pytest.raises(RequestInvalid, match="stack: name it by id, or by name with its target"):
        await case.services.plan(text(SENSORS), org=case.org, standalone=True, stack_ref=object_pb2.StackRef())
