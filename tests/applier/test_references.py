"""
Ids that resources refer to: bound when a step runs, and again when it is undone (docs/reference/engine.md, "Steps
and stages").
"""

import json

import pytest
from pkger.model.v1 import object_pb2

from services.core.model import (
    InventoryEntry,
    Key,
    Origin,
    Plan,
    RecordChanges,
    Reference,
    Step,
    StepReference,
    Target,
    Verb,
)
from services.engine.effects import effect_of, inverse_of
from services.engine.ids import ResourceIds
from services.kinds.format.canonical import spec_of
from tests.applier.faulty import ItemFault
from tests.applier.world import ROLLED_BACK, Case, World, end
from tests.apply.packages import an_endpoint, an_object, text
from tests.drivers.client import create, reference

RULE, PAGER = Key("NotificationRule", "r"), Key("NotificationEndpointPagerDuty", "pager")
OLD, NEW = "1" * 16, "2" * 16


def a_plan(*steps: Step, entries: tuple[InventoryEntry, ...] = ()) -> Plan:
    return Plan(Target(), "", 0, (), steps, RecordChanges(entries), no_change=False)


def a_step(verb: Verb, key: Key, resource_id: str = "", *references: StepReference, number: int = 0) -> Step:
    is_before = verb is Verb.DELETE
    spec = spec_of({"name": key.name})
    return Step(
        number,
        0,
        verb,
        key,
        resource_id,
        old_spec=spec if is_before else None,
        new_spec=None if is_before else spec,
        old_references=references if is_before else (),
        references=() if is_before else references,
    )


def test_a_reference_to_what_an_earlier_step_creates_is_known_after_it() -> None:
    endpoint = a_step(Verb.CREATE, PAGER)
    rule = a_step(Verb.CREATE, RULE, "", StepReference("/endpointName", PAGER), number=1)
    ids = ResourceIds(a_plan(endpoint, rule))
    assert ids.references(rule.references) == (Reference("/endpointName", PAGER.kind, ""),)
    effect_of(endpoint).learn(ids, NEW)
    assert ids.references(rule.references) == (Reference("/endpointName", PAGER.kind, NEW),)


def test_a_deleted_rule_comes_back_with_the_endpoint_that_came_back_before_it() -> None:
    rule = a_step(Verb.DELETE, RULE, "3" * 16, StepReference("/endpointName", PAGER, OLD))
    endpoint = a_step(Verb.DELETE, PAGER, OLD, number=1)
    ids = ResourceIds(a_plan(rule, endpoint))
    for step in (rule, endpoint):
        effect_of(step).learn(ids, step.resource_id)
    again = effect_of(rule).inverse()
    assert ids.references(again.references) == (Reference("/endpointName", PAGER.kind, ""),)
    inverse_of(effect_of(endpoint)).learn(ids, NEW)
    assert ids.references(again.references) == (Reference("/endpointName", PAGER.kind, NEW),)


@pytest.mark.parametrize("key", [PAGER, Key(PAGER.kind, "")])
def test_what_is_neither_in_the_stack_nor_changed_keeps_the_id_of_the_plan(key: Key) -> None:
    rule = a_step(Verb.CREATE, RULE, "", StepReference("/endpointName", key, OLD))
    assert ResourceIds(a_plan(rule)).references(rule.references) == (Reference("/endpointName", PAGER.kind, OLD),)


def test_the_id_of_the_inventory_is_the_one_that_counts() -> None:
    rule = a_step(Verb.CREATE, RULE, "", StepReference("/endpointName", PAGER, OLD))
    entry = InventoryEntry(PAGER, NEW, Origin.CREATED)
    assert ResourceIds(a_plan(rule, entries=(entry,))).references(rule.references)[0].id == NEW


async def only(faulty: World, case: Case, kind: str) -> object_pb2.Resource:
    [found] = await faulty.services.resources(case.org, [kind])
    return found


async def test_an_undone_deletion_restores_the_reference_of_an_unowned_rule(faulty: World) -> None:
    """The endpoint is created again with another id, and only pkger updates the rule."""
    chat = an_endpoint("Slack", "chat", "chat")
    case = await faulty.case_with(
        text(chat, an_endpoint("PagerDuty", "pager", "pager"), an_object("Label", "red", "red"))
    )
    pager = await only(faulty, case, PAGER.kind)
    bound = [reference("/endpointName", pager.kind, pager.id)]
    theirs = create("NotificationRule", {"name": "theirs", "endpointName": "pager"}, "key", bound)
    await faulty.services.mutate(theirs, org=case.org)
    before = await only(faulty, case, "NotificationRule")
    case.driver.heal()
    case.driver.fail({2: ItemFault.REJECT}, lasting=True)
    events = await case.apply(text(chat))
    assert [(step.key.kind, step.reason) for step in events.plan.steps] == [
        ("NotificationRule", "what it refers to is deleted"),
        (PAGER.kind, "left the package"),
        ("Label", "left the package"),
    ]
    assert end(events).state == ROLLED_BACK
    again, after = await only(faulty, case, PAGER.kind), await only(faulty, case, "NotificationRule")
    assert again.id != pager.id
    assert json.loads(again.spec_json) == json.loads(pager.spec_json)
    assert (after.id, after.spec_json) == (before.id, before.spec_json)
    assert [each.id for each in after.references] == [again.id]
