"""A platform that normalises specs, through real servers: plans still become empty."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from pkger.model.v1 import operation_pb2

from services.core.errors import ContentRefused
from services.core.model import Spec, Verb
from services.drivers.driver import Driver
from services.drivers.embedded.driver import EmbeddedDriver
from services.drivers.mutation import Create, Done, Fence, Mutation, Rejected, Update
from services.drivers.servicer import SERVICES, register
from services.kinds.format.canonical import spec_of
from services.rpc.process import Service
from services.settings import Settings
from services.system import MachineIds
from tests.applier.drifting import changed, drift_of
from tests.apply.packages import BUCKET, LABEL, STEPS, an_endpoint, an_object, text
from tests.cluster import Calls, Cluster, cluster
from tests.drivers.client import update
from tests.transport import InMemory

RULE = an_object(
    "NotificationRule", "rule", "rule", every="10m", endpointName="chat", statusRules=[{"currentLevel": "CRIT"}]
)
ENDPOINT = an_endpoint("Slack", "chat", "chat")


class Particular(EmbeddedDriver):
    """Strips names, and drops the name of the endpoint from rules."""

    async def prepare_specs(self, org: str, writes: Sequence[Create | Update]) -> list[Spec | Rejected]:
        return await super().prepare_specs(org, [_held(each) for each in writes])

    async def mutate(self, org: str, fence: Fence | None, batch: Sequence[Mutation]) -> list[Done | Rejected]:
        taken = [_held(each) if isinstance(each, Create | Update) else each for each in batch]
        return await super().mutate(org, fence, taken)


def _held(write: Create | Update) -> Create | Update:
    content = {**write.spec.value, "name": write.spec.display_name.strip()}
    return replace(write, spec=spec_of(content | ({"endpointName": ""} if "endpointName" in content else {})))


@asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[Service]:
    driver: Driver = Particular(settings.data / "platform.db", MachineIds())
    yield Service([register(driver)], SERVICES)
    await driver.close()


@pytest.fixture
async def particular(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with cluster(tmp_path, {"platform": opened}, transport=InMemory()) as running:
        yield running


async def test_what_the_platform_changes_is_planned_and_is_no_difference_then(particular: Cluster) -> None:
    package = text(an_object("Label", "red", " red "), ENDPOINT, RULE)
    planned = await particular.plan(package, stack="s", store=True)
    specs = {step.key.name: step.new_spec for step in planned.steps}
    assert specs["red"]
    assert (specs["red"].display_name, specs["red"].value["name"]) == ("red", "red")
    # The stored plan is equal to the returned one.
    stored = await particular.stored_plan(planned.name)
    assert stored.resource_diffs == planned.resource_diffs
    assert {json.loads(diff.new_spec_json)["name"] for diff in stored.resource_diffs} == {"red", "chat", "rule"}
    events = [event async for event in particular.apply_plan(planned.name, planned.digest)]
    assert events[-1].finished.state == operation_pb2.OPERATION_STATE_SUCCEEDED
    [rule] = await particular.resources(kinds=["NotificationRule"])
    assert (json.loads(rule.spec_json)["endpointName"], len(rule.references)) == ("", 1)
    again = await particular.plan(package, stack="s")
    assert (again.no_change, again.steps) == (True, [])
    assert all(diff.old_spec_json == diff.new_spec_json for diff in again.resource_diffs)


async def test_a_stored_plan_shows_what_is_unchanged_as_the_platform_holds_it(particular: Cluster) -> None:
    red = an_object("Label", "red", " red ")
    await particular.apply(text(red), stack="s")
    planned = await particular.plan(text(red, an_object("Label", "blue", "blue")), stack="s", store=True)
    stored = await particular.stored_plan(planned.name)
    assert stored.resource_diffs == planned.resource_diffs
    [shown] = [diff for diff in stored.resource_diffs if diff.key.name == "red"]
    assert json.loads(shown.new_spec_json)["name"] == "red"


async def test_rejected_content_is_reported_at_once_and_nothing_is_written(services: Cluster, calls: Calls) -> None:
    await services.apply(STEPS[1], stack="s")
    package = text(LABEL, an_object("Bucket", "one", "_one"), BUCKET, an_object("Bucket", "two", "_two"))
    calls.methods.clear()
    for _ in range(2):
        with pytest.raises(ContentRefused) as raised:
            await services.apply(package, stack="s")
    assert raised.value.metadata["count"] == "2"
    one, two = raised.value.metadata["objects"].split("\n")
    assert one.startswith("source-0:")
    assert "Bucket 'one': bucket names that start with an underscore" in one
    assert "Bucket 'two'" in two
    assert (calls.count("PrepareSpecs"), calls.count("Mutate")) == (2, 0)
    # The stack is not leased, and unchanged.
    assert (await services.plan(STEPS[1], stack="s")).no_change


async def test_only_what_differs_is_asked_about(services: Cluster, calls: Calls) -> None:
    await services.apply(STEPS[1], stack="s")
    calls.methods.clear()
    assert (await services.plan(STEPS[1], stack="s")).no_change
    assert calls.count("PrepareSpecs") == 0
    plan = await services.plan(text(an_object("Label", "lucid_einstein", "new")), stack="s")
    assert [step.verb for step in plan.steps if step.key.kind == "Label"] == [Verb.UPDATE]
    assert calls.count("PrepareSpecs") == 1
    await services.plan(destroy=True, stack="s")
    assert calls.count("PrepareSpecs") == 1


async def test_the_spec_as_the_platform_holds_it_is_no_drift(particular: Cluster, calls: Calls) -> None:
    package = text(an_object("Label", "red", " red "), ENDPOINT, RULE)
    assert (await particular.apply(package, stack="s")).state == operation_pb2.OPERATION_STATE_SUCCEEDED
    calls.methods.clear()

    found = await drift_of(particular, "s")

    assert found.differences == {}
    # All specs that differ are prepared in one call; a rule is compared by its references.
    assert [calls.count(each) for each in ("ListResources", "ReadResources", "PrepareSpecs")] == [4, 0, 1]


async def test_an_edit_is_compared_with_the_spec_that_the_platform_returned(particular: Cluster) -> None:
    await particular.apply(text(an_object("Label", "red", " red ")), stack="s")
    [label] = await particular.resources()
    await particular.mutate(update("Label", label.id, {**json.loads(label.spec_json), "color": "#000001"}))
    found = await drift_of(particular, "s")
    assert found.differences == {("Label", "red"): ("drifted", changed("/color", "", "#000001"))}
