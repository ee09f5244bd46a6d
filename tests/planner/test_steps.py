"""Steps, their stages and their order (docs/reference/engine.md, "Steps and stages")."""

from dataclasses import replace

import pytest

from services.core.errors import DependencyCycle, NameTaken
from services.core.model import DiffStatus, Key, Undo
from services.drivers.embedded.kinds import EMBEDDED
from tests.planner.world import World, an_object, step_lines

S1 = (
    an_object("Label", "lucid_einstein", name="label_1"),
    an_object("Bucket", "pristine_noir", ["lucid_einstein"], name="bucket_1"),
    an_object("Dashboard", "charmed_saratoba", ["lucid_einstein"], name="dash_1"),
)


def test_labels_come_first_then_primary_kinds_then_associations() -> None:
    world = World()
    plan = world.plan(*S1)
    assert step_lines(plan) == [
        "0 create Label lucid_einstein",
        "1 create Bucket pristine_noir",
        "1 create Dashboard charmed_saratoba",
        "2 attach Bucket pristine_noir lucid_einstein",
        "2 attach Dashboard charmed_saratoba lucid_einstein",
    ]
    assert plan.stages == ("labels", "buckets, dashboards", "associations")
    assert [diff.status for diff in world.last.diffs().resources] == [DiffStatus.NEW] * 3


def test_the_same_package_again_is_nothing_to_do() -> None:
    world = World()
    world.apply(*S1)
    plan = world.plan(*S1)
    assert plan.steps == ()
    assert plan.no_change
    assert [diff.status for diff in world.last.diffs().resources] == [DiffStatus.EXISTS] * 3
    assert [diff.status for diff in world.last.diffs().label_mappings] == [DiffStatus.EXISTS] * 2


def test_a_removed_label_is_detached_everywhere_before_it_is_deleted() -> None:
    world = World()
    world.apply(*S1)
    unowned = world.add("Task", "not of the package")
    label_id = world.entry("Label", "lucid_einstein").resource_id
    world._link(unowned.id, {label_id})
    plan = world.plan(
        an_object("Bucket", "pristine_noir", name="bucket_1"), an_object("Dashboard", "charmed_saratoba", name="dash_1")
    )
    assert step_lines(plan) == [
        "0 detach Bucket pristine_noir lucid_einstein",
        "0 detach Dashboard charmed_saratoba lucid_einstein",
        f"0 detach Task {unowned.id} lucid_einstein",
        "1 delete Label lucid_einstein",
    ]
    assert [diff.status for diff in world.last.diffs().label_mappings] == [DiffStatus.REMOVE] * 2


def test_removals_run_in_reverse_order_and_irreversible_ones_last() -> None:
    world = World()
    world.apply(*S1)
    plan = world.plan()
    assert step_lines(plan) == [
        "0 detach Bucket pristine_noir lucid_einstein",
        "0 detach Dashboard charmed_saratoba lucid_einstein",
        "1 delete Dashboard charmed_saratoba",
        "2 delete Label lucid_einstein",
        "3 delete Bucket pristine_noir",
    ]
    assert [step.undo for step in plan.steps[2:]] == [Undo.RECREATE, Undo.RECREATE, Undo.NONE]
    assert world.owned_after(plan) == ()


def test_an_uninstall_leaves_adopted_resources_and_detaches_its_labels() -> None:
    world = World()
    theirs = world.add("Bucket", "theirs")
    world.apply(an_object("Label", "l"), an_object("Bucket", "theirs", ["l"]), an_object("Task", "ours"))
    plan = world.plan(is_end=True)
    assert step_lines(plan) == [f"0 detach Bucket {theirs.id} l", "1 delete Task ours", "2 delete Label l"]
    assert plan.remarks.warnings == (
        f"Bucket 'theirs' was there before the stack, which adopted it: resource {theirs.id} stays",
    )
    assert world.owned_after(plan) == ()
    left = world.plan(an_object("Label", "l"))
    assert step_lines(left)[-1] == "2 delete Bucket theirs"


def test_a_label_attached_outside_the_stack_stays_until_its_resource_is_removed() -> None:
    world = World()
    world.apply(an_object("Task", "t"))
    theirs = world.add("Label", "theirs")
    world._link(world.entry("Task", "t").resource_id, {theirs.id})
    assert world.plan(an_object("Task", "t")).no_change
    assert step_lines(world.plan()) == [f"0 detach Task t {theirs.id}", "1 delete Task t"]


@pytest.mark.parametrize("gone", [Key("Bucket", "b"), Key("Label", "l")])
def test_a_label_that_the_stack_did_not_attach_stays_if_one_side_is_another_resource(gone: Key) -> None:
    world = World()
    world.apply(an_object("Label", "l"), an_object("Bucket", "b", ["l"]))
    world.delete(world.entry(*gone).resource_id)
    world.add(*gone)
    [bucket] = [each for each in world.live.values() if each.kind == "Bucket"]
    [label] = [each for each in world.live.values() if each.kind == "Label"]
    world.write(bucket._replace(label_ids=(label.id,)))
    assert step_lines(world.apply(an_object("Label", "l"), an_object("Bucket", "b"))) == []
    assert world.live[bucket.id].label_ids == (label.id,)


def test_a_label_detached_outside_the_stack_is_attached_again() -> None:
    world = World()
    world.apply(*S1)
    world._link(world.entry("Bucket", "pristine_noir").resource_id, set())
    assert step_lines(world.plan(*S1)) == ["0 attach Bucket pristine_noir lucid_einstein"]


def test_a_change_of_an_immutable_field_replaces_the_resource_and_attaches_its_labels_again() -> None:
    world = World()
    label, bucket, _ = S1
    world.apply(label, bucket)
    first = world.entry("Bucket", "pristine_noir").resource_id
    plan = world.apply(
        label, an_object("Bucket", "pristine_noir", ["lucid_einstein"], name="bucket_1", schemaType="explicit")
    )
    assert step_lines(plan) == [
        "0 detach Bucket pristine_noir lucid_einstein",
        "1 delete Bucket pristine_noir",
        "2 create Bucket pristine_noir",
        "3 attach Bucket pristine_noir lucid_einstein",
    ]
    assert plan.stages == ("associations", "irreversible removals", "replacements", "associations of replacements")
    assert [diff.status for diff in world.last.diffs().label_mappings] == [DiffStatus.NEW]
    assert plan.steps[1].reason == "schemaType cannot change: replaced, with its data"
    assert world.entry("Bucket", "pristine_noir").resource_id != first
    assert world.plan(
        label, an_object("Bucket", "pristine_noir", ["lucid_einstein"], name="bucket_1", schemaType="explicit")
    ).no_change


def test_a_replaced_resource_whose_label_is_removed_is_detached_first() -> None:
    world = World()
    world.apply(*S1[:2])
    plan = world.plan(an_object("Bucket", "pristine_noir", name="bucket_1", schemaType="explicit"))
    assert step_lines(plan) == [
        "0 detach Bucket pristine_noir lucid_einstein",
        "1 delete Label lucid_einstein",
        "2 delete Bucket pristine_noir",
        "3 create Bucket pristine_noir",
    ]


def test_a_replaced_label_is_detached_everywhere_and_attached_again_where_it_is_wanted() -> None:
    label = EMBEDDED.kinds["Label"]
    kinds = {**EMBEDDED.kinds, "Label": replace(label, immutable_paths=("/color",))}
    world = World(platform=replace(EMBEDDED, kinds=kinds))
    world.apply(*S1[:2])
    unowned = world.add("Task", "not of the package")
    world._link(unowned.id, {world.entry("Label", "lucid_einstein").resource_id})
    changed = an_object("Label", "lucid_einstein", name="label_1", color="red")
    plan = world.apply(changed, S1[1])
    assert step_lines(plan) == [
        "0 detach Bucket pristine_noir lucid_einstein",
        f"0 detach Task {unowned.id} lucid_einstein",
        "1 delete Label lucid_einstein",
        "2 create Label lucid_einstein",
        "3 attach Bucket pristine_noir lucid_einstein",
    ]
    assert world.plan(changed, S1[1]).no_change


def test_a_name_is_released_before_another_object_takes_it() -> None:
    world = World()
    world.apply(an_object("Bucket", "a", name="x"), an_object("Bucket", "b", name="y"))
    plan = world.apply(
        an_object("Bucket", "a", name="y"), an_object("Bucket", "b", name="z"), an_object("Bucket", "c", name="x")
    )
    assert step_lines(plan) == ["0 update Bucket b", "1 update Bucket a", "2 create Bucket c"]


def test_a_name_that_only_a_replacement_releases_is_refused() -> None:
    world = World()
    world.apply(an_object("Bucket", "a", name="x"), an_object("Bucket", "b", name="y"))
    replaced = an_object("Bucket", "a", name="z", schemaType="explicit")
    with pytest.raises(NameTaken, match=r"Bucket 'a' has it\. Bucket 'a' is replaced later in this plan"):
        world.plan(replaced, an_object("Bucket", "b", name="x"))
    world.apply(replaced, an_object("Bucket", "b", name="y"))
    assert step_lines(world.apply(replaced, an_object("Bucket", "b", name="x"))) == ["0 update Bucket b"]


def test_the_order_of_a_list_that_is_a_set_on_the_platform_is_no_difference() -> None:
    kinds = {**EMBEDDED.kinds, "Variable": replace(EMBEDDED.kinds["Variable"], set_paths=("/selected", "/not/there"))}
    world = World(platform=replace(EMBEDDED, kinds=kinds))
    world.apply(an_object("Variable", "v", selected=["a", "b"]))
    assert world.plan(an_object("Variable", "v", selected=["b", "a"])).no_change
    (step,) = world.plan(an_object("Variable", "v", selected=["c", "a"])).steps
    assert step.new_spec
    assert step.new_spec.value["selected"] == ["c", "a"]


def test_objects_that_exchange_their_names_are_a_cycle_that_is_named() -> None:
    world = World()
    world.apply(an_object("Bucket", "a", name="x"), an_object("Bucket", "b", name="y"))
    with pytest.raises(DependencyCycle, match="Bucket 'a' -> Bucket 'b' -> Bucket 'a'"):
        world.plan(an_object("Bucket", "a", name="y"), an_object("Bucket", "b", name="x"))


def test_a_diff_names_each_field_with_its_old_and_new_value() -> None:
    world = World()
    world.apply(an_object("Label", "a", color="red"))
    world.plan(an_object("Label", "a", name="b", color="blue"))
    (diff,) = world.last.diffs().resources
    assert [(change.path, change.old, change.new) for change in diff.changes] == [
        ("/color", '"red"', '"blue"'),
        ("/name", '"a"', '"b"'),
    ]


def test_the_digest_covers_the_effect_of_the_plan() -> None:
    one, other = World(), World()
    assert one.plan(*S1).digest == other.plan(*reversed(S1)).digest
    assert one.plan(*S1).digest != one.plan(*S1[:2]).digest
    before = one.plan(*S1).digest
    one.add("Label", "label_1")
    assert one.plan(*S1).digest != before


def test_an_adopted_resource_that_is_as_wanted_needs_a_record_and_no_step() -> None:
    world = World()
    world.add("Label", "a")
    plan = world.apply(an_object("Label", "a"))
    assert plan.steps == ()
    assert not plan.no_change
    assert world.entry("Label", "a").key == Key("Label", "a")
