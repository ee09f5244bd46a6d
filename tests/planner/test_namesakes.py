"""Objects that are created beside resources of their kind and name (docs/operations.md, "Duplicates")."""

from dataclasses import replace

import pytest

from planner_svc.matching.desired import Desired
from planner_svc.matching.match import ResourceHolder, match
from planner_svc.sharing.namesakes import kinds_to_search, namesakes_of, warnings_about
from planner_svc.sharing.ownership import ResourceHolders
from services.core.model import Key, Package, Resource, StackRecord, Target
from services.drivers.embedded.kinds import EMBEDDED
from services.kinds.format.canonical import spec_of
from tests.planner.world import World, an_object

NO_STACK = StackRecord("", Target(), "", 0)
DASHBOARD, TASK = an_object("Dashboard", "d", name="same"), an_object("Task", "t", name="same")
TASKS = [Resource("Task", number * 16, TASK.spec) for number in "123"]


@pytest.mark.parametrize("kind", ["Dashboard", "NotificationRule", "Task", "Telegraf"])
def test_a_resource_of_the_name_is_a_warning_where_names_may_repeat(kind: str) -> None:
    world = World()
    world.add(kind, "same")
    world.add(kind, "other")
    endpoint = an_object("NotificationEndpointHTTP", "e")
    fields = {"endpointName": "e"} if kind == "NotificationRule" else {}
    plan = world.plan(endpoint, an_object(kind, "x", name="same", **fields))
    [warning] = plan.remarks.warnings
    assert warning.startswith(f"{kind} 'x' is created beside another one named 'same', without a stack")
    assert plan.duplicate_count == 1


def test_a_unique_name_has_no_second_resource() -> None:
    world = World()
    world.add("Bucket", "same")
    assert world.plan(an_object("Bucket", "b", name="same")).duplicate_count == 0


def test_a_resource_of_another_kind_or_name_is_none() -> None:
    world = World()
    world.add("Dashboard", "same")
    world.add("Task", "Same")
    assert world.plan(TASK).remarks.warnings == ()


def test_resources_of_the_stack_itself_are_none() -> None:
    """A second object of the name, and one whose resource is to be deleted."""
    world = World()
    world.apply(TASK, an_object("Task", "u", name="same"))
    assert world.plan(TASK, an_object("Task", "v", name="same"), an_object("Task", "w", name="same")).steps
    assert world.last.plan.remarks.warnings == ()
    assert world.plan(TASK, an_object("Task", "u", name="same")).no_change


def test_an_object_that_exists_and_one_that_is_skipped_have_none() -> None:
    world = World()
    world.apply(TASK)
    world.add("Task", "same")
    world.add("Dashboard", "same")
    assert world.plan(TASK, DASHBOARD, skip=[DASHBOARD.key]).remarks.warnings == ()


def test_a_resource_that_is_created_again_has_one() -> None:
    world = World()
    world.apply(TASK)
    world.delete(world.entry("Task", "t").resource_id)
    world.add("Task", "same")
    assert world.plan(TASK).duplicate_count == 1


def test_a_plan_without_a_stack_says_that_a_stack_would_match_them() -> None:
    world = World(record=NO_STACK)
    world.add("Dashboard", "same")
    plan = world.plan(DASHBOARD)
    assert plan.remarks.warnings == (
        "Dashboard 'd' is created beside another one named 'same', without a stack; only a stack would match the two",
    )


@pytest.mark.parametrize(
    ("owners", "described"),
    [
        ([""], "another one named 'same', without a stack"),
        (["fleet"], "another one named 'same', of stack 'fleet'"),
        (["fleet", "fleet"], "2 others named 'same', of stack 'fleet'"),
        (["fleet", "", "api"], "3 others named 'same', without a stack, of stack 'api', of stack 'fleet'"),
    ],
)
def test_the_warning_names_the_stacks_that_own_them(owners: list[str], described: str) -> None:
    found = TASKS[: len(owners)]
    holders = {
        (each.kind, each.id): ResourceHolders(ResourceHolder(f"id of {name}", name))
        for each, name in zip(found, owners, strict=True)
        if name
    }
    warning = f"Task 't' is created beside {described}: each of them runs"
    assert warnings_about({TASK.key: found}, holders, World().record) == [warning]


def test_a_rule_notifies_and_a_dashboard_does_nothing_by_itself() -> None:
    rule = Resource("NotificationRule", "1", spec_of({"name": "same"}))
    found = {Key("NotificationRule", "r"): [rule], DASHBOARD.key: [Resource("Dashboard", "1", DASHBOARD.spec)]}
    assert [warning.partition("without a stack")[2] for warning in warnings_about(found, {}, World().record)] == [
        ": each of them notifies",
        "",
    ]


def test_only_kinds_of_which_something_is_created_are_searched() -> None:
    world = World()
    world.apply(TASK)
    desired = Desired(Package((TASK, DASHBOARD, an_object("Bucket", "b"))))
    matching = match(desired, world.record, world.live.values(), EMBEDDED)
    assert kinds_to_search(matching, EMBEDDED) == {"Dashboard"}
    stranger = replace(world.record, resources=())
    assert [*namesakes_of(match(desired, stranger, world.live.values(), EMBEDDED), stranger, EMBEDDED)] == [TASK.key]
