"""Updates that lose data (docs/reference/engine.md, "Data losses")."""

from dataclasses import replace
from typing import Any

import pytest

from services.core.model import DataLoss, Key, Object, Undo
from tests.planner.world import World, an_object, step_lines

LOSS = DataLoss("/retentionRules", "data older than 1h")


def a_bucket(key: str = "b", hours: int = 0, **spec: Any) -> Object:
    """A bucket that keeps data for *hours*; 0: for ever."""
    rules = [{"type": "expire", "everySeconds": hours * 3600}] if hours else []
    return an_object("Bucket", key, retentionRules=rules, **spec)


@pytest.mark.parametrize("hours", [0, 2])
def test_a_shorter_retention_is_an_update_that_cannot_be_undone_and_runs_last(hours: int) -> None:
    world = World()
    world.apply(a_bucket(hours=hours), an_object("Task", "t"), a_bucket("gone"))
    plan = world.plan(a_bucket(hours=1), an_object("Variable", "v"))
    assert step_lines(plan) == [
        "0 create Variable v",
        "1 delete Task t",
        "2 delete Bucket gone",
        "3 update Bucket b",
    ]
    assert plan.stages[-1] == "updates that lose data"
    assert [(step.undo, step.loss) for step in plan.steps[2:]] == [(Undo.NONE, None), (Undo.NONE, LOSS)]
    world.run(plan)
    assert world.plan(a_bucket(hours=1), an_object("Variable", "v")).no_change


@pytest.mark.parametrize("hours", [0, 3])
def test_a_longer_retention_is_an_ordinary_update(hours: int) -> None:
    world = World()
    world.apply(a_bucket(hours=1))
    [step] = world.plan(a_bucket(hours=hours)).steps
    assert (step.undo, step.loss) == (Undo.EXACT, None)


def test_other_changes_of_the_bucket_come_first_and_can_be_undone() -> None:
    """Another bucket gets the name that the first one releases."""
    world = World()
    world.apply(a_bucket(name="old"))
    wanted = (a_bucket(name="new", hours=1, description="d"), a_bucket("c", name="old"))
    plan = world.plan(*wanted)
    assert step_lines(plan) == ["0 update Bucket b", "1 create Bucket c", "2 update Bucket b"]
    first, _, last = plan.steps
    assert (first.reason, first.undo, first.loss) == ("differs in description, name", Undo.EXACT, None)
    assert (last.reason, last.undo, last.loss) == ("differs in retentionRules", Undo.NONE, LOSS)
    assert first.new_spec == last.old_spec == a_bucket(name="new", description="d").spec
    world.run(plan)
    assert world.plan(*wanted).no_change


def test_a_replaced_bucket_has_no_update() -> None:
    world = World()
    world.apply(a_bucket())
    plan = world.plan(a_bucket(hours=1, schemaType="explicit"))
    assert step_lines(plan) == ["0 delete Bucket b", "1 create Bucket b"]


def test_the_conflict_of_an_adopted_bucket_names_the_loss() -> None:
    world = World()
    world.add("Bucket", "b")
    plan = world.plan(a_bucket(hours=1))
    [conflict] = plan.remarks.conflicts
    assert conflict.message.endswith("its retentionRules will be overwritten, so it loses data older than 1h")
    assert [step.loss for step in plan.steps] == [LOSS]


@pytest.mark.parametrize("is_adopted", [False, True])
def test_a_protected_bucket_keeps_its_retention_and_gets_all_other_changes(is_adopted: bool) -> None:
    world = World()
    if is_adopted:
        world.add("Bucket", "b")
    else:
        world.apply(a_bucket())
    world.record = replace(world.record, policy={"protect": True})
    plan = world.plan(a_bucket(hours=1, description="d"))
    [step] = plan.steps
    assert (step.new_spec, step.undo) == (a_bucket(description="d").spec, Undo.EXACT)
    assert plan.remarks.warnings == (
        "protected: Bucket 'b' keeps its retentionRules, as the change would lose data older than 1h",
    )
    # The resource is not as declared, so the apply does not count as a drift detection.
    assert plan.untouched_count == 1
    world.run(plan)
    assert world.plan(a_bucket(hours=1, description="d")).no_change
    assert step_lines(world.plan(a_bucket(hours=0))) == ["0 update Bucket b"]


def test_a_protection_ends_with_the_apply_after_its_policy() -> None:
    world = World()
    world.record = replace(world.record, policy={"protect": True})
    world.apply(a_bucket())
    world.record = replace(world.record, policy={})
    assert world.apply(a_bucket(hours=1)).steps == ()
    assert [step.loss for step in world.plan(a_bucket(hours=1)).steps] == [LOSS]


def test_a_protection_of_other_objects_keeps_nothing() -> None:
    world = World()
    world.apply(a_bucket())
    world.record = replace(world.record, policy={"overrides": [{"match": {"kind": "Task"}, "protect": True}]})
    assert [step.key for step in world.plan(a_bucket(hours=1)).steps] == [Key("Bucket", "b")]
