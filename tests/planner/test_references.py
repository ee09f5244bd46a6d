"""
Rules and the endpoints that they refer to (docs/reference/engine.md, "References"): which references are set, when, and
which ones a deletion removes.
"""

from dataclasses import replace

import pytest

from services.core.errors import RequestInvalid
from services.core.model import Key, Object, Reference, StepReference
from services.drivers.embedded.kinds import EMBEDDED
from services.kinds.registry import KINDS
from tests.planner.world import World, an_object, step_lines

RULE = Key("NotificationRule", "r")
PAGER = an_object("NotificationEndpointPagerDuty", "e")
SLACK = an_object("NotificationEndpointSlack", "s")


def a_rule(endpoint: str = "e", **spec: str) -> Object:
    return an_object("NotificationRule", "r", endpointName=endpoint, **spec)


def bound(world: World, kind: str = "NotificationRule", name: str = "r") -> list[str]:
    """Ids of the resources that the resource of an object refers to."""
    return [each.id for each in world.live[world.entry(kind, name).resource_id].references]


def changes(world: World, key: Key = RULE) -> list[tuple[str, str, str]]:
    """The changes of an object in the diffs of the last plan."""
    return [
        (change.path, change.old, change.new)
        for diff in world.last.diffs().resources
        if diff.key == key
        for change in diff.changes
    ]


def replacing_world() -> World:
    """A platform on which the URL of a Slack endpoint cannot change."""
    slack = replace(EMBEDDED.kinds["NotificationEndpointSlack"], immutable_paths=("/url",))
    return World(platform=replace(EMBEDDED, kinds={**EMBEDDED.kinds, slack.kind: slack}))


def test_a_rule_is_created_after_its_endpoint_and_bound_to_it() -> None:
    world = World()
    plan = world.apply(a_rule(), PAGER)
    assert step_lines(plan) == ["0 create NotificationEndpointPagerDuty e", "1 create NotificationRule r"]
    assert plan.steps[1].references == (StepReference("/endpointName", PAGER.key),)
    assert bound(world) == [world.entry(*PAGER.key).resource_id]
    assert world.plan(a_rule(), PAGER).no_change


def test_the_diff_of_a_rule_with_another_endpoint_has_both_names_of_the_package() -> None:
    world = World()
    world.apply(a_rule(), PAGER, SLACK)
    plan = world.apply(a_rule("s"), PAGER, SLACK)
    assert step_lines(plan) == ["0 update NotificationRule r"]
    assert changes(world) == [("/endpointName", '"e"', '"s"')]
    assert [each.key for each in plan.steps[0].old_references] == [PAGER.key]
    assert bound(world) == [world.entry(*SLACK.key).resource_id]


def test_a_rule_whose_endpoint_has_another_name_is_not_written() -> None:
    """The name of the endpoint is one of the package: after a change of metadata.name it leads to the same resource."""
    world = World()
    world.apply(a_rule("e"), an_object("NotificationEndpointSlack", "e", name="team"))
    renamed = an_object("NotificationEndpointSlack", "f", name="team")
    assert step_lines(world.plan(a_rule("f"), renamed)) == []
    plan = world.plan(a_rule("f", description="more"), renamed)
    assert step_lines(plan) == ["0 update NotificationRule r"]
    assert changes(world) == [("/description", '""', '"more"')]


def test_a_rule_refers_to_its_endpoint_that_is_created_again() -> None:
    world = World()
    world.apply(a_rule(), PAGER)
    gone = world.entry(*PAGER.key).resource_id
    del world.live[gone]
    world._refer(world.entry(*RULE).resource_id, ())
    plan = world.apply(a_rule(), PAGER)
    assert step_lines(plan) == ["0 create NotificationEndpointPagerDuty e", "1 update NotificationRule r"]
    assert changes(world) == [("/endpointName", "", '{"kind":"NotificationEndpointPagerDuty"}')]
    assert bound(world) == [world.entry(*PAGER.key).resource_id] != [gone]


def test_a_rule_whose_endpoint_was_changed_outside_the_stack_gets_its_own_again() -> None:
    world = World()
    world.apply(a_rule(), PAGER)
    other = world.add("NotificationEndpointHTTP", "theirs")
    world._refer(world.entry(*RULE).resource_id, [Reference("/endpointName", other.kind, other.id)])
    plan = world.apply(a_rule(), PAGER)
    own = world.entry(*PAGER.key).resource_id
    assert step_lines(plan) == ["0 update NotificationRule r"]
    assert plan.steps[0].old_references == (StepReference("/endpointName", Key(other.kind, ""), other.id),)
    assert changes(world) == [
        (
            "/endpointName",
            f'{{"id":"{other.id}","kind":"NotificationEndpointHTTP"}}',
            f'{{"id":"{own}","kind":"NotificationEndpointPagerDuty"}}',
        )
    ]
    assert bound(world) == [own]


def test_a_rule_moves_to_its_new_endpoint_before_the_old_one_is_removed() -> None:
    world = World()
    world.apply(a_rule(), PAGER)
    plan = world.apply(a_rule("s"), SLACK)
    assert step_lines(plan) == [
        "0 create NotificationEndpointSlack s",
        "1 update NotificationRule r",
        "2 delete NotificationEndpointPagerDuty e",
    ]


def test_rules_are_removed_before_their_endpoints_and_their_steps_have_the_references() -> None:
    world = World()
    world.apply(a_rule(), PAGER)
    plan = world.apply()
    assert step_lines(plan) == ["0 delete NotificationRule r", "1 delete NotificationEndpointPagerDuty e"]
    assert [each.key for each in plan.steps[0].old_references] == [PAGER.key]


def test_a_plan_removes_the_references_to_deleted_resources_in_steps() -> None:
    """Otherwise the platform would remove them, and an undo could not restore them."""
    world = World()
    world.apply(a_rule(), PAGER, SLACK)
    pager = world.entry(*PAGER.key).resource_id
    theirs = world.add(
        "NotificationRule", "theirs", [Reference("/endpointName", PAGER.key.kind, pager)], endpointName="e"
    )
    plan = world.apply(a_rule("s"), SLACK)
    assert step_lines(plan) == [
        "0 update NotificationRule r",
        f"1 update NotificationRule {theirs.id}",
        "2 delete NotificationEndpointPagerDuty e",
    ]
    removal = plan.steps[1]
    assert (removal.old_spec, removal.new_spec, removal.references) == (theirs.spec, theirs.spec, ())
    assert removal.old_references == (StepReference("/endpointName", PAGER.key, pager),)
    assert world.plan(a_rule("s"), SLACK).no_change


def test_a_rule_loses_a_replaced_endpoint_and_gets_its_replacement() -> None:
    world = replacing_world()
    world.apply(a_rule("s"), SLACK)
    before = world.entry(*SLACK.key).resource_id
    moved = an_object("NotificationEndpointSlack", "s", url="https://example.org")
    plan = world.apply(a_rule("s", description="new"), moved)
    assert step_lines(plan) == [
        "0 update NotificationRule r",
        "1 delete NotificationEndpointSlack s",
        "2 create NotificationEndpointSlack s",
        "3 update NotificationRule r",
    ]
    assert plan.stages == ("references", "removals", "replacements", "replacements")
    assert [each.id for each in plan.steps[0].old_references] == [before]
    assert plan.steps[3].old_references == ()
    assert bound(world) == [world.entry(*SLACK.key).resource_id] != [before]
    assert world.plan(a_rule("s", description="new"), moved).no_change


def test_a_new_rule_waits_for_the_endpoint_that_is_replaced_and_its_labels_wait_for_it() -> None:
    world = replacing_world()
    label = an_object("Label", "l")
    world.apply(label, SLACK)
    moved = an_object("NotificationEndpointSlack", "s", url="https://example.org")
    rule = an_object("NotificationRule", "r", ["l"], endpointName="s")
    assert step_lines(world.apply(label, rule, moved)) == [
        "0 delete NotificationEndpointSlack s",
        "1 create NotificationEndpointSlack s",
        "2 create NotificationRule r",
        "3 attach NotificationRule r l",
    ]


@pytest.mark.parametrize("skip", [PAGER.key, Key(PAGER.key.kind, "")])
def test_a_skipped_endpoint_of_the_stack_serves_a_rule(skip: Key) -> None:
    world = World()
    world.apply(PAGER, a_rule())
    assert world.plan(a_rule(), PAGER, skip=[skip]).no_change
    world.apply(PAGER)
    plan = world.plan(a_rule(), PAGER, skip=[skip])
    assert step_lines(plan) == ["0 create NotificationRule r"]
    assert plan.steps[0].references == (StepReference("/endpointName", PAGER.key, world.entry(*PAGER.key).resource_id),)


def test_a_skipped_endpoint_that_is_live_serves_a_rule_by_its_name() -> None:
    world = World()
    live = world.add("NotificationEndpointPagerDuty", "e")
    plan = world.plan(a_rule(), PAGER, skip=[PAGER.key])
    assert step_lines(plan) == ["0 create NotificationRule r"]
    assert [each.id for each in plan.steps[0].references] == [live.id]
    assert [entry.key for entry in world.owned_after(plan)] == [RULE]


def test_a_skipped_endpoint_that_is_of_another_kind_today_serves_a_rule() -> None:
    world = World()
    world.apply(an_object("NotificationEndpointSlack", "e", name="team"))
    plan = world.plan(a_rule(), PAGER, skip=[PAGER.key, Key("NotificationEndpointSlack", "e")])
    assert [each.key for each in plan.steps[0].references] == [Key("NotificationEndpointSlack", "e")]
    other = World()
    live = other.add("NotificationEndpointSlack", "e")
    plan = other.plan(a_rule(), PAGER, skip=[PAGER.key])
    assert [(each.key.kind, each.id) for each in plan.steps[0].references] == [(live.kind, live.id)]


def test_a_skipped_endpoint_that_is_nowhere_is_refused_with_both_names() -> None:
    world = World()
    world.add("NotificationEndpointSlack", "another")
    with pytest.raises(RequestInvalid, match="NotificationRule 'r' refers to NotificationEndpointPagerDuty 'e'"):
        world.plan(a_rule(), PAGER, skip=[PAGER.key])
    assert step_lines(world.plan(a_rule(), PAGER, skip=[PAGER.key, RULE])) == []


def test_the_digest_covers_the_references() -> None:
    world, other = World(), World()
    for each in (world, other):
        each.apply(PAGER, SLACK)
        each.add("NotificationRule", "unrelated", endpointName="e")
    assert world.plan(a_rule("s"), PAGER, SLACK).digest == other.plan(a_rule("s"), PAGER, SLACK).digest
    rule, pager, slack = a_rule("s"), PAGER, SLACK
    bindings = []
    for each, endpoint in ((world, pager), (other, slack)):
        each.apply(rule, pager, slack)
        reference = Reference("/endpointName", endpoint.key.kind, each.entry(*endpoint.key).resource_id)
        each._refer(each.entry(*RULE).resource_id, [reference])
        bindings.append(each.plan(a_rule("s", description="x"), pager, slack))
    assert step_lines(bindings[0]) == step_lines(bindings[1])
    assert bindings[0].digest != bindings[1].digest


def test_kinds_that_packages_do_not_have_are_ignored() -> None:
    spaceship = replace(EMBEDDED.kinds["Task"], kind="Spaceship")
    world = World(platform=replace(EMBEDDED, kinds={**EMBEDDED.kinds, "Spaceship": spaceship}))
    assert "Spaceship" not in KINDS
    assert len(world.apply(a_rule(), PAGER).steps) == 2


def test_the_diff_of_a_reference_has_the_kind_of_its_resource() -> None:
    """An endpoint changes its kind: the rule refers to the old resource, which has the old kind."""
    world = World()
    world.apply(a_rule(), an_object("NotificationEndpointSlack", "e"))
    slack = world.entry("NotificationEndpointSlack", "e").resource_id
    world.plan(a_rule(), PAGER)
    assert changes(world) == [
        (
            "/endpointName",
            f'{{"id":"{slack}","kind":"NotificationEndpointSlack"}}',
            '{"kind":"NotificationEndpointPagerDuty"}',
        )
    ]
