"""Ids of created resources in diffs and summaries of plans."""

from typing import Any

import orjson
import pytest
from pkger.model.v1 import operation_pb2
from pkger.model.v1.operation_pb2 import OperationEvent, StepDone, StepFailed, StepOutcome, StepsEnded, StepsUndone

from services.core.model import DiffStatus, Key, LabelMappingDiff, Object, PlanDiffs, ResourceDiff
from services.kinds.format.canonical import canonical_text
from services.kinds.registry import KINDS
from services.kinds.summary import planned_summary
from services.rpc.plan_parts import JoinedPlan, diffs_parts
from services.views.ids import fill_in
from tests.planner.world import an_object

RED, GREEN, RAW = Key("Label", "red"), Key("Label", "green"), Key("Bucket", "raw")
PACKAGE = (
    an_object("Bucket", "raw", ["green", "red"]),
    an_object("Label", "green"),
    an_object("Label", "red"),
)


def a_plan(objects: tuple[Object, ...], known: dict[Key, str], creates: dict[Key, int]) -> JoinedPlan:
    """The plan of *objects*: with *known* ids, and the steps that create resources."""
    plan = JoinedPlan()
    diffs = tuple(
        ResourceDiff(
            item.key, known.get(item.key, ""), DiffStatus.NEW, None, item.spec, create_step=creates.get(item.key)
        )
        for item in objects
    )
    mappings = tuple(
        LabelMappingDiff(DiffStatus.NEW, item.key, known.get(item.key, ""), label, known.get(label, ""))
        for item in objects
        for label in item.associations
    )
    for part in diffs_parts(PlanDiffs(diffs, mappings)):
        plan.add(part)
    plan.summaries = [summary_of(objects, known)]
    return plan


def summary_of(objects: tuple[Object, ...], ids: dict[Key, str]) -> str:
    return canonical_text(planned_summary(objects, (), ids, (), (), ()))


def ended(**ids: str) -> OperationEvent:
    outcomes = [StepOutcome(step=int(step[1:]), done=StepDone(resource_id=id_)) for step, id_ in ids.items()]
    return OperationEvent(steps_ended=StepsEnded(outcomes=outcomes))


def undone(*steps: int) -> OperationEvent:
    return OperationEvent(
        steps_undone=StepsUndone(outcomes=[StepOutcome(step=step, done=StepDone()) for step in steps])
    )


def shown(plan: JoinedPlan) -> tuple[list[str], list[tuple[str, str]]]:
    mappings = [(each.resource_id, each.label_id) for each in plan.diffs.label_mappings]
    return [each.resource_id for each in plan.diffs.resources], mappings


def test_ids_of_created_resources_are_put_into_diffs_and_summary() -> None:
    plan = a_plan(PACKAGE, {RED: "0c"}, {GREEN: 0, RAW: 1})

    fill_in(plan, [ended(s0="0a"), OperationEvent(accepted=operation_pb2.Accepted()), ended(s1="0b", s2="0b")])

    assert shown(plan) == (["0b", "0a", "0c"], [("0b", "0a"), ("0b", "0c")])
    assert plan.summary == summary_of(PACKAGE, {RED: "0c", GREEN: "0a", RAW: "0b"})


def test_resources_whose_creation_failed_or_was_undone_have_no_new_id() -> None:
    """A resource that stands in for a missing one keeps the recorded id until then."""
    plan = a_plan(PACKAGE, {RED: "0c", RAW: "0f"}, {GREEN: 0, RED: 1, RAW: 2})
    failed = OperationEvent(steps_ended=StepsEnded(outcomes=[StepOutcome(step=2, failed=StepFailed())]))
    kept = OperationEvent(steps_undone=StepsUndone(outcomes=[StepOutcome(step=1, failed=StepFailed())]))

    fill_in(plan, [ended(s0="0a", s1="0b"), failed, undone(0), kept])

    assert shown(plan) == (["0f", "", "0b"], [("0f", ""), ("0f", "0b")])
    assert plan.summary == summary_of(PACKAGE, {RED: "0b", RAW: "0f"})


def test_a_plan_without_a_summary_gets_none() -> None:
    plan = a_plan(PACKAGE, {}, {GREEN: 0})
    plan.summaries = []

    fill_in(plan, [ended(s0="0a")])

    assert (shown(plan)[0], plan.summary) == (["", "0a", ""], "")


def _objects(kind: str, **spec: Any) -> tuple[Object, ...]:
    return (an_object(kind, "one", **spec),)


@pytest.mark.parametrize("kind", ["Bucket", "Dashboard", "Label", "Task", "Variable", "NotificationEndpointHTTP"])
def test_an_entry_of_each_form_gets_its_id_where_the_planner_would_put_it(kind: str) -> None:
    objects = (an_object(kind, "one"),)
    plan = a_plan(objects, {}, {objects[0].key: 0})

    fill_in(plan, [ended(s0="ff")])

    assert plan.summary == summary_of(objects, {objects[0].key: "ff"})
    assert orjson.loads(plan.summary)[KINDS[kind].summary_key]
