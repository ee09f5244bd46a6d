"""Plans that keep the objects of the stack that the package lacks (planner.proto, PlanOptions)."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from pkger.planner.v1 import planner_pb2

from planner_svc.request_checks import refuse_unkeepable
from services.core.errors import RequestInvalid
from services.core.model import InventoryEntry, Key, Object, Origin
from services.drivers.embedded.kinds import EMBEDDED
from tests.planner.test_laws import a_world, packages
from tests.planner.world import World, an_object, step_lines

RED, BUCKET, OTHER = an_object("Label", "red"), an_object("Bucket", "b", ["red"]), an_object("Bucket", "other", ["red"])


@given(packages(), packages())
def test_what_the_package_lacks_stays_as_it_is(before: tuple[Object, ...], wanted: tuple[Object, ...]) -> None:
    world = a_world()
    world.apply(*before)
    entries, live = {entry.key: entry for entry in world.record.resources}, dict(world.live)
    plan = world.apply(*wanted, keep_others=True)
    renamed, keys = dict(plan.key_changes), {item.key for item in wanted}
    for key in entries.keys() - keys - renamed.keys():
        assert world.entry(*key) == entries[key]
        resource = live[entries[key].resource_id]
        assert world.live[resource.id].spec == resource.spec
        assert world.live[resource.id].label_ids == resource.label_ids
    assert {entry.key for entry in world.record.resources} == (entries.keys() - renamed.keys()) | keys
    assert world.plan(*wanted, keep_others=True).no_change


def test_policies_of_kept_objects_stay_and_do_not_release_them() -> None:
    world = World()
    world.apply(RED, BUCKET, OTHER)
    world.record = replace(world.record, policy={"on_remove": "orphan"})
    entry = world.entry("Bucket", "other")
    assert step_lines(world.apply(RED, BUCKET, keep_others=True)) == []
    assert world.entry("Bucket", "other") == entry
    assert world.entry("Bucket", "b").policy != entry.policy
    assert world.plan(RED, BUCKET).record.removed == (OTHER.key,)


def test_a_kept_object_may_have_a_kind_that_the_platform_lacks() -> None:
    world = World()
    world.apply(RED)
    lost = InventoryEntry(Key("Rocket", "saturn"), "f" * 16, Origin.CREATED)
    world.record = replace(world.record, resources=(*world.record.resources, lost))
    assert "Rocket" not in EMBEDDED.kinds
    assert world.plan(RED, keep_others=True).no_change


def test_an_object_that_has_another_name_in_the_package_is_not_kept_beside_it() -> None:
    world = World()
    world.apply(an_object("Bucket", "old", name="data"))
    plan = world.apply(an_object("Bucket", "new", name="data"), keep_others=True)
    assert plan.key_changes == ((Key("Bucket", "old"), Key("Bucket", "new")),)
    assert [entry.key.name for entry in world.record.resources] == ["new"]


@pytest.mark.parametrize(
    ("desired", "has_packages", "problem"),
    [
        (
            {"destroy": planner_pb2.Destroy()},
            False,
            "destroy removes what the stack owns; skip the objects that are to",
        ),
        ({"packages": {}}, False, "packages are changed as a whole, so the objects of the others stay anyway"),
        ({"revision": 1}, True, "packages are changed as a whole, so the objects of the others stay anyway"),
        ({"revision": 1}, False, ""),
        ({"snapshot": "x"}, False, ""),
        ({"package": {}}, False, ""),
    ],
)
def test_others_are_kept_only_where_objects_may_leave(
    desired: dict[str, Any], has_packages: bool, problem: str
) -> None:
    request = planner_pb2.CreatePlanRequest(options=planner_pb2.PlanOptions(keep_others=True), **desired)
    if problem:
        with pytest.raises(RequestInvalid, match=problem) as caught:
            refuse_unkeepable(request, has_packages=has_packages)
        assert caught.value.metadata["field"] == "options.keep_others"
    else:
        refuse_unkeepable(request, has_packages=has_packages)
