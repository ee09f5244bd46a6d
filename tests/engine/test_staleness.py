"""A stored plan against a platform that changed since (docs/reference/engine.md, "Plans")."""

from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from services.core.errors import DependencyCycle, KindUnsupported, NameTaken
from services.core.model import Key, Object, Plan, Reference, Resource, StackRecord, Target, Undo
from services.engine.effects import effect_of
from services.engine.ids import ResourceIds
from services.engine.stale_plan import SHOWN, adopted, kinds_to_read, owned_parts, problem_of, stale_parts
from services.kinds.format.canonical import spec_of
from tests.planner.test_laws import PLATFORM, a_world, packages
from tests.planner.world import World, an_object, step_lines


def stale(plan: Plan, world: World) -> list[str]:
    """The stale parts, from the kinds that the applier reads."""
    kinds = kinds_to_read(plan, world.platform)
    return stale_parts(plan, [each for each in world.live.values() if each.kind in kinds], world.platform)


def held(world: World, kind: str, name: str) -> Resource:
    return next(each for each in world.live.values() if (each.kind, each.spec.display_name) == (kind, name))


def edit(world: World, kind: str, name: str, /, **fields: object) -> World:
    resource = held(world, kind, name)
    world.write(resource._replace(spec=spec_of({**resource.spec.value, **fields})))
    return world


def label(world: World, kind: str, name: str, labels: Iterable[str]) -> World:
    label_ids = tuple(sorted(held(world, "Label", each).id for each in labels))
    world.write(held(world, kind, name)._replace(label_ids=label_ids))
    return world


def delete(world: World, kind: str, name: str) -> World:
    world.delete(held(world, kind, name).id)
    return world


def to(world: World, name: str) -> Reference:
    endpoint = held(world, "NotificationEndpointSlack", name)
    return Reference("/endpointName", endpoint.kind, endpoint.id)


def refer(world: World, name: str, endpoint: str | None) -> World:
    references = (to(world, endpoint),) if endpoint else ()
    world.write(held(world, "NotificationRule", name)._replace(references=references))
    return world


BEFORE = (
    an_object("Label", "red"),
    an_object("Label", "blue"),
    an_object("Bucket", "raw", ["red"]),
    an_object("Bucket", "old"),
    an_object("NotificationEndpointSlack", "chat"),
    an_object("NotificationEndpointSlack", "talk"),
    an_object("NotificationRule", "rule", endpointName="chat"),
)
AFTER = (
    an_object("Label", "red", color="new"),
    an_object("Label", "blue"),
    an_object("Bucket", "raw", ["blue"]),
    an_object("Bucket", "fresh"),
    an_object("NotificationEndpointSlack", "chat"),
    an_object("NotificationEndpointHTTP", "hook"),
    an_object("NotificationRule", "rule", endpointName="hook"),
    an_object("NotificationRule", "second", endpointName="chat"),
)
"""After BEFORE: an update, a label moved, a bucket and an endpoint replaced by others, a rule rewired, a rule more."""

CHANGES: dict[str, tuple[Callable[[World], object], list[str]]] = {
    "nothing": (lambda world: None, []),
    "an updated resource is edited": (
        lambda world: edit(world, "Label", "red", color="theirs", description="x"),
        ["Label 'red' changed in color, description"],
    ),
    "an updated resource is gone": (
        lambda world: delete(world, "Label", "red"),
        ["Label 'red' is gone"],
    ),
    "a deleted resource is edited": (
        lambda world: edit(world, "Bucket", "old", description="mine"),
        ["Bucket 'old' changed in description"],
    ),
    "a deleted resource is gone": (lambda world: delete(world, "Bucket", "old"), ["Bucket 'old' is gone"]),
    "a deleted resource got a label": (
        lambda world: label(world, "Bucket", "old", ["blue"]),
        ["Bucket 'old' got Label resource {blue} attached"],
    ),
    "a deleted resource is referred to": (
        lambda world: world.add("NotificationRule", "theirs", [to(world, "talk")], endpointName="talk"),
        ["NotificationEndpointSlack 'talk' is used by NotificationRule resource {theirs}"],
    ),
    "a label is attached already": (
        lambda world: label(world, "Bucket", "raw", ["red", "blue"]),
        ["Bucket 'raw' got Label 'blue' attached"],
    ),
    "a label is detached already": (
        lambda world: label(world, "Bucket", "raw", []),
        ["Bucket 'raw' lost Label 'red'"],
    ),
    "a label to attach is gone": (lambda world: delete(world, "Label", "blue"), ["Label 'blue' is gone"]),
    "a name is taken": (
        lambda world: world.add("Bucket", "fresh"),
        ["Bucket 'fresh' is to be named 'fresh', but Bucket resource {fresh} has that name"],
    ),
    "a name is taken by another kind": (
        lambda world: world.add("NotificationEndpointPagerDuty", "hook"),
        [
            "NotificationEndpointHTTP 'hook' is to be named 'hook', but NotificationEndpointPagerDuty resource {hook}"
            " has that name"
        ],
    ),
    "a rule refers to something else": (
        lambda world: refer(world, "rule", "talk"),
        ["NotificationRule 'rule' changed in endpointName"],
    ),
    "the endpoint of a new rule is gone": (
        lambda world: delete(world, "NotificationEndpointSlack", "chat"),
        ["NotificationRule 'rule' changed in endpointName", "NotificationEndpointSlack 'chat' is gone"],
    ),
    "something else changed": (
        lambda world: edit(world, "Label", "blue", color="theirs").add("Bucket", "theirs"),
        [],
    ),
}


@pytest.mark.parametrize(("change", "expected"), CHANGES.values(), ids=CHANGES)
def test_a_plan_says_what_changed_since_it_was_made(change: Callable[[World], object], expected: list[str]) -> None:
    world = World()
    world.apply(*BEFORE)
    plan = world.plan(*AFTER)
    change(world)
    ids = {each.spec.display_name: each.id for each in world.live.values()}
    assert stale(plan, world) == [text.format(**ids) for text in expected]


def test_a_resource_keeps_a_name_that_another_one_has() -> None:
    world = World()
    world.apply(an_object("Variable", "one", name="abc"))
    elder = Resource("Variable", "f" * 16, an_object("Variable", "x", name="ABC").spec)
    world.live[elder.id] = elder
    kept, other = an_object("Variable", "one", name="abc", description="new"), an_object("Variable", "one", name="free")
    assert stale(world.plan(kept), world) == []
    plan = world.plan(other)
    world.live[elder.id] = elder._replace(spec=an_object("Variable", "x", name="FREE").spec)
    problem = f"Variable 'one' is to be named 'free', but Variable resource {elder.id} has that name"
    assert stale(plan, world) == [problem]


def test_of_many_stale_resources_ten_are_named() -> None:
    world = World()
    names = [f"l{number:02}" for number in range(13)]
    world.apply(*(an_object("Label", name) for name in names))
    plan = world.plan(*(an_object("Label", name, color="new") for name in names))
    for name in names:
        edit(world, "Label", name, color="theirs")
    parts = stale(plan, world)
    assert len(parts) == 13
    assert problem_of(parts) == "; ".join(f"Label {name!r} changed in color" for name in names[:SHOWN]) + "; and 3 more"


def test_a_plan_of_kinds_that_are_gone_from_the_platform_is_refused() -> None:
    plan = World().plan(an_object("Task", "roll"))
    less = replace(PLATFORM, kinds={kind: traits for kind, traits in PLATFORM.kinds.items() if kind != "Task"})
    with pytest.raises(KindUnsupported):
        kinds_to_read(plan, less)


def test_only_the_kinds_that_matter_are_read() -> None:
    plan = World().plan(an_object("Label", "red"), an_object("Bucket", "raw", ["red"]))
    assert kinds_to_read(plan, PLATFORM) == ["Bucket", "Label"]


def taken(world: World, plan: Plan) -> list[str]:
    """The names of the objects whose resources *plan* takes, sorted."""
    found = adopted(plan, world.record)
    assert all(world.live[resource_id].kind == kind for kind, resource_id in found)
    return sorted(key.name for key in found.values())


def test_a_plan_adopts_unowned_resources_whether_it_changes_them_or_not() -> None:
    world = World()
    world.apply(an_object("Label", "mine"), an_object("Bucket", "kept"), an_object("Bucket", "left"))
    world.add("Bucket", "equal")
    world.add("Bucket", "other", description="theirs")
    plan = world.plan(
        an_object("Label", "mine", color="new"),
        an_object("Bucket", "kept", ["mine"]),
        an_object("Bucket", "equal"),
        an_object("Bucket", "other"),
        an_object("Bucket", "fresh"),
    )
    assert taken(world, plan) == ["equal", "other"]


def test_a_plan_takes_the_unowned_resources_that_it_replaces() -> None:
    """It is deleted under its old id, which is in no record."""
    world = World()
    world.add("Bucket", "theirs", schemaType="explicit")
    plan = world.plan(an_object("Bucket", "theirs", schemaType="implicit"), allow_replace=True)
    assert step_lines(plan) == ["0 delete Bucket theirs", "1 create Bucket theirs"]
    assert taken(world, plan) == ["theirs"]


def test_a_plan_adopts_the_resource_that_has_the_name_of_one_that_is_gone() -> None:
    world = World()
    world.apply(an_object("Bucket", "raw"))
    delete(world, "Bucket", "raw")
    another = world.add("Bucket", "raw")
    plan = world.plan(an_object("Bucket", "raw"))
    assert adopted(plan, world.record) == {("Bucket", another.id): Key("Bucket", "raw")}


def test_a_plan_without_a_stack_takes_the_resources_that_it_writes_and_no_converged_ones() -> None:
    world = World(record=StackRecord("", Target(), "", 0))
    for name in ("equal", "other", "labelled"):
        world.add("Bucket", name, description="theirs" if name == "other" else "")
    world.add("Label", "red")
    plan = world.plan(
        an_object("Label", "red"),
        an_object("Bucket", "equal"),
        an_object("Bucket", "other"),
        an_object("Bucket", "labelled", ["red"]),
        an_object("Bucket", "fresh"),
        secret_keys=["k"],
    )
    assert (plan.record.entries, plan.record.removed) == ((), ())
    assert taken(world, plan) == ["labelled", "other"]


def test_resources_that_another_stack_owns_since_are_reported_sorted() -> None:
    names = {
        ("Bucket", "2"): Key("Bucket", "b"),
        ("Bucket", "1"): Key("Bucket", "a"),
        ("Label", "3"): Key("Label", "l"),
    }
    assert owned_parts(names, {("Bucket", "2"): "two", ("Bucket", "1"): "one"}) == [
        "Bucket 'a' is owned by stack 'one' now",
        "Bucket 'b' is owned by stack 'two' now",
    ]


@given(packages(), packages())
def test_a_plan_for_an_untouched_platform_is_not_stale(before: tuple[Object, ...], wanted: tuple[Object, ...]) -> None:
    world = a_world()
    world.apply(*before)
    assert stale(world.plan(*wanted), world) == []


def test_a_rule_that_moves_between_replaced_endpoints_is_compared_after_the_steps_before() -> None:
    """It is updated twice; the second time it refers to a resource that the plan creates."""

    def endpoint(kind: str, name: str, display_name: str, **fields: Any) -> Object:
        return an_object(kind, name, name=display_name, description="", status="active", **fields)

    def rule(endpoint_name: str) -> Object:
        return an_object("NotificationRule", "r", endpointName=endpoint_name)

    world, duty, key = a_world(), "NotificationEndpointPagerDuty", {"secretRef": {"key": "k"}}
    world.apply(
        endpoint(duty, "e", "one", url="https://example.com", routingKey=key),
        endpoint(duty, "f", "two", url="https://example.com", routingKey=key),
        rule("f"),
    )
    plan = world.plan(
        endpoint("NotificationEndpointSlack", "e", "one", url="https://example.com", token=""),
        endpoint(duty, "f", "other", url="https://example.org", routingKey=key),
        rule("e"),
    )

    assert [str(step.key) for step in plan.steps].count("NotificationRule 'r'") == 2
    assert stale(plan, world) == []


@st.composite
def worlds(draw: st.DrawFn) -> tuple[World, tuple[Object, ...], Plan]:
    """A world in which one thing changed since a plan was made, the wanted package, and the plan."""
    world = a_world()
    world.apply(*draw(packages()))
    wanted = draw(packages())
    plan = world.plan(*wanted)
    change_something(draw, world, wanted)
    return world, wanted, plan


def change_something(draw: st.DrawFn, world: World, wanted: tuple[Object, ...]) -> None:
    live = sorted(world.live.values(), key=lambda resource: resource.id)
    labels = [resource.id for resource in live if resource.kind == "Label"]
    endpoints = [resource for resource in live if resource.kind.startswith("NotificationEndpoint")]
    rules = [resource for resource in live if resource.kind == "NotificationRule"]
    ways = ["add"] if wanted else []
    ways += ["delete", "edit", "rename"] if live else []
    ways += ["label"] if labels and live[len(labels) :] else []
    ways += ["refer"] if rules else []
    assume(ways)
    try:
        match draw(st.sampled_from(ways)):
            case "add":
                item = draw(st.sampled_from(wanted))
                kind = draw(st.sampled_from([item.key.kind, "NotificationEndpointPagerDuty"]))
                world.add(kind, "theirs", name=item.spec.display_name)
            case "delete":
                world.delete(draw(st.sampled_from(live)).id)
            case "edit":
                resource = draw(st.sampled_from(live))
                world.write(resource._replace(spec=spec_of({**resource.spec.value, "description": "theirs"})))
            case "rename":
                resource = draw(st.sampled_from(live))
                name = draw(st.sampled_from(["theirs", *(item.spec.display_name for item in wanted)]))
                world.write(resource._replace(spec=spec_of({**resource.spec.value, "name": name})))
            case "label":
                resource = draw(st.sampled_from([each for each in live if each.kind != "Label"] or live))
                toggled = {*resource.label_ids} ^ {draw(st.sampled_from(labels))}
                world.write(resource._replace(label_ids=tuple(sorted(toggled))))
            case _:
                rule = draw(st.sampled_from(rules))
                endpoint = draw(st.none() | st.sampled_from(endpoints)) if endpoints else None
                held = (Reference("/endpointName", endpoint.kind, endpoint.id),) if endpoint else ()
                world.write(rule._replace(references=held))
    except AssertionError:
        # The platform rejects it.
        assume(False)


@given(worlds())
def test_a_plan_that_is_not_stale_runs_and_the_next_one_has_only_the_remaining_steps(
    given_: tuple[World, tuple[Object, ...], Plan],
) -> None:
    """The content equals that of a plan made after the change, and no step is done twice."""
    world, wanted, plan = given_
    if stale(plan, world):
        return
    fresh = deepcopy(world)
    try:
        fresh.apply(*wanted)
    except (NameTaken, DependencyCycle):
        assume(False)
    world.run(plan)
    rest = world.apply(*wanted)
    assert world.content() == fresh.content()
    assert {word.partition(" ")[2] for word in step_lines(rest)}.isdisjoint(
        {word.partition(" ")[2] for word in step_lines(plan) if "create" not in word}
    )


@given(worlds(), st.integers(0, 40))
def test_done_steps_of_a_plan_that_is_not_stale_can_be_undone(
    given_: tuple[World, tuple[Object, ...], Plan], count: int
) -> None:
    world, _, plan = given_
    if stale(plan, world):
        return
    content, ids = world.content(), ResourceIds(plan)
    sealed = next((step.number for step in plan.steps if step.undo is Undo.NONE), len(plan.steps))
    done = plan.steps[: min(count, sealed)]
    for step in done:
        world.run_step(step, ids)
    for step in reversed(done):
        world.run_step(effect_of(step).inverse(), ids)
    assert world.content() == content
