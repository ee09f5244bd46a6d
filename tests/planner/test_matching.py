"""Which live resource belongs to which object (docs/reference/engine.md, "Matching")."""

import json
from dataclasses import replace

import pytest

from planner_svc.matching.desired import Desired
from planner_svc.matching.match import ResourceHolder, kinds_of_record, kinds_to_list, match
from planner_svc.sharing.ownership import ResourceHolders, refuse_owned, with_holders
from services.core.errors import KindUnsupported, NameTaken, ResourceOwned
from services.core.model import InventoryEntry, Key, Origin, Package, Resource, StackRecord, Target
from services.drivers.embedded.kinds import EMBEDDED
from tests.planner.world import World, an_object, step_lines

FOLDED = [("Variable", "abc", "ABC"), ("Label", "sensors", " sensors "), ("Label", "Fleet", "\tfleet")]
"""Two names of a kind that the platform treats as equal."""


def test_a_new_object_of_a_kind_with_unique_names_adopts_the_resource_of_its_name() -> None:
    world = World()
    bucket = world.add("Bucket", "events")
    plan = world.apply(an_object("Bucket", "b", name="events"))
    assert step_lines(plan) == []
    assert not plan.no_change
    assert world.entry("Bucket", "b").resource_id == bucket.id
    assert world.entry("Bucket", "b").origin is Origin.ADOPTED


def test_label_names_match_whatever_their_case_and_are_then_written_as_wanted() -> None:
    world = World()
    label = world.add("Label", "Fleet")
    plan = world.apply(an_object("Label", "fleet"))
    assert step_lines(plan) == ["0 update Label fleet"]
    assert world.live[label.id].spec.display_name == "fleet"


@pytest.mark.parametrize("kind", ["Dashboard", "Task", "Telegraf"])
def test_kinds_without_unique_names_are_never_matched_by_name(kind: str) -> None:
    world = World()
    world.add(kind, "same")
    assert step_lines(world.plan(an_object(kind, "same"))) == [f"0 create {kind} same"]


def test_a_recorded_resource_is_found_by_id_whatever_its_name_is_now() -> None:
    world = World()
    world.apply(an_object("Dashboard", "d", name="before"))
    first = world.entry("Dashboard", "d").resource_id
    assert step_lines(world.apply(an_object("Dashboard", "d", name="after"))) == ["0 update Dashboard d"]
    assert world.entry("Dashboard", "d").resource_id == first


def test_a_recorded_resource_that_is_gone_is_created_again_under_the_same_key() -> None:
    world = World()
    world.apply(an_object("Task", "t"))
    gone = world.entry("Task", "t").resource_id
    del world.live[gone]
    plan = world.apply(an_object("Task", "t"))
    assert step_lines(plan) == ["0 create Task t"]
    assert plan.steps[0].reason == "recorded resource is gone"
    assert world.last.diffs().resources[0].resource_id == gone
    assert world.entry("Task", "t").resource_id != gone


def test_a_resource_that_is_gone_has_its_recorded_id_in_summary_and_associations() -> None:
    world = World()
    package = (an_object("Label", "l"), an_object("Bucket", "b", ["l"]))
    world.apply(*package)
    label, bucket = (world.entry(*item.key).resource_id for item in package)

    del world.live[bucket]
    world.plan(*package)
    assert shown_ids(world) == [("b", bucket, "l", label)]

    del world.live[label]
    plan = world.plan(*package)
    assert shown_ids(world) == [("b", bucket, "l", label)]
    assert [step.label_id for step in plan.steps if step.label] == [""]
    summary = json.loads(world.last.summary())
    [mapping] = summary["labelMappings"]
    shown = [summary["buckets"][0]["id"], summary["labels"][0]["id"], mapping["resourceID"], mapping["labelID"]]
    assert shown == [int(bucket, 16), int(label, 16)] * 2

    world.run(plan)
    assert world.entry("Bucket", "b").resource_id != bucket


def shown_ids(world: World) -> list[tuple[str, str, str, str]]:
    """Names and ids of resource and label, for each association of the last plan."""
    return [
        (each.resource.name, each.resource_id, each.label.name, each.label_id)
        for each in world.last.diffs().label_mappings
    ]


def test_a_resource_whose_object_got_another_metadata_name_moves_to_the_new_key() -> None:
    world = World()
    world.apply(an_object("Bucket", "old", name="data"))
    bucket = world.entry("Bucket", "old").resource_id
    plan = world.apply(an_object("Bucket", "new", name="data"))
    assert step_lines(plan) == []
    assert [entry.key for entry in world.record.resources] == [Key("Bucket", "new")]
    assert world.entry("Bucket", "new").resource_id == bucket


def test_a_resource_that_an_operation_of_another_stack_claims_is_a_conflict_that_names_it() -> None:
    world = World()
    bucket = world.add("Bucket", "b")
    desired = Desired(Package((an_object("Bucket", "b"),)))
    matching = match(desired, world.record, world.live.values(), EMBEDDED)
    claimed = {("Bucket", bucket.id): ResourceHolders(ResourceHolder("2" * 16, "theirs", "operation-1"))}
    with pytest.raises(
        ResourceOwned, match=f"resource {bucket.id}, which operation operation-1 of stack 'theirs'"
    ) as caught:
        refuse_owned(with_holders(matching, claimed, world.record), claimed, world.record)
    assert caught.value.metadata["owner"] == "2" * 16
    for holder in (ResourceHolder("2" * 16, "theirs"), ResourceHolder(world.record.id, "s", "operation-2")):
        holders = {("Bucket", bucket.id): ResourceHolders(holder)}
        refuse_owned(with_holders(matching, holders, world.record), holders, world.record)


def test_two_objects_cannot_have_one_resource() -> None:
    world = World()
    world.add("Label", "fleet")
    with pytest.raises(NameTaken, match="Label 'a' of the same package"):
        world.plan(an_object("Label", "a", name="fleet"), an_object("Label", "b", name="FLEET"))


def test_two_new_objects_cannot_have_names_that_the_platform_holds_equal() -> None:
    with pytest.raises(NameTaken, match="cannot have the name 'FLEET': Label 'a' of the same package"):
        World().plan(an_object("Label", "a", name="fleet"), an_object("Label", "b", name="FLEET"))


@pytest.mark.parametrize(("kind", "first", "second"), FOLDED)
def test_names_that_the_platform_treats_as_equal_are_refused_and_both_objects_named(
    kind: str, first: str, second: str
) -> None:
    with pytest.raises(NameTaken) as caught:
        World().plan(an_object(kind, "a", name=first), an_object(kind, "b", name=second))
    assert str(caught.value) == (
        f"{kind} 'b' cannot have the name {second!r}: {kind} 'a' of the same package (as {first!r}) has it."
        " The platform treats the two names as equal: rename one of the two objects."
    )


@pytest.mark.parametrize(("kind", "first", "second"), FOLDED)
def test_a_resource_is_adopted_whatever_of_its_name_the_platform_ignores(kind: str, first: str, second: str) -> None:
    world = World()
    held = world.add(kind, first)
    assert step_lines(world.apply(an_object(kind, "x", name=second))) == [f"0 update {kind} x"]
    assert world.entry(kind, "x").resource_id == held.id


@pytest.mark.parametrize(("kind", "first", "second"), FOLDED)
def test_an_object_whose_name_several_resources_have_is_refused_and_all_are_named(
    kind: str, first: str, second: str
) -> None:
    """Platforms keep resources with equal names that they accepted before they compared names like this."""
    world = World()
    for number, name in enumerate((first, second)):
        world.live[f"{number}" * 16] = Resource(kind, f"{number}" * 16, an_object(kind, name).spec)
    with pytest.raises(NameTaken) as caught:
        world.plan(an_object(kind, "x", name=first))
    assert str(caught.value) == (
        f"{kind} 'x' cannot have the name {first!r}: each of {kind} resource {'0' * 16} on the platform and {kind}"
        f" resource {'1' * 16} on the platform (as {second!r}) has it. Only one can have it: rename or delete the"
        " others, in the stack that owns them or on the platform."
    )


@pytest.mark.parametrize(("kind", "first", "second"), FOLDED)
def test_a_rename_to_a_name_of_several_resources_names_those_that_keep_it(kind: str, first: str, second: str) -> None:
    world = with_one_name(kind, first, second)
    world.live["f" * 16] = Resource(kind, "f" * 16, an_object(kind, second).spec)
    one, two = (world.entry(kind, name).resource_id for name in ("one", "two"))
    world.record = replace(world.record, resources=(world.entry(kind, "one"),))
    with pytest.raises(NameTaken, match=f"{two} on the platform.* and .*{'f' * 16}") as caught:
        world.plan(an_object(kind, "one", name="free"), an_object(kind, "three", name=first))
    assert one not in str(caught.value)
    world.apply(an_object(kind, "one", name="free"))
    with pytest.raises(NameTaken, match=f"each of {kind} resource {two} .* and {kind} resource {'f' * 16}"):
        world.plan(an_object(kind, "one", name=first))


def with_one_name(kind: str, first: str, second: str) -> World:
    """A stack with objects 'one' and 'two', whose names the platform has come to treat as equal."""
    world = World()
    world.apply(an_object(kind, "one", name=first), an_object(kind, "two", name="other"))
    two = world.live[world.entry(kind, "two").resource_id]
    world.live[two.id] = two._replace(spec=an_object(kind, "two", name=second).spec)
    return world


@pytest.mark.parametrize(("kind", "first", "second"), FOLDED)
def test_recorded_resources_with_one_name_can_be_planned_apart(kind: str, first: str, second: str) -> None:
    """They are matched by id, so each of them can be updated, renamed and removed."""
    one = an_object(kind, "one", name=first, description="new")
    two = an_object(kind, "two", name=second)
    for package, steps in [
        ([one, an_object(kind, "two", name="free")], {f"0 update {kind} one", f"0 update {kind} two"}),
        ([one], {f"0 update {kind} one", f"1 delete {kind} two"}),
        ([two], {f"0 delete {kind} one"}),
    ]:
        world = with_one_name(kind, first, second)
        assert set(step_lines(world.plan(*package))) == steps
    world = with_one_name(kind, first, second)
    for first_object in (one, an_object(kind, "one", name=first)):
        with pytest.raises(NameTaken, match=f"{kind} 'one' of the same package"):
            world.plan(first_object, two)
    ended = world.plan(is_end=True)
    assert set(step_lines(ended)) == {f"0 delete {kind} one", f"0 delete {kind} two"}


@pytest.mark.parametrize(("kind", "first", "second"), FOLDED)
def test_an_object_found_by_id_keeps_its_name_beside_an_unowned_resource_of_that_name(
    kind: str, first: str, second: str
) -> None:
    world = World()
    world.apply(an_object(kind, "x", name=first))
    world.live["f" * 16] = Resource(kind, "f" * 16, an_object(kind, second).spec)
    assert world.plan(an_object(kind, "x", name=first)).no_change
    assert step_lines(world.plan(an_object(kind, "x", name=first, description="new"))) == [f"0 update {kind} x"]
    with pytest.raises(NameTaken, match=f"{kind} 'x' of the same package"):
        world.plan(an_object(kind, "x", name=first), an_object(kind, "y", name=second))


def test_a_rename_to_a_name_that_another_resource_has_is_refused_before_anything_is_written() -> None:
    world = World()
    world.apply(an_object("Bucket", "b", name="mine"))
    other = world.add("Bucket", "theirs")
    with pytest.raises(NameTaken, match=f"resource {other.id} on the platform"):
        world.plan(an_object("Bucket", "b", name="theirs"))


def test_a_rename_to_the_name_of_an_object_that_the_plan_removes_is_refused() -> None:
    world = World()
    world.apply(an_object("Variable", "a", name="x"), an_object("Variable", "b", name="y"))
    with pytest.raises(NameTaken, match=r"Variable 'b' has it\. Variable 'b' is removed later in this plan"):
        world.plan(an_object("Variable", "a", name="y"))


def test_a_kind_that_the_platform_has_not_is_refused() -> None:
    kinds = {kind: traits for kind, traits in EMBEDDED.kinds.items() if kind != "Telegraf"}
    with pytest.raises(KindUnsupported, match="not support kind 'Telegraf'"):
        World(platform=replace(EMBEDDED, kinds=kinds)).plan(an_object("Telegraf", "t"))


@pytest.mark.parametrize(
    ("kind", "other"), [("CheckDeadman", "CheckThreshold"), ("NotificationEndpointHTTP", "NotificationEndpointSlack")]
)
def test_two_objects_of_one_family_cannot_have_one_name(kind: str, other: str) -> None:
    with pytest.raises(NameTaken, match=f"{kind} 'a' of the same package has it"):
        World().plan(an_object(kind, "a", name="same"), an_object(other, "b", name="same"))


def test_a_name_is_released_before_an_object_of_another_kind_of_the_family_takes_it() -> None:
    world = World()
    world.apply(an_object("CheckDeadman", "a", name="x"), an_object("CheckThreshold", "b", name="y"))
    plan = world.apply(an_object("CheckDeadman", "a", name="y"), an_object("CheckThreshold", "b", name="z"))
    assert step_lines(plan) == ["0 update CheckThreshold b", "1 update CheckDeadman a"]


def test_an_empty_record_has_the_target_of_the_request() -> None:
    record = StackRecord("", Target("embedded", "acme"), "", 0)
    assert World(record=record).plan(an_object("Label", "a")).target == Target("embedded", "acme")


def test_skipped_objects_are_neither_applied_nor_removed() -> None:
    world = World()
    world.apply(an_object("Task", "kept", status="active"), an_object("Task", "gone"))
    changed = an_object("Task", "kept", status="inactive")
    plan = world.plan(changed, skip=[Key("Task", "")])
    assert plan.steps == ()
    assert plan.no_change
    assert step_lines(world.plan(changed, skip=[Key("Task", "gone")])) == ["0 update Task kept"]


def test_a_skipped_label_is_neither_attached_nor_detached() -> None:
    world = World()
    world.apply(an_object("Label", "a"), an_object("Task", "t", ["a"]))
    label = an_object("Label", "a")
    assert step_lines(world.plan(label, an_object("Task", "t"), skip=[label.key])) == []
    assert step_lines(World().plan(label, an_object("Task", "t", ["a"]), skip=[label.key])) == ["0 create Task t"]


def test_the_kinds_of_the_record_are_those_of_a_plan_with_nothing_to_do() -> None:
    """They are listed while the package is parsed, so such a plan needs no further listing."""
    world = World()
    package = (an_object("Label", "l"), an_object("Bucket", "b"), an_object("CheckDeadman", "c"))
    world.apply(*package)
    listed = kinds_of_record(world.record, EMBEDDED)
    assert listed == kinds_to_list(Desired(Package(package)), world.record, EMBEDDED)
    assert listed == ["Bucket", "CheckDeadman", "CheckThreshold", "Label"]


@pytest.mark.parametrize(
    ("kept", "removed", "listed"),
    [
        (("Label", "Dashboard"), (), ["Label"]),
        (("Dashboard",), ("Task",), ["Task"]),
        ((), ("Dashboard",), []),
        (("Dashboard",), ("Label",), sorted(EMBEDDED.kinds)),
    ],
)
def test_a_kind_with_a_costly_listing_is_listed_only_if_a_label_is_removed(
    kept: tuple[str, ...], removed: tuple[str, ...], listed: list[str]
) -> None:
    costly = replace(EMBEDDED.kinds["Dashboard"], costly_listing=True)
    platform = replace(EMBEDDED, kinds={**EMBEDDED.kinds, "Dashboard": costly})
    owned = tuple(InventoryEntry(Key(kind, "k"), "1", Origin.CREATED) for kind in (*kept, *removed))
    desired = Desired(Package(tuple(an_object(kind, "k") for kind in kept)))
    assert kinds_to_list(desired, StackRecord("1", Target(), "s", 1, owned), platform) == listed


def test_recorded_kinds_that_the_platform_has_not_are_not_listed() -> None:
    world = World()
    world.apply(an_object("Bucket", "b"), an_object("Task", "t"))
    platform = replace(EMBEDDED, kinds={"Bucket": EMBEDDED.kinds["Bucket"]})
    assert kinds_of_record(world.record, platform) == ["Bucket"]
