"""A platform on which a list of dashboards is costly, through real servers: known ones are read by their ids."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from pkger.driver.v1 import driver_pb2
from pkger.model.v1 import operation_pb2, plan_pb2

from services.core.errors import PlanStale
from services.core.model import Verb
from tests.apply.packages import LABEL, an_object, text
from tests.cluster import Calls, Cluster, cluster
from tests.drivers.costly_listing import LISTED, costly_platform
from tests.transport import InMemory

BOARDS = [an_object("Dashboard", f"d{number}", f"board {number}", ["lucid_einstein"]) for number in range(3)]
PACKAGE = text(LABEL, *BOARDS)
SUCCEEDED = operation_pb2.OPERATION_STATE_SUCCEEDED


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def module_services(module_folder: Path) -> AsyncIterator[Cluster]:
    async with cluster(module_folder, {"platform": costly_platform}, transport=InMemory()) as running:
        yield running


@pytest.fixture
def slow(shared_services: Cluster) -> Cluster:
    LISTED.clear()
    return shared_services


async def test_known_resources_are_read_and_kept_like_any_other(slow: Cluster, calls: Calls) -> None:
    assert (await slow.apply(PACKAGE, stack="s")).state == SUCCEEDED
    calls.methods.clear()
    LISTED.clear()
    assert (await slow.plan(PACKAGE, stack="s")).no_change
    assert "Dashboard" not in LISTED
    # One of the two calls lists the record of the stack.
    assert [calls.count(each) for each in ("ListResources", "ReadResources")] == [2, 1]
    ids = (await slow.record("s")).ids
    await slow.mutate(
        driver_pb2.Mutation(delete=driver_pb2.DeleteResource(kind="Dashboard", id=ids["Dashboard", "d0"]))
    )
    plan = await slow.plan(text(LABEL, *BOARDS[:2]), stack="s", store=True)
    assert [(step.verb, step.key.name) for step in plan.steps if step.key.kind == "Dashboard"] == [
        (Verb.CREATE, "d0"),
        (Verb.ATTACH, "d0"),
        (Verb.DETACH, "d2"),
        (Verb.DELETE, "d2"),
    ]
    events = [event async for event in slow.apply_plan(plan.name, plan.digest)]
    assert events[-1].finished.state == SUCCEEDED
    assert (await slow.plan(text(LABEL, *BOARDS[:2]), stack="s")).no_change
    LISTED.clear()
    assert (await slow.apply(text(LABEL), stack="s")).state == SUCCEEDED
    assert "Dashboard" not in LISTED


@pytest.mark.parametrize("stack", ["s", ""])
async def test_a_creation_needs_one_listing_for_a_warning_of_the_name(slow: Cluster, calls: Calls, stack: str) -> None:
    await slow.apply(PACKAGE, stack="other")
    LISTED.clear()
    calls.methods.clear()
    plan = await slow.plan(PACKAGE, stack=stack)
    assert len([step for step in plan.steps if step.verb is Verb.CREATE]) == len(plan.warnings) == 3
    assert "Dashboard 'd0' is created beside another one named 'board 0', of stack 'other'" in plan.warnings[0]
    assert (LISTED.count("Dashboard"), LISTED.count("Label"), calls.count("FindOwners")) == (1, 1, 1)


async def test_new_names_need_no_listing(slow: Cluster) -> None:
    await slow.apply(PACKAGE, stack="s")
    LISTED.clear()
    renamed = [each | {"metadata": {"name": f"{each['metadata']['name']}-2"}} for each in BOARDS]
    assert (await slow.apply(text(LABEL, *renamed), stack="s")).counts == plan_pb2.StepCounts()
    assert "Dashboard" not in LISTED


async def test_a_stored_plan_is_stale_when_a_known_resource_changed(slow: Cluster) -> None:
    await slow.apply(PACKAGE, stack="s")
    changed = [an_object("Dashboard", "d0", "renamed", ["lucid_einstein"]), *BOARDS[1:]]
    plan = await slow.plan(text(LABEL, *changed), stack="s", store=True)
    edited = driver_pb2.UpdateResource(
        kind="Dashboard", id=(await slow.record("s")).ids["Dashboard", "d0"], spec_json='{"name":"by hand"}'
    )
    await slow.mutate(driver_pb2.Mutation(update=edited))
    with pytest.raises(PlanStale, match="Dashboard 'd0' changed in"):
        [event async for event in slow.apply_plan(plan.name, plan.digest)]


async def test_the_deletion_of_a_label_needs_the_listing(slow: Cluster) -> None:
    await slow.apply(PACKAGE, stack="s")
    LISTED.clear()
    await slow.plan(destroy=True, stack="s")
    assert LISTED.count("Dashboard") == 1
