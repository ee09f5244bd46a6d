"""What holds of all plans."""

from hypothesis import given
from hypothesis import strategies as st

from services.core.model import Object, Undo
from tests.planner.world import World, an_object, told

KINDS = ("Bucket", "Dashboard", "Task", "Variable")


@st.composite
def packages(draw: st.DrawFn) -> tuple[Object, ...]:
    """Up to four labels and six labelled objects; a display name is the meta name, so that names never clash."""
    labels = draw(st.lists(st.sampled_from("abcd"), unique=True))
    found = [an_object("Label", name, color=draw(st.sampled_from(["", "red"]))) for name in labels]
    for kind, name in draw(
        st.lists(st.tuples(st.sampled_from(KINDS), st.sampled_from("mnop")), unique=True, max_size=6)
    ):
        attached = draw(st.lists(st.sampled_from(labels), unique=True)) if labels else []
        fields = {"description": draw(st.sampled_from(["", "one", "two"]))}
        if kind == "Bucket":
            fields["schemaType"] = draw(st.sampled_from(["", "explicit"]))
        found.append(an_object(kind, name, attached, **fields))
    return tuple(draw(st.permutations(found)))


@given(packages(), packages())
def test_a_carried_out_plan_leaves_nothing_to_do(before: tuple[Object, ...], wanted: tuple[Object, ...]) -> None:
    world = World()
    world.apply(*before)
    world.apply(*wanted)
    again = world.plan(*wanted)
    assert told(again) == []
    assert again.no_change


@given(packages(), packages())
def test_a_carried_out_plan_makes_the_platform_what_the_package_says(
    before: tuple[Object, ...], wanted: tuple[Object, ...]
) -> None:
    world = World()
    world.apply(*before)
    world.apply(*wanted)
    names = {entry.remote_id: entry.key for entry in world.record.resources}
    assert {
        names[resource.id]: (resource.spec, tuple(sorted(names[label] for label in resource.label_ids)))
        for resource in world.live.values()
    } == {item.key: (item.spec, item.associations) for item in wanted}


@given(packages(), packages())
def test_nothing_reversible_runs_after_an_irreversible_step_but_what_replaces_its_resource(
    before: tuple[Object, ...], wanted: tuple[Object, ...]
) -> None:
    world = World()
    world.apply(*before)
    plan = world.plan(*wanted)
    sealed = [step.stage for step in plan.steps if step.undo is Undo.NONE]
    late = {plan.stages[step.stage] for step in plan.steps if sealed and step.stage > min(sealed)}
    assert late <= {"irreversible removals", "replacements", "associations of replacements"}


@given(packages(), packages())
def test_equal_inputs_give_equal_plans_whatever_the_order_of_objects(
    before: tuple[Object, ...], wanted: tuple[Object, ...]
) -> None:
    world = World()
    world.apply(*before)
    plan, turned = world.plan(*wanted), world.plan(*reversed(wanted))
    assert plan.digest == turned.digest
    assert plan.steps == turned.steps


@given(packages())
def test_removing_everything_leaves_nothing(before: tuple[Object, ...]) -> None:
    world = World()
    world.apply(*before)
    world.apply()
    assert world.live == {}
    assert world.record.resources == ()
