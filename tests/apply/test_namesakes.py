"""A package that is applied a second time, to another stack, through real servers."""

import pytest
from pkger.model.v1 import plan_pb2

from services.core.model import Verb
from tests.apply.packages import a_rule, an_endpoint, an_object, text
from tests.cluster import Calls, Cluster

HOOK = an_endpoint("HTTP", "hook", "Hook")
TASK = an_object("Task", "downsample", "Downsample", every="1h", query="buckets()")
PACKAGE = text(an_object("Bucket", "raw", "raw"), TASK, HOOK, a_rule("page", "hook", "Page"))
SHARED = [
    "NotificationRule 'page' is created beside another one named 'Page', of stack 'fleet': each of them notifies",
    "Task 'downsample' is created beside another one named 'Downsample', of stack 'fleet': each of them runs",
]


async def test_a_second_stack_is_told_what_runs_twice_and_who_owns_it(services: Cluster, calls: Calls) -> None:
    await services.apply(PACKAGE, stack="fleet")
    calls.methods.clear()
    plan = await services.plan(PACKAGE, stack="fleeet")
    assert (plan.warnings, plan.header.duplicate_count) == (SHARED, 2)
    # One call finds the owners of shared resources and of these.
    assert (calls.count("ListResources"), calls.count("FindOwners")) == (1, 1)
    assert (await services.plan(PACKAGE, stack="fleet")).header.duplicate_count == 0


async def test_a_plan_without_a_stack_names_the_owner_too(services: Cluster) -> None:
    await services.apply(PACKAGE, stack="fleet")
    plan = await services.plan(PACKAGE)
    assert plan.warnings == [f"{warning}; only a stack would match the two" for warning in SHARED]


async def test_resources_of_a_lost_record_are_told_as_such(services: Cluster) -> None:
    package = text(
        an_object("Dashboard", "dashboard", "Same"), an_object("Telegraf", "telegraf", "Same", config="[agent]")
    )
    await services.apply(package)
    plan = await services.plan(package, stack="new")
    assert plan.warnings == [
        f"{kind} '{kind.lower()}' is created beside another one named 'Same', without a stack"
        for kind in ("Dashboard", "Telegraf")
    ]


async def test_a_package_whose_names_are_free_has_no_warning(services: Cluster, calls: Calls) -> None:
    calls.methods.clear()
    plan = await services.plan(text(TASK, an_object("Dashboard", "d", "Hosts")), stack="s")
    assert (plan.warnings, plan.header.duplicate_count) == ([], 0)
    assert (calls.count("ListResources"), calls.count("FindOwners")) == (1, 0)


@pytest.mark.parametrize("stack", ["", "other"])
async def test_a_stored_plan_keeps_the_number(services: Cluster, stack: str) -> None:
    await services.apply(PACKAGE, stack="fleet")
    stored = await services.plan(PACKAGE, stack=stack, store=True)
    again = await services.stored_plan(stored.name, [plan_pb2.PLAN_VIEW_STEPS])
    assert again.header.duplicate_count == 2
    assert sum(step.verb is Verb.CREATE for step in again.steps) == 2
