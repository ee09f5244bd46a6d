"""Which resources an import of a package adds, and the list of live resources, as pure functions."""

from dataclasses import replace

import pytest

from planner_svc.imports.live_resources import LiveResource, Owner, in_order, kinds_named
from planner_svc.imports.planned_import import ImportStatus, kinds_to_list, plan_import, refuse_missing_names
from services.core.errors import KindUnsupported, RequestInvalid
from services.core.model import EnvReference, InventoryEntry, Key, Object, Origin, Package, StackRecord, Target
from services.drivers.embedded.kinds import EMBEDDED
from tests.planner.world import an_object

STACK = StackRecord("1" * 16, Target(), "s", 3)
OTHER = Owner("2" * 16, "other", "theirs")


def statuses(
    objects: list[Object], *live: LiveResource, stack: StackRecord = STACK
) -> dict[str, tuple[str, list[str]]]:
    """The status of each object by name, with the ids of its resources."""
    found = plan_import(Package(tuple(objects)), stack, live, EMBEDDED)
    return {each.key.name: (each.status.value, [live.id for live in each.resources]) for each in found}


def test_an_object_gets_the_only_resource_of_its_name() -> None:
    objects = [an_object("Dashboard", "d", name="CPU"), an_object("Label", "l", name="Fleet")]
    live = [LiveResource("Dashboard", "1", "CPU"), LiveResource("Label", "2", "fleet"), LiveResource("Label", "3", "x")]
    # Names are compared as the platform compares them: labels without case.
    assert statuses(objects, *live) == {"d": ("unowned", ["1"]), "l": ("unowned", ["2"])}


def test_objects_without_a_certain_resource_get_none() -> None:
    objects = [
        an_object("Dashboard", "absent", name="absent"),
        an_object("Dashboard", "several", name="CPU"),
        an_object("Dashboard", "twin", name="Memory"),
        an_object("Dashboard", "twin-too", name="Memory"),
        an_object("Dashboard", "case", name="disk"),
        an_object("Bucket", "owned", name="raw"),
    ]
    live = [
        LiveResource("Dashboard", "2", "CPU"),
        LiveResource("Dashboard", "1", "CPU", OTHER),
        LiveResource("Dashboard", "3", "Memory"),
        LiveResource("Dashboard", "4", "Disk"),
        LiveResource("Bucket", "5", "raw", OTHER),
    ]
    assert statuses(objects, *live) == {
        "absent": ("missing", []),
        "several": ("ambiguous", ["1", "2"]),
        "twin": ("ambiguous", ["3"]),
        "twin-too": ("ambiguous", ["3"]),
        "case": ("missing", []),
        "owned": ("owned", ["5"]),
    }


def test_a_name_of_another_kind_of_the_family_is_ambiguous() -> None:
    """An apply would replace the resource by one of the kind of the object."""
    endpoint = an_object("NotificationEndpointHTTP", "e", name="Chat")
    live = LiveResource("NotificationEndpointPagerDuty", "1", "Chat")
    assert live.kind in kinds_to_list([endpoint], EMBEDDED)
    assert statuses([endpoint], live) == {"e": ("ambiguous", ["1"])}


def test_an_object_of_the_stack_is_recorded_whatever_its_resource_is_called() -> None:
    entries = (
        InventoryEntry(Key("Dashboard", "d"), "1", Origin.CREATED),
        InventoryEntry(Key("Label", "gone"), "2", Origin.CREATED),
    )
    stack = replace(STACK, resources=entries)
    mine = Owner(STACK.id, STACK.name, "d")
    objects = [
        an_object("Dashboard", "d", name="CPU"),
        an_object("Label", "gone"),
        an_object("Dashboard", "e", name="Renamed"),
    ]
    found = statuses(objects, LiveResource("Dashboard", "1", "Renamed", mine), stack=stack)
    assert found == {"d": ("recorded", ["1"]), "gone": ("recorded", []), "e": ("owned", ["1"])}


def test_results_are_sorted_by_key() -> None:
    objects = [an_object("Label", "b"), an_object("Label", "a"), an_object("Bucket", "c")]
    found = plan_import(Package(tuple(objects)), STACK, [], EMBEDDED)
    assert [(each.key.name, each.status) for each in found] == [
        ("c", ImportStatus.MISSING),
        ("a", ImportStatus.MISSING),
        ("b", ImportStatus.MISSING),
    ]


def test_names_need_the_environment_values_that_they_refer_to() -> None:
    item = an_object("Label", "l")
    named, colored = (EnvReference(field, field, None, None) for field in ("spec.name", "spec.color"))
    with_default = EnvReference("metadata.name", "other", None, "x")
    item = item._replace(env_references=(named, colored, with_default))
    refuse_missing_names([item], [])
    refuse_missing_names([item], ["spec.color", "other"])
    with pytest.raises(RequestInvalid, match=r"the names of objects need values for spec\.name; supply them"):
        refuse_missing_names([item], ["spec.color", "spec.name"])


def test_live_resources_are_in_the_order_of_kinds_then_names_then_ids() -> None:
    live = [
        LiveResource("Rocket", "1", "a"),
        LiveResource("Bucket", "2", "b"),
        LiveResource("Bucket", "4", "a"),
        LiveResource("Bucket", "3", "a"),
        LiveResource("Label", "5", "z"),
    ]
    assert [each.id for each in in_order(live)] == ["5", "3", "4", "2", "1"]


def test_words_name_kinds_and_families_of_the_platform() -> None:
    assert kinds_named(["Check", "Bucket"], EMBEDDED) == ["Bucket", "CheckDeadman", "CheckThreshold"]
    assert kinds_named([], EMBEDDED) == sorted(EMBEDDED.kinds)
    rocket = replace(EMBEDDED, kinds={"Rocket": EMBEDDED.kinds["Label"]})
    assert kinds_named(["Rocket"], rocket) == ["Rocket"]
    with pytest.raises(KindUnsupported, match="does not support kind 'Check'"):
        kinds_named(["Check"], rocket)
    with pytest.raises(KindUnsupported, match="does not support kind 'Label'"):
        kinds_to_list([an_object("Label", "l")], rocket)
    with pytest.raises(RequestInvalid, match=r"kinds\[1\]: 'Buckte' is no kind; did you mean Bucket\?"):
        kinds_named(["Label", "Buckte"], EMBEDDED)
