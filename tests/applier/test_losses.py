"""Updates that lose data run after the seal, and a rollback says what it does not bring back."""

import json
from typing import Any

import pytest

from tests.applier.drifting import drift, last_detection
from tests.applier.faulty import ItemFault
from tests.applier.history import numbers, roll_back
from tests.applier.test_policies import set_policy
from tests.applier.world import ROLLED_BACK, SUCCEEDED, Case, World, end, lines
from tests.apply.packages import an_object, text

HOUR = [{"type": "expire", "everySeconds": 3600}]
LABEL = an_object("Label", "l", "sensors")
BUCKET = an_object("Bucket", "b", "raw")
SHORT = an_object("Bucket", "b", "raw", retentionRules=HOUR)
REFUSED = an_object("Bucket", "x", "_system")


async def retention(case: Case) -> list[dict[str, Any]]:
    """The retention of the only bucket on the platform."""
    [bucket] = [each for each in (await case.look()).resources if each.kind == "Bucket"]
    found: list[dict[str, Any]] = json.loads(bucket.spec_json)["retentionRules"]
    return found


async def test_nothing_is_lost_by_an_apply_that_fails(faulty: World) -> None:
    case = await faulty.case_with(text(BUCKET))
    assert end(await case.apply(text(SHORT, REFUSED))).state == ROLLED_BACK
    assert await retention(case) == []
    assert not [each for each in case.driver.sent if each.HasField("update")]


async def test_a_loss_that_the_platform_rejects_is_left_over_and_retried(faulty: World) -> None:
    case = await faulty.case_with(text(BUCKET))
    case.driver.fail({1: ItemFault.REJECT})
    assert lines(await case.apply(text(SHORT, LABEL))) == [
        "accepted 2 steps",
        "stage 0 labels: 1",
        ["done: create Label l"],
        "stage 1 updates that lose data: 1",
        ["failed: update Bucket b"],
        ["SUCCEEDED update Bucket 'b': scripted refusal", "1 creates", "1 left"],
    ]
    assert (await drift(case)).statuses[("Bucket", "b")] == "pending"
    assert lines(await case.apply(text(SHORT, LABEL)))[-1] == ["SUCCEEDED", "1 updates, 1 irreversible, 1 losses"]
    assert (await drift(case)).differences == {}


async def test_a_rollback_to_a_revision_says_what_it_does_not_bring_back(faulty: World) -> None:
    case = await faulty.case_with(text(BUCKET))
    assert end(await case.apply(text(SHORT))).counts.losses == 1
    assert end(await case.apply(text(LABEL))).counts.losses == 0
    assert await numbers(case) == [3, 2, 1]

    events = await roll_back(case, 2)
    assert list(events.plan.warnings) == [
        "Bucket 'b' is created without data: a rollback does not bring back the data of a resource"
    ]
    events = await roll_back(case, 1)
    assert list(events.plan.warnings) == [
        "Bucket 'b' gets its earlier retentionRules: a rollback does not bring back data older than 1h"
    ]
    assert await retention(case) == []


async def test_a_protected_retention_is_pending_and_the_apply_is_no_drift_detection(faulty: World) -> None:
    case = await faulty.case_with(text(BUCKET))
    await set_policy(case, protect=True)
    before = await last_detection(case)
    wanted = text(LABEL, {**SHORT, "spec": {**SHORT["spec"], "description": "d"}})
    finished = end(await case.apply(wanted))
    assert (finished.state, finished.leftover_count) == (SUCCEEDED, 0)
    assert await retention(case) == []
    assert await last_detection(case) == before
    found = await drift(case)
    assert found.statuses == {("Bucket", "b"): "pending"}
    assert [field.path for field in found.of("Bucket", "b").fields] == ["/retentionRules"]


@pytest.mark.parametrize("stack", ["", "s"])
async def test_an_adopted_bucket_loses_data_too(faulty: World, stack: str) -> None:
    services = faulty.services
    await services.apply(text(BUCKET))
    plan = await services.plan(text(SHORT), stack=stack)
    assert [step.loss.data for step in plan.steps if step.loss] == ["data older than 1h"]
    assert (await services.apply(text(SHORT), stack=stack)).state == SUCCEEDED
