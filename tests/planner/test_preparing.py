"""A plan compares and writes specs as the platform would hold them."""

import pytest

from services.core.errors import ContentRefused
from services.core.model import DesiredSpec, Key, Location, Origin, Reference, Spec
from services.engine.outcome import Failed, RejectionReason
from services.kinds.format.canonical import spec_of
from tests.planner.world import World, an_object, step_lines


def filling_in(wanted: DesiredSpec) -> Spec:
    """A platform that fills in a description, and drops the name of an endpoint."""
    content = dict(wanted.spec.value) | {"description": "of the platform"}
    return spec_of(content | ({"endpointName": ""} if wanted.kind == "NotificationRule" else {}))


def refusing(wanted: DesiredSpec) -> Spec | Failed:
    name = wanted.spec.display_name
    return Failed(f"{name!r} is too red", RejectionReason.CONTENT_REFUSED) if "red" in name else wanted.spec


RED, BLUE = an_object("Label", "red"), an_object("Label", "blue")
ENDPOINT = an_object("NotificationEndpointHTTP", "pager")
RULE = an_object("NotificationRule", "rule", endpointName="pager", statusRules=[{"currentLevel": "CRIT"}])


def test_values_that_the_platform_fills_in_are_planned_once() -> None:
    world = World(prepare=filling_in)
    plan = world.apply(RED)
    assert [step.new_spec and step.new_spec.value["description"] for step in plan.steps] == ["of the platform"]
    again = world.plan(RED)
    assert (step_lines(again), again.no_change) == ([], True)
    [diff] = world.last.diffs().resources
    assert diff.new_spec == diff.old_spec
    # The spec of the package still differs from the live one, so it is prepared; an equal one would not be.
    assert world.asked == {Key("Label", "red"): DesiredSpec("Label", world.entry("Label", "red").resource_id, RED.spec)}
    world.prepare = lambda wanted: wanted.spec
    world.apply(RED)
    world.plan(RED, BLUE)
    assert [*world.asked] == [Key("Label", "blue")]


def test_the_digest_covers_the_specs_as_the_platform_would_hold_them() -> None:
    as_it_is, filled_in = World(), World(prepare=filling_in)
    assert as_it_is.plan(RED).digest != filled_in.plan(RED).digest
    assert World(prepare=filling_in).plan(RED).digest == filled_in.plan(RED).digest


def test_a_reference_is_that_of_the_package_if_the_platform_drops_its_name() -> None:
    world = World(prepare=filling_in)
    plan = world.apply(ENDPOINT, RULE)
    assert world.asked[RULE.key].references == (Reference("/endpointName", "NotificationEndpointHTTP", ""),)
    [endpoint] = [each for each in world.live.values() if each.kind == "NotificationEndpointHTTP"]
    [rule] = [each for each in world.live.values() if each.kind == "NotificationRule"]
    assert rule.references == (Reference("/endpointName", "NotificationEndpointHTTP", endpoint.id),)
    assert rule.spec.value["endpointName"] == ""
    assert len(plan.steps) == 2
    assert world.plan(ENDPOINT, RULE).no_change
    assert world.asked[RULE.key].references == rule.references


def test_a_replacement_is_prepared_as_a_new_resource() -> None:
    world = World()
    world.apply(an_object("Bucket", "b", schemaType="implicit"))
    world.plan(an_object("Bucket", "b", schemaType="explicit"))
    assert world.asked[Key("Bucket", "b")].resource_id == ""
    world.plan(an_object("Bucket", "b", description="new"))
    assert world.asked[Key("Bucket", "b")].resource_id == world.entry("Bucket", "b").resource_id


def test_an_immutable_field_that_the_platform_would_not_change_replaces_nothing() -> None:
    """The platform leaves an immutable field empty, whatever the package declares."""
    world = World()
    world.apply(an_object("Bucket", "b"))
    world.prepare = lambda wanted: spec_of(dict(wanted.spec.value) | {"schemaType": ""})
    assert world.plan(an_object("Bucket", "b", schemaType="explicit")).no_change


def test_all_refusals_are_reported_at_once_with_their_locations() -> None:
    world = World(prepare=refusing)
    world.apply(BLUE)
    placed = RED._replace(location=Location("p.yml", 4, 3))
    with pytest.raises(ContentRefused) as raised:
        world.plan(BLUE, placed, an_object("Label", "infrared"), an_object("Label", "green"))
    assert raised.value.metadata == {
        "platform": "embedded",
        "count": "2",
        "objects": "Label 'infrared': 'infrared' is too red\np.yml:4:3: Label 'red': 'red' is too red",
    }
    assert str(raised.value) == (
        "platform 'embedded' rejects 2 objects; nothing was written:"
        " Label 'infrared': 'infrared' is too red; p.yml:4:3: Label 'red': 'red' is too red"
    )


def test_refusals_that_do_not_fit_are_counted() -> None:
    with pytest.raises(ContentRefused) as raised:
        World(prepare=refusing).plan(*(an_object("Label", f"red {number}") for number in range(200)))
    shown = raised.value.metadata["objects"].split("\n")
    assert 10 < len(shown) < 200
    assert str(raised.value).endswith(f"; and {200 - len(shown)} more")


def test_specs_of_removed_and_skipped_objects_are_not_prepared() -> None:
    world = World()
    world.apply(RED, BLUE)
    world.prepare = refusing
    world.plan(an_object("Label", "red", color="new"), skip=[Key("Label", "red"), Key("Label", "blue")])
    assert world.asked == {}
    world.plan(is_end=True)
    assert world.asked == {}


def test_an_adopted_resource_is_prepared_with_its_id() -> None:
    world = World()
    there = world.add("Label", "red", color="old")
    plan = world.plan(RED)
    assert world.asked[RED.key].resource_id == there.id
    assert [entry.origin for entry in plan.record.entries] == [Origin.ADOPTED]
