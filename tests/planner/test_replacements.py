"""
Resources are replaced if an immutable field or their kind differs from the package (docs/reference/engine.md,
"Matching").
"""

from dataclasses import replace

import pytest

from services.core.errors import NameTaken, ReplacementRefused
from services.core.model import LABEL, DiffStatus, Key, Object, Origin, Reference, StackRecord, Target, Undo, Verb
from tests.planner.world import World, an_object, step_lines

STACKLESS = StackRecord("", Target(), "", 0)

DEADMAN, THRESHOLD = Key("CheckDeadman", "c"), Key("CheckThreshold", "c")
HTTP, SLACK = "NotificationEndpointHTTP", "NotificationEndpointSlack"


def a_bucket(schema_type: str = "", **spec: str) -> Object:
    return an_object("Bucket", "b", name="readings", schemaType=schema_type, **spec)


def a_check(kind: str, *labels: str) -> Object:
    return an_object(kind, "c", labels, name="C")


def a_rule(name: str, endpoint: str) -> Object:
    return an_object("NotificationRule", name, endpointName=endpoint)


@pytest.mark.parametrize("record", [StackRecord("1" * 16, Target(), "s", 0), STACKLESS])
@pytest.mark.parametrize(("held", "wanted"), [("", "implicit"), ("implicit", "")])
def test_the_implicit_schema_type_is_that_of_a_bucket_without_one(record: StackRecord, held: str, wanted: str) -> None:
    world = World(record=record)
    world.apply(a_bucket(held))
    plan = world.apply(a_bucket(wanted))
    assert plan.steps == ()
    assert [(diff.status, diff.changes) for diff in world.last.diffs().resources] == [(DiffStatus.EXISTS, ())]
    [step] = world.plan(a_bucket(wanted, description="new")).steps
    assert (step.verb.value, step.reason) == ("update", "differs in description")


@pytest.mark.parametrize("record", [StackRecord("1" * 16, Target(), "s", 0), STACKLESS])
def test_an_unowned_resource_is_replaced_only_if_the_caller_allows_it(record: StackRecord) -> None:
    world = World(record=record)
    held = world.add("Bucket", "theirs", name="readings")
    with pytest.raises(ReplacementRefused) as caught:
        world.plan(a_bucket("explicit"))
    assert str(caught.value) == (
        "Bucket 'b' is on the platform already, no stack owns it, and it will be replaced and lose its data, as"
        " schemaType cannot change; set allow_replace to apply it anyway"
    )
    assert caught.value.metadata == {"objects": "Bucket/b", "count": "1"}
    plan = world.plan(a_bucket("explicit"), allow_replace=True)
    assert step_lines(plan) == ["0 delete Bucket b", "1 create Bucket b"]
    assert [(conflict.key, conflict.resource_id) for conflict in plan.remarks.conflicts] == [
        (Key("Bucket", "b"), held.id)
    ]
    assert plan.remarks.conflicts[0].message in str(caught.value)


def test_all_replacements_are_refused_at_once() -> None:
    world = World()
    buckets = [an_object("Bucket", f"b{number:02}", schemaType="explicit") for number in range(12)]
    for bucket in buckets:
        world.add("Bucket", bucket.spec.display_name)
    with pytest.raises(ReplacementRefused, match=r"'b09' .*; and 2 more; set allow_replace") as caught:
        world.plan(*buckets)
    assert caught.value.metadata["count"] == "12"


def test_an_adopted_resource_is_replaced_by_one_that_the_stack_created() -> None:
    world = World()
    world.add("Bucket", "theirs", name="readings")
    world.apply(a_bucket())
    assert world.entry("Bucket", "b").origin is Origin.ADOPTED
    plan = world.apply(a_bucket("explicit"))
    assert step_lines(plan) == ["0 delete Bucket b", "1 create Bucket b"]
    assert plan.remarks.conflicts == ()
    assert world.entry("Bucket", "b").origin is Origin.CREATED


def test_labels_attached_outside_the_stack_move_to_the_replacement() -> None:
    world = World()
    world.apply(an_object(LABEL, "ours"), an_object("Bucket", "b", ["ours"], name="readings"))
    theirs = world.add(LABEL, "theirs")
    held = world.entry("Bucket", "b").resource_id
    world._link(held, {theirs.id, world.entry(LABEL, "ours").resource_id})
    wanted = (an_object(LABEL, "ours"), an_object("Bucket", "b", name="readings", schemaType="explicit"))
    assert step_lines(world.apply(*wanted)) == [
        f"0 detach Bucket b {theirs.id}",
        "0 detach Bucket b ours",
        "1 delete Bucket b",
        "2 create Bucket b",
        f"3 attach Bucket b {theirs.id}",
    ]
    assert step_lines(world.plan(*wanted)) == []


@pytest.mark.parametrize(("old", "new"), [("CheckDeadman", "CheckThreshold"), ("CheckThreshold", "CheckDeadman")])
def test_an_object_that_changes_its_kind_gets_another_resource_in_one_plan(old: str, new: str) -> None:
    world = World()
    label = an_object(LABEL, "l")
    world.apply(label, a_check(old, "l"))
    first = world.entry(old, "c").resource_id
    plan = world.apply(label, a_check(new, "l"))
    assert step_lines(plan) == [
        f"0 detach {old} c l",
        f"1 delete {old} c",
        f"2 create {new} c",
        f"3 attach {new} c l",
    ]
    assert [(step.undo, step.reason) for step in plan.steps[1:3]] == [
        (Undo.RECREATE, "its kind cannot change: replaced"),
        (Undo.EXACT, "replaces the old resource"),
    ]
    [diff] = [diff for diff in world.last.diffs().resources if diff.key.name == "c"]
    assert (diff.key, diff.status, diff.resource_id, diff.old_kind) == (Key(new, "c"), DiffStatus.EXISTS, first, old)
    assert [(each.resource, each.label.name) for each in world.last.diffs().label_mappings] == [(Key(new, "c"), "l")]
    assert [entry.key for entry in world.record.resources] == [Key(new, "c"), Key(LABEL, "l")]
    assert step_lines(world.plan(label, a_check(new, "l"))) == []


def test_rules_follow_an_endpoint_that_changes_its_kind() -> None:
    world = World()
    world.apply(an_object(HTTP, "e"), a_rule("r", "e"))
    held = world.live[world.entry(HTTP, "e").resource_id]
    unowned = world.add("NotificationRule", "theirs", references=[Reference("/endpointName", HTTP, held.id)])
    wanted = (an_object(SLACK, "e"), a_rule("r", "e"))
    assert step_lines(world.apply(*wanted)) == [
        "0 update NotificationRule r",
        f"0 update NotificationRule {unowned.id}",
        f"1 delete {HTTP} e",
        f"2 create {SLACK} e",
        "3 update NotificationRule r",
        f"4 update NotificationRule {unowned.id}",
    ]
    now = world.entry(SLACK, "e").resource_id
    for rule in (world.entry("NotificationRule", "r").resource_id, unowned.id):
        assert world.live[rule].references == (Reference("/endpointName", SLACK, now),)
    assert step_lines(world.plan(*wanted)) == []


def test_a_skipped_rule_keeps_its_endpoint_when_that_is_replaced() -> None:
    world = World()
    world.apply(an_object(HTTP, "e"), a_rule("r", "e"))
    rule = world.entry("NotificationRule", "r").resource_id
    world.apply(an_object(SLACK, "e"), a_rule("r", "e"), skip=[Key("NotificationRule", "")])
    assert world.live[rule].references == (Reference("/endpointName", SLACK, world.entry(SLACK, "e").resource_id),)
    assert step_lines(world.plan(an_object(SLACK, "e"), a_rule("r", "e"))) == []


def test_an_object_of_another_kind_and_name_takes_the_resource_of_its_display_name() -> None:
    world = World()
    world.apply(an_object(HTTP, "a", name="team"))
    plan = world.apply(an_object(SLACK, "b", name="team"))
    assert step_lines(plan) == [f"0 delete {HTTP} a", f"1 create {SLACK} b"]
    assert plan.remarks.conflicts == ()
    assert [entry.key for entry in world.record.resources] == [Key(SLACK, "b")]


def test_a_resource_of_another_kind_that_no_stack_owns_is_a_conflict() -> None:
    world = World(record=STACKLESS)
    held = world.add("CheckDeadman", "x", name="C")
    with pytest.raises(ReplacementRefused, match=r"CheckDeadman 'c' is on the platform .* as its kind cannot change"):
        world.plan(a_check("CheckThreshold"))
    plan = world.plan(a_check("CheckThreshold"), allow_replace=True)
    assert step_lines(plan) == ["0 delete CheckDeadman c", "1 create CheckThreshold c"]
    assert [(each.key, each.resource_id) for each in plan.remarks.conflicts] == [(THRESHOLD, held.id)]


def test_a_recorded_object_of_another_kind_that_is_gone_is_created() -> None:
    world = World()
    world.apply(a_check("CheckDeadman"))
    world.delete(world.entry(*DEADMAN).resource_id)
    plan = world.apply(a_check("CheckThreshold"))
    assert step_lines(plan) == ["0 create CheckThreshold c"]
    assert [diff.key for diff in world.last.diffs().resources] == [THRESHOLD]
    assert [entry.key for entry in world.record.resources] == [THRESHOLD]


def test_two_objects_can_exchange_their_kinds() -> None:
    world = World()
    world.apply(an_object(HTTP, "a"), an_object(SLACK, "b"), a_rule("r", "a"), a_rule("s", "b"))
    wanted = (an_object(SLACK, "a"), an_object(HTTP, "b"), a_rule("r", "a"), a_rule("s", "b"))
    world.apply(*wanted)
    assert step_lines(world.plan(*wanted)) == []
    assert {entry.key for entry in world.record.resources} == {item.key for item in wanted}


def test_a_change_of_kind_comes_before_irreversible_steps() -> None:
    world = World()
    world.apply(a_check("CheckDeadman"), an_object("Bucket", "old"))
    assert step_lines(world.plan(a_check("CheckThreshold"))) == [
        "0 delete CheckDeadman c",
        "1 create CheckThreshold c",
        "2 delete Bucket old",
    ]


def test_a_replacement_with_a_free_name_is_created_before_the_old_bucket_is_deleted() -> None:
    world = World()
    label = an_object(LABEL, "l")
    world.apply(label, an_object("Bucket", "b", ["l"], name="readings"))
    theirs, first = world.add(LABEL, "theirs"), world.entry("Bucket", "b").resource_id
    world._link(first, {theirs.id, world.entry(LABEL, "l").resource_id})
    wanted = (label, an_object("Bucket", "b", ["l"], name="new readings", schemaType="explicit"))
    plan = world.apply(*wanted)
    assert step_lines(plan) == [
        "0 create Bucket b",
        f"1 attach Bucket b {theirs.id}",
        "1 attach Bucket b l",
        f"1 detach Bucket b {theirs.id}",
        "1 detach Bucket b l",
        "2 delete Bucket b",
    ]
    assert plan.stages == ("buckets", "associations", "irreversible removals")
    assert {step.resource_id for step in plan.steps if step.verb in (Verb.DETACH, Verb.DELETE)} == {first}
    assert [each.spec.display_name for each in world.live.values() if each.kind == "Bucket"] == ["new readings"]
    assert world.live[world.entry("Bucket", "b").resource_id].label_ids
    assert step_lines(world.plan(*wanted)) == []


def test_rules_get_an_endpoint_of_another_kind_and_name_in_one_update() -> None:
    world = World()
    world.apply(an_object(HTTP, "e", name="old"), a_rule("r", "e"))
    held = world.live[world.entry(HTTP, "e").resource_id]
    unowned = world.add("NotificationRule", "theirs", references=[Reference("/endpointName", HTTP, held.id)])
    wanted = (an_object(SLACK, "e", name="new"), a_rule("r", "e"))
    plan = world.apply(*wanted)
    assert step_lines(plan) == [
        f"0 create {SLACK} e",
        "1 update NotificationRule r",
        f"2 update NotificationRule {unowned.id}",
        f"3 delete {HTTP} e",
    ]
    assert plan.steps[2].reason == "what it refers to is replaced"
    now = world.entry(SLACK, "e").resource_id
    for rule in (world.entry("NotificationRule", "r").resource_id, unowned.id):
        assert world.live[rule].references == (Reference("/endpointName", SLACK, now),)
    assert step_lines(world.plan(*wanted)) == []


def test_a_replacement_may_take_a_name_that_another_object_releases() -> None:
    world = World()
    world.apply(a_bucket(), an_object("Bucket", "c", name="taken"))
    wanted = (an_object("Bucket", "b", name="taken", schemaType="explicit"), an_object("Bucket", "c", name="other"))
    assert step_lines(world.apply(*wanted)) == ["0 update Bucket c", "1 create Bucket b", "2 delete Bucket b"]
    assert step_lines(world.plan(*wanted)) == []


def test_a_name_that_a_replaced_resource_has_until_the_end_is_not_free() -> None:
    world = World()
    world.apply(a_bucket(), an_object("Bucket", "c", name="other"))
    with pytest.raises(NameTaken, match=r"Bucket 'b' has it\. Bucket 'b' is replaced later in this plan"):
        world.plan(
            an_object("Bucket", "b", name="new", schemaType="explicit"), an_object("Bucket", "c", name="readings")
        )


def test_a_replacement_with_the_name_of_a_removed_resource_is_created_after_both_deletions() -> None:
    world = World()
    world.apply(a_bucket(), an_object("Bucket", "c", name="other"))
    plan = world.apply(an_object("Bucket", "b", name="other", schemaType="explicit"))
    assert step_lines(plan) == ["0 delete Bucket b", "0 delete Bucket c", "1 create Bucket b"]


def test_a_replacement_may_take_the_name_of_what_is_removed_before_it() -> None:
    world = World()
    world.apply(a_check("CheckDeadman"), an_object("CheckThreshold", "leaving", name="L"))
    world.apply(an_object("CheckThreshold", "c", name="L"))
    assert [entry.key for entry in world.record.resources] == [THRESHOLD]
    assert [each.spec.display_name for each in world.live.values()] == ["L"]


def test_a_replacement_that_cannot_be_undone_frees_its_name_too_late_for_one_that_can() -> None:
    world = World()
    kinds = world.platform.kinds
    irreversible = replace(kinds["CheckThreshold"], delete_undo=Undo.NONE)
    world.platform = replace(world.platform, kinds={**kinds, "CheckThreshold": irreversible})
    world.apply(a_check("CheckDeadman"), an_object("CheckThreshold", "d", name="D"))
    with pytest.raises(NameTaken, match=r"CheckDeadman 'd' has it\. CheckDeadman 'd' is replaced later in this plan"):
        world.plan(an_object("CheckThreshold", "c", name="D"), an_object("CheckDeadman", "d", name="E"))


def test_a_renamed_object_stays_what_the_stack_created() -> None:
    world = World()
    world.apply(an_object(LABEL, "l"), an_object("Bucket", "old", ["l"], name="raw"))
    plan = world.apply(an_object(LABEL, "m", name="l"), an_object("Bucket", "new", ["m"], name="raw"))
    assert plan.steps == ()
    assert [(entry.key.name, entry.origin) for entry in world.record.resources] == [
        ("new", Origin.CREATED),
        ("m", Origin.CREATED),
    ]
    assert step_lines(world.plan(is_end=True))[-1] == "2 delete Bucket new"


def test_a_label_that_got_another_name_is_still_detached() -> None:
    world = World()
    world.apply(an_object(LABEL, "l"), an_object("Bucket", "b", ["l"]))
    plan = world.apply(an_object(LABEL, "m", name="l"), an_object("Bucket", "b"))
    assert step_lines(plan) == ["0 detach Bucket b m"]
