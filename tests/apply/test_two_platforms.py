"""Two embedded platforms side by side: one package on both, with separate stacks."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from pkger.model.v1 import object_pb2, operation_pb2, plan_pb2

from services.core.errors import PlatformUnknown, StackNotFound
from services.core.model import Verb
from services.platforms import Platform
from tests.apply.packages import RENAMED, STEPS, an_endpoint, text
from tests.cluster import Cluster, cluster
from tests.drivers.client import DriverClient, delete, update
from tests.drivers.platforms import driver_client

KINDS = ("Bucket", "Dashboard", "Label")

SUCCEEDED = operation_pb2.OPERATION_STATE_SUCCEEDED


@pytest.fixture
async def lab(tmp_path: Path) -> AsyncIterator[DriverClient]:
    """The driver of the platform ``lab``, which the platforms file has beside the default one."""
    async with driver_client(Platform("lab", "embedded", ""), tmp_path) as client:
        rows = f"embedded: {{driver: embedded}}\nlab: {{address: '{client.address}'}}\n"
        (tmp_path / "platforms.yml").write_text(rows)
        yield client


@pytest.fixture
async def services(lab: DriverClient, tmp_path: Path) -> AsyncIterator[Cluster]:
    async with cluster(tmp_path) as running:
        yield running


@pytest.fixture
async def both(services: Cluster) -> Cluster:
    """One package on both platforms, kept by stacks of one name."""
    for platform in ("", "lab"):
        assert (await services.apply(STEPS[1], stack="s", platform=platform)).state == SUCCEEDED
    return services


async def ids(driver: DriverClient) -> set[str]:
    return {resource.id for resource in await driver.listing(*KINDS, org="default")}


async def test_each_platform_has_resources_and_a_record_of_its_own(both: Cluster, lab: DriverClient) -> None:
    here, there = await both.record("s"), await both.record("s", platform="lab")
    assert here.id != there.id
    assert (here.stack.target.platform, there.stack.target.platform) == ("embedded", "lab")
    assert here.ids.keys() == there.ids.keys()
    assert set(here.ids.values()) == {resource.id for resource in await both.resources()}
    assert set(there.ids.values()) == await ids(lab)
    assert not set(here.ids.values()) & set(there.ids.values())
    assert await both.stack_names() == ["s", "s"]


async def test_an_apply_to_one_changes_nothing_of_the_other(both: Cluster, lab: DriverClient) -> None:
    before, held = await both.record("s"), await both.resources()
    await both.apply(STEPS[4], stack="s", platform="lab")
    assert len((await both.record("s", platform="lab")).resources) == 4
    assert (await both.record("s"), await both.resources()) == (before, held)
    assert (await both.plan(STEPS[1], stack="s")).no_change
    assert not (await both.plan(STEPS[1], stack="s", platform="lab")).no_change


async def test_drift_of_one_is_planned_and_corrected_there_alone(both: Cluster, lab: DriverClient) -> None:
    [label] = await lab.listing("Label", org="default")
    [bucket] = await lab.listing("Bucket", org="default")
    await lab.made(update("Label", label.id, {"name": "renamed by people"}), org="default")
    await lab.mutate(delete("Bucket", bucket.id), org="default")
    plan = await both.plan(STEPS[1], stack="s", platform="lab")
    verbs = [(step.verb, step.key.kind) for step in plan.steps]
    assert verbs == [(Verb.UPDATE, "Label"), (Verb.CREATE, "Bucket"), (Verb.ATTACH, "Bucket")]
    assert (await both.plan(STEPS[1], stack="s")).no_change
    generation = (await both.record("s")).generation
    assert (await both.apply(STEPS[1], stack="s", platform="lab")).state == SUCCEEDED
    assert (await both.plan(STEPS[1], stack="s", platform="lab")).no_change
    assert (await both.record("s")).generation == generation


async def test_a_stored_plan_runs_on_its_own_platform(both: Cluster, lab: DriverClient) -> None:
    plan = await both.plan(STEPS[3], stack="s", platform="lab", store=True)
    assert plan.header.target.platform == "lab"
    events = [event async for event in both.apply_plan(plan.name, plan.digest)]
    assert events[-1].finished.state == SUCCEEDED
    assert [label.display_name for label in await lab.listing("Label", org="default")] == ["cool label name"]
    assert [label.display_name for label in await both.resources(kinds=["Label"])] == ["label_1"]


async def test_an_uninstall_of_one_leaves_the_other(both: Cluster, lab: DriverClient) -> None:
    before, held = await both.record("s"), await both.resources()
    assert (await both.uninstall("s", platform="lab")).state == SUCCEEDED
    assert await ids(lab) == set()
    with pytest.raises(StackNotFound):
        await both.record("s", platform="lab")
    assert (await both.record("s"), await both.resources()) == (before, held)
    assert (await both.uninstall("s")).state == SUCCEEDED
    assert await both.resources() == []


async def test_secrets_are_written_to_the_platform_of_the_target(services: Cluster, lab: DriverClient) -> None:
    package = text(an_endpoint("Slack", "chat", "chat"))
    await services.apply(package, stack="s", platform="lab", secrets={"slack-token": "canary-8a1f"})
    assert await lab.secret_keys("default") == ["slack-token"]
    assert await services.secret_keys() == []
    assert (await services.plan(package)).missing_secrets == ["slack-token"]


async def test_a_stack_stays_on_its_platform(both: Cluster) -> None:
    """A stack that is named by its id needs no target, and another target is refused."""
    there = await both.record("s", platform="lab")
    plan = await both.plan(text(RENAMED), stack_ref=object_pb2.StackRef(id=there.id))
    assert plan.header.target.platform == "lab"
    assert plan.header.kind == plan_pb2.OPERATION_KIND_APPLY


async def test_an_unknown_platform_is_reported_with_those_that_are_known(services: Cluster) -> None:
    for call in (
        services.plan(STEPS[1], platform="moon"),
        services.apply(STEPS[1], platform="moon"),
        services.apply(STEPS[1], stack="s", platform="moon"),
    ):
        with pytest.raises(PlatformUnknown) as raised:
            await call
        assert str(raised.value) == "no platform 'moon' is configured; configured are: embedded, lab"
        assert raised.value.metadata == {"platform": "moon", "platforms": "embedded,lab"}
    assert await services.stack_names() == []


async def test_without_a_row_embedded_an_empty_platform_is_unknown(tmp_path: Path) -> None:
    (tmp_path / "platforms.yml").write_text("lab: {address: 'unix:/nobody'}")
    async with cluster(tmp_path) as services:
        with pytest.raises(PlatformUnknown) as raised:
            await services.plan(STEPS[1])
        assert raised.value.metadata == {"platform": "embedded", "platforms": "lab"}
