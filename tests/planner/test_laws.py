"""Laws that hold for all plans."""

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from services.core.diff import changes
from services.core.model import Object, Reference, Undo, Verb
from services.drivers.embedded.kinds import EMBEDDED
from services.engine.effects import effect_of
from services.engine.ids import ResourceIds
from services.kinds.comparing import loss_of
from services.kinds.registry import family_of
from tests.planner.world import World, an_object, step_lines

KINDS = ("Bucket", "CheckDeadman", "CheckThreshold", "Dashboard", "Task", "Telegraf", "Variable")
RETENTIONS: tuple[list[dict[str, Any]], ...] = (
    [],
    [{"type": "expire", "everySeconds": 3600}],
    [{"type": "expire", "everySeconds": 7200}],
)
ENDPOINTS = ("NotificationEndpointPagerDuty", "NotificationEndpointSlack")

PLATFORM = replace(
    EMBEDDED,
    kinds={**EMBEDDED.kinds, **{kind: replace(EMBEDDED.kinds[kind], immutable_paths=("/url",)) for kind in ENDPOINTS}},
)
"""A platform on which endpoints are replaced, too."""


def _in_family(named: tuple[str, str]) -> tuple[str, str]:
    return family_of(named[0]), named[1]


def a_world() -> World:
    return World(platform=PLATFORM)


def with_unowned_resources(world: World) -> set[tuple[str, str]]:
    """
    Attach an unowned label to all resources that carry labels, and add an unowned rule for each endpoint.

    Returns:
        Family and name of the objects whose resource has the label.
    """
    theirs = world.add("Label", "theirs")
    named = named_resources(world)
    labelled = set()
    for resource in list(world.live.values()):
        if resource.kind in ENDPOINTS:
            reference = Reference("/endpointName", resource.kind, resource.id)
            world.add("NotificationRule", f"of {named[resource.id][1]}", references=[reference])
        if PLATFORM.kinds[resource.kind].labelled:
            world._link(resource.id, {*resource.label_ids, theirs.id})
            labelled.add(named[resource.id])
    return labelled


def named_resources(world: World) -> dict[str, tuple[str, str]]:
    """Family and name of the object of each recorded resource, by id."""
    return {entry.resource_id: _in_family(entry.key) for entry in world.record.resources}


@st.composite
def packages(draw: st.DrawFn) -> tuple[Object, ...]:
    """
    Up to four labels, six labelled objects that refer to nothing, two endpoints and rules that refer to them.

    A display name is family, meta name and at times more: names never clash, and an object that changes its kind may
    keep its name.
    """
    more = st.sampled_from(["", " new"])
    labels = draw(st.lists(st.sampled_from("abcd"), unique=True))
    found = [an_object("Label", name, color=draw(st.sampled_from(["", "red"]))) for name in labels]
    for kind, name in draw(
        st.lists(st.tuples(st.sampled_from(KINDS), st.sampled_from("mnop")), unique_by=_in_family, max_size=6)
    ):
        attached = draw(st.lists(st.sampled_from(labels), unique=True)) if labels else []
        fields: dict[str, Any] = {"description": draw(st.sampled_from(["", "one", "two"]))}
        if kind == "Bucket":
            fields["schemaType"] = draw(st.sampled_from(["", "explicit"]))
            fields["retentionRules"] = draw(st.sampled_from(RETENTIONS))
        found.append(an_object(kind, name, attached, name=f"{family_of(kind)} {name}{draw(more)}", **fields))
    endpoints = draw(st.dictionaries(st.sampled_from("ef"), st.sampled_from(ENDPOINTS)))
    for name, kind in endpoints.items():
        url = draw(st.sampled_from(["https://example.com", "https://example.org"]))
        attached = draw(st.lists(st.sampled_from(labels), unique=True)) if labels else []
        found.append(an_object(kind, name, attached, name=f"endpoint {name}{draw(more)}", url=url))
    for name in draw(st.sets(st.sampled_from("rs"))) if endpoints else ():
        fields = {"endpointName": draw(st.sampled_from(sorted(endpoints))), "description": draw(st.sampled_from("ab"))}
        attached = draw(st.lists(st.sampled_from(labels), unique=True)) if labels else []
        found.append(an_object("NotificationRule", name, attached, **fields))
    return tuple(draw(st.permutations(found)))


@given(packages(), packages())
def test_after_a_plan_has_run_there_is_nothing_to_do(before: tuple[Object, ...], wanted: tuple[Object, ...]) -> None:
    world = a_world()
    world.apply(*before)
    world.apply(*wanted)
    again = world.plan(*wanted)
    assert step_lines(again) == []
    assert again.no_change


@given(packages(), packages())
def test_after_a_plan_has_run_the_platform_equals_the_package(
    before: tuple[Object, ...], wanted: tuple[Object, ...]
) -> None:
    world = a_world()
    world.apply(*before)
    world.apply(*wanted)
    names = {entry.resource_id: entry.key for entry in world.record.resources}
    assert {
        names[resource.id]: (resource.spec, tuple(sorted(names[label] for label in resource.label_ids)))
        for resource in world.live.values()
    } == {item.key: (item.spec, item.associations) for item in wanted}
    assert {
        names[resource.id].name: [names[each.id].name for each in resource.references]
        for resource in world.live.values()
        if resource.kind == "NotificationRule"
    } == {item.key.name: [item.spec.value["endpointName"]] for item in wanted if item.key.kind == "NotificationRule"}


@given(packages(), packages(), st.integers(0, 40))
def test_the_steps_of_a_plan_can_be_undone_until_an_irreversible_step(
    before: tuple[Object, ...], wanted: tuple[Object, ...], count: int
) -> None:
    """A resource that is deleted and created again gets another id, which labels and references must follow."""
    world = a_world()
    world.apply(*before)
    with_unowned_resources(world)
    plan, content = world.plan(*wanted), world.content()
    ids = ResourceIds(plan)
    sealed = next((step.number for step in plan.steps if step.undo is Undo.NONE), len(plan.steps))
    done = plan.steps[: min(count, sealed)]
    for step in done:
        world.run_step(step, ids)
    for step in reversed(done):
        world.run_step(effect_of(step).inverse(), ids)
    assert world.content() == content


@given(packages(), packages())
def test_labels_and_references_from_outside_the_stack_move_to_the_replacement(
    before: tuple[Object, ...], wanted: tuple[Object, ...]
) -> None:
    world = a_world()
    world.apply(*before)
    labelled = with_unowned_resources(world)
    world.apply(*wanted)
    left = labelled & {_in_family(item.key) for item in wanted}
    theirs = next(resource.id for resource in world.live.values() if resource.spec.display_name == "theirs")
    named = named_resources(world)
    assert {named[each.id] for each in world.live.values() if theirs in each.label_ids} == left
    rules = {each.spec.display_name: each for each in world.live.values() if each.kind == "NotificationRule"}
    for family, name in left:
        if family == family_of(ENDPOINTS[0]):
            [reference] = rules[f"of {name}"].references
            assert named[reference.id] == (family, name)
    assert step_lines(world.plan(*wanted)) == []


@given(packages(), packages())
def test_only_replacements_and_updates_that_lose_data_run_after_an_irreversible_step(
    before: tuple[Object, ...], wanted: tuple[Object, ...]
) -> None:
    world = a_world()
    world.apply(*before)
    plan = world.plan(*wanted)
    sealed = [step.stage for step in plan.steps if step.undo is Undo.NONE]
    late = {plan.stages[step.stage] for step in plan.steps if sealed and step.stage > min(sealed)}
    assert late <= {
        "irreversible removals",
        "replacements",
        "references to replacements",
        "associations of replacements",
        "updates that lose data",
    }


@given(packages(), packages())
def test_an_update_that_loses_data_changes_nothing_else(before: tuple[Object, ...], wanted: tuple[Object, ...]) -> None:
    world = a_world()
    world.apply(*before)
    plan = world.plan(*wanted)
    for step in plan.steps:
        if step.verb is Verb.UPDATE and step.old_spec and step.new_spec:
            loss = loss_of(step.key.kind, step.old_spec, step.new_spec)
            assert (step.loss, step.undo) == (loss, Undo.NONE if loss else Undo.EXACT)
            changed = {change.path.split("/")[1] for change in changes(step.old_spec, step.new_spec)}
            assert not loss or changed == {"retentionRules"}


@given(packages(), packages())
def test_a_replacement_with_another_name_is_created_before_the_old_resource_is_deleted(
    before: tuple[Object, ...], wanted: tuple[Object, ...]
) -> None:
    """The names of these packages are free, so at any time one of the two resources exists."""
    world = a_world()
    world.apply(*before)
    live = {_in_family(item.key): item.spec.display_name for item in before}
    plan = world.plan(*wanted)
    created = {_in_family(step.key): step for step in plan.steps if step.verb is Verb.CREATE}
    deleted = {_in_family(step.key): step for step in plan.steps if step.verb is Verb.DELETE}
    for each in created.keys() & deleted.keys():
        spec = created[each].new_spec
        is_renamed = spec is not None and spec.display_name != live[each]
        assert (created[each].number < deleted[each].number) is is_renamed


@given(packages(), packages())
def test_equal_inputs_give_equal_plans_whatever_the_order_of_objects(
    before: tuple[Object, ...], wanted: tuple[Object, ...]
) -> None:
    world = a_world()
    world.apply(*before)
    plan, other = world.plan(*wanted), world.plan(*reversed(wanted))
    assert plan.digest == other.digest
    assert plan.steps == other.steps


@given(packages())
def test_removing_everything_leaves_nothing(before: tuple[Object, ...]) -> None:
    world = a_world()
    world.apply(*before)
    world.apply()
    assert world.live == {}
    assert world.record.resources == ()
