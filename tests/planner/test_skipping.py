"""The objects and kinds that a caller skips (docs/reference/engine.md, "Matching")."""

from dataclasses import replace

import pytest

from planner_svc.matching.skip import idle_skips, refuse_unknown_kinds, skipped_keys
from services.core.errors import RequestInvalid
from services.core.model import InventoryEntry, Key, Object, Origin, Package, StackRecord, Target
from tests.planner.world import World, an_object, step_lines

CHECKS = {"CheckDeadman", "CheckThreshold"}
ENDPOINTS = {"NotificationEndpointHTTP", "NotificationEndpointPagerDuty", "NotificationEndpointSlack"}


@pytest.mark.parametrize(
    ("kind", "skipped"),
    [
        ("Label", {"Label"}),
        ("NotificationRule", {"NotificationRule"}),
        ("Check", CHECKS),
        ("CheckDeadman", CHECKS),
        ("NotificationEndpoint", ENDPOINTS),
        ("NotificationEndpointSlack", ENDPOINTS),
    ],
)
@pytest.mark.parametrize("name", ["", "one"])
def test_the_kinds_of_a_family_are_skipped_together(kind: str, name: str, skipped: set[str]) -> None:
    assert skipped_keys([Key(kind, name)]) == {Key(each, name) for each in skipped}


@pytest.mark.parametrize(
    ("kind", "problem"),
    [("", "name a kind"), ("Lable", "'Lable' is no kind"), ("Package", "is no kind"), ("label", "is no kind")],
)
def test_an_unknown_kind_is_refused_with_its_position(kind: str, problem: str) -> None:
    with pytest.raises(RequestInvalid, match=problem) as caught:
        refuse_unknown_kinds([Key("Label", ""), Key(kind, "one")])
    assert caught.value.metadata["field"] == "options.skip[1].kind"


LABEL_L = an_object("Label", "l")
NO_LABELS = [Key("Label", "")]


@pytest.mark.parametrize("adopted", [False, True])
def test_an_association_with_a_skipped_label_is_detached_by_a_later_apply(adopted: bool) -> None:
    world = World()
    if adopted:
        world.add("Bucket", "b")
    world.apply(LABEL_L, an_object("Bucket", "b", ["l"]))
    plan = world.apply(LABEL_L, an_object("Bucket", "b"), skip=NO_LABELS)
    assert step_lines(plan) == []
    assert plan.no_change
    assert world.entry("Bucket", "b").associations == (LABEL_L.key,)
    assert step_lines(world.apply(LABEL_L, an_object("Bucket", "b"))) == ["0 detach Bucket b l"]


def test_an_association_with_a_skipped_label_is_recorded_once_it_is_made() -> None:
    world = World()
    world.apply(LABEL_L, an_object("Bucket", "b", ["l"]), skip=NO_LABELS)
    assert [(entry.key.name, entry.associations) for entry in world.record.resources] == [("b", ())]
    assert step_lines(world.apply(LABEL_L, an_object("Bucket", "b", ["l"]))) == [
        "0 create Label l",
        "1 attach Bucket b l",
    ]
    assert world.entry("Bucket", "b").associations == (LABEL_L.key,)


def test_a_skipped_label_is_not_recorded_for_a_resource_that_is_created_again() -> None:
    world = World()
    world.apply(LABEL_L, an_object("Bucket", "b", ["l"]))
    del world.live[world.entry("Bucket", "b").resource_id]
    plan = world.apply(LABEL_L, an_object("Bucket", "b", ["l"]), skip=NO_LABELS)
    assert step_lines(plan) == ["0 create Bucket b"]
    assert world.entry("Bucket", "b").associations == ()
    assert step_lines(world.apply(LABEL_L, an_object("Bucket", "b", ["l"]))) == ["0 attach Bucket b l"]


def test_a_skipped_label_is_not_recorded_for_another_resource_with_the_name() -> None:
    world = World()
    world.apply(LABEL_L, an_object("Bucket", "b", ["l"]))
    world.delete(world.entry("Bucket", "b").resource_id)
    world.add("Bucket", "b")
    assert step_lines(world.apply(LABEL_L, an_object("Bucket", "b", ["l"]), skip=NO_LABELS)) == []
    assert world.entry("Bucket", "b").associations == ()
    assert step_lines(world.apply(LABEL_L, an_object("Bucket", "b", ["l"]))) == ["0 attach Bucket b l"]


def test_another_label_with_the_name_is_not_recorded_for_a_skipped_object() -> None:
    world = World()
    world.apply(LABEL_L, an_object("Bucket", "b", ["l"]))
    world.delete(world.entry(*LABEL_L.key).resource_id)
    world.add("Label", "l")
    assert step_lines(world.apply(LABEL_L, skip=[Key("Bucket", "b")])) == []
    assert world.entry("Bucket", "b").associations == ()
    assert step_lines(world.apply(LABEL_L, an_object("Bucket", "b", ["l"]))) == ["0 attach Bucket b l"]


def test_a_label_that_is_created_again_leaves_the_entries_of_skipped_objects() -> None:
    world = World()
    world.apply(LABEL_L, an_object("Bucket", "b", ["l"]))
    label = world.entry("Label", "l").resource_id
    del world.live[label]
    bucket = world.live[world.entry("Bucket", "b").resource_id]
    world.live[bucket.id] = bucket._replace(label_ids=())
    plan = world.apply(LABEL_L, an_object("Bucket", "b", ["l"]), skip=[Key("Bucket", "b")])
    assert step_lines(plan) == ["0 create Label l"]
    assert world.entry("Bucket", "b").associations == ()
    assert step_lines(world.apply(LABEL_L, an_object("Bucket", "b", ["l"]))) == ["0 attach Bucket b l"]


def test_a_removed_label_leaves_the_entries_of_skipped_objects() -> None:
    world = World()
    world.apply(LABEL_L, an_object("Bucket", "b", ["l"]))
    plan = world.apply(an_object("Bucket", "b", ["l"]), skip=[Key("Bucket", "")])
    assert step_lines(plan) == ["0 detach Bucket b l", "1 delete Label l"]
    assert [(entry.key.name, entry.associations) for entry in world.record.resources] == [("b", ())]


def test_the_entry_of_a_skipped_object_has_the_new_key_of_its_label() -> None:
    world = World()
    world.apply(LABEL_L, an_object("Bucket", "b", ["l"]))
    renamed = an_object("Label", "m", name="l")
    world.apply(renamed, skip=[Key("Bucket", "")])
    assert world.entry("Bucket", "b").associations == (renamed.key,)
    assert step_lines(world.plan(renamed, an_object("Bucket", "b"))) == ["0 detach Bucket b m"]


def test_a_skipped_label_is_attached_to_the_replacement() -> None:
    world = World()
    world.apply(LABEL_L, an_object("Bucket", "b", ["l"]))
    world.apply(LABEL_L, an_object("Bucket", "b", schemaType="explicit"), skip=NO_LABELS)
    assert world.live[world.entry("Bucket", "b").resource_id].label_ids == (world.entry(*LABEL_L.key).resource_id,)
    assert step_lines(world.apply(LABEL_L, an_object("Bucket", "b", schemaType="explicit"))) == ["0 detach Bucket b l"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (an_object("Bucket", "b1", name="readings"), an_object("Bucket", "b2", name="readings")),
        (an_object("Label", "l1", name="red"), an_object("Label", "l2", name=" RED ")),
        (an_object("CheckDeadman", "c", name="cpu"), an_object("CheckThreshold", "d", name="cpu")),
    ],
)
def test_a_skipped_object_that_got_another_key_keeps_its_resource(old: Object, new: Object) -> None:
    world = World()
    world.apply(old)
    plan = world.plan(new, skip=skipped_keys([new.key]))
    assert step_lines(plan) == []
    assert plan.no_change


def test_a_rule_of_a_skipped_endpoint_that_got_another_name_refers_to_it_already() -> None:
    world = World()
    world.apply(
        an_object("NotificationEndpointSlack", "e1", name="team"), an_object("NotificationRule", "r", endpointName="e1")
    )
    endpoint = an_object("NotificationEndpointSlack", "e2", name="team")
    rule = an_object("NotificationRule", "r", endpointName="e2")
    plan = world.plan(endpoint, rule, skip=[endpoint.key])
    assert step_lines(plan) == []
    assert [entry.key.name for entry in world.owned_after(plan)] == ["e1", "r"]


def test_a_label_that_got_another_key_while_it_is_skipped_stays_where_it_is() -> None:
    world = World()
    world.apply(LABEL_L, an_object("Bucket", "b", ["l"]))
    renamed = an_object("Label", "m", name="l")
    plan = world.plan(renamed, an_object("Bucket", "b", ["m"]), skip=[renamed.key])
    assert step_lines(plan) == []
    assert plan.no_change


@pytest.mark.parametrize("skip", ["Bucket", "Bucket:b"])
@pytest.mark.parametrize("is_wanted", [False, True])
def test_an_entry_that_is_pending_deletion_is_skipped_by_the_name_of_its_object(skip: str, is_wanted: bool) -> None:
    world, wanted = World(), [an_object("Bucket", "b")] if is_wanted else []
    old = world.add("Bucket", "old").id
    world.apply(*wanted)
    left = InventoryEntry(Key("Bucket", "b"), "", Origin.CREATED).beside(old)
    world.record = replace(world.record, resources=(*world.record.resources, left))
    skips = [Key(*skip.split(":") if ":" in skip else (skip, ""))]
    plan = world.plan(*wanted, LABEL_L, skip=skips)
    assert (step_lines(plan), plan.record.removed) == (["0 create Label l"], ())
    assert idle_skips(skips, Package(()), world.record) == []
    assert step_lines(world.plan(*wanted, LABEL_L)) == ["0 create Label l", "1 delete Bucket b~" + old]


def test_a_skip_without_effect_is_a_warning_with_a_hint() -> None:
    package = Package((an_object("Bucket", "raw", name="readings"), an_object("CheckDeadman", "c")))
    record = StackRecord("1", Target(), "s", 1, (InventoryEntry(Key("Task", "recorded"), "t-1", Origin.CREATED),))
    skips = [
        Key("Bucket", "raw"),
        Key("Bucket", ""),
        Key("Task", "recorded"),
        Key("Check", "c"),
        Key("CheckThreshold", "c"),
        Key("Bucket", "readings"),
        Key("Label", "raw"),
    ]
    assert idle_skips(skips, package, record) == [
        "Bucket:readings is to be skipped, and is neither in the package nor in the stack;"
        " did you mean its metadata.name, Bucket:raw?",
        "Label:raw is to be skipped, and is neither in the package nor in the stack",
    ]


def test_a_change_of_a_skipped_resource_is_a_warning() -> None:
    world = World()
    endpoint, rule = an_object("NotificationEndpointSlack", "e"), an_object("NotificationRule", "r", endpointName="e")
    world.apply(LABEL_L, endpoint, rule, an_object("Task", "t", ["l"]))
    plan = world.plan(skip=[Key("NotificationRule", ""), Key("Task", "")])
    assert plan.remarks.warnings == (
        "the package has no objects",
        "NotificationRule 'r' is skipped, and is changed all the same: what it refers to is deleted",
        "Task 't' is skipped, and loses the label l, which is deleted",
    )
