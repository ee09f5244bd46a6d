"""A package whose objects have new names, as each export of InfluxDB gives them, through real servers."""

from pkger.driver.v1 import driver_pb2
from pkger.model.v1 import drift_pb2, object_pb2, operation_pb2, plan_pb2
from pkger.planner.v1 import planner_pb2
from pkger.planner.v1.planner_pb2_grpc import PlannerServiceStub

from services.core.model import Verb
from tests.apply.packages import a_rule, an_endpoint, an_object, text
from tests.cluster import Cluster, Shown

SUCCEEDED = operation_pb2.OPERATION_STATE_SUCCEEDED
KINDS = ("Dashboard", "Label", "NotificationEndpointHTTP", "NotificationRule", "Task", "Telegraf")


def package(suffix: str, *more: dict[str, object], every: str = "1h") -> str:
    """One object of each kind; the suffix is part of all names but the display names."""
    label = f"infra-{suffix}"
    return text(
        an_object("Label", label, "infra"),
        an_object("Dashboard", f"hosts-{suffix}", "Hosts", [label]),
        an_object("Task", f"hourly-{suffix}", "Hourly", [label], every=every, query="buckets()"),
        an_object("Telegraf", f"agent-{suffix}", "Agent", config="[agent]"),
        an_endpoint("HTTP", f"hook-{suffix}", "Hook"),
        a_rule(f"page-{suffix}", f"hook-{suffix}", "Page"),
        *more,
    )


async def platform(services: Cluster) -> list[bytes]:
    """All resources with their ids."""
    return [resource.SerializeToString(deterministic=True) for resource in await services.resources()]


async def names(services: Cluster) -> list[tuple[str, str]]:
    """Kind and name of each object of the stack, sorted."""
    return sorted((await services.record("s")).ids)


async def test_new_names_change_the_record_and_nothing_on_the_platform(services: Cluster) -> None:
    await services.apply(package("1"), stack="s")
    before = await platform(services)

    plan = await services.plan(package("2"), stack="s")
    assert (plan.steps, plan.no_change) == ([], False)
    assert [(each.old_key.name[-2:], each.new_key.name[-2:]) for each in plan.record.key_changes] == [("-1", "-2")] * 6

    finished = await services.apply(package("2"), stack="s")
    assert (finished.state, finished.counts) == (SUCCEEDED, plan_pb2.StepCounts())
    assert await platform(services) == before
    assert [(kind, name[-2:]) for kind, name in await names(services)] == [(kind, "-2") for kind in KINDS]
    assert (await services.plan(package("2"), stack="s")).no_change
    exported = await services.export(stack="s")
    assert sorted((each["kind"], each["metadata"]["name"]) for each in exported.objects) == await names(services)
    assert await drift(services) == {drift_pb2.DRIFT_STATUS_IN_SYNC}


async def drift(services: Cluster) -> set[drift_pb2.DriftStatus.ValueType]:
    """The statuses of the resources of the stack."""
    peer = services.peers["planner"]
    request = planner_pb2.DetectDriftRequest(stack=object_pb2.StackRef(target=services.target(), name="s"))
    stub = PlannerServiceStub(peer.channel)
    return {each.status async for part in peer.stream(stub.DetectDrift, request) for each in part.reports.reports}


async def test_a_rollback_brings_the_earlier_names_back(services: Cluster) -> None:
    await services.apply(package("1"), stack="s")
    before, named = await platform(services), await names(services)
    await services.apply(package("2"), stack="s")

    plan = await services.plan(stack="s", revision=1, store=True)
    assert plan.steps == []
    events = [event async for event in services.apply_plan(plan.name, plan.digest)]

    assert events[-1].finished.state == SUCCEEDED
    assert (await platform(services), await names(services)) == (before, named)


async def test_a_renamed_object_is_updated_like_any_other(services: Cluster) -> None:
    await services.apply(package("1"), stack="s")
    task = (await services.record("s")).ids["Task", "hourly-1"]
    plan = await services.plan_that_ran(package("2", every="2h"), stack="s")
    assert [(step.verb, step.key.name, step.resource_id) for step in plan.steps] == [(Verb.UPDATE, "hourly-2", task)]
    assert (await services.plan(package("2", every="2h"), stack="s")).no_change


async def test_a_refused_apply_leaves_the_earlier_names(older_services: Cluster) -> None:
    await older_services.apply(package("1"), stack="s")
    before, named = await platform(older_services), await names(older_services)
    refused = an_object("Bucket", "reserved", "_system")
    finished = await older_services.apply(package("2", refused, every="2h"), stack="s")
    assert finished.state == operation_pb2.OPERATION_STATE_ROLLED_BACK
    assert (await platform(older_services), await names(older_services)) == (before, named)


async def test_a_name_that_a_user_gave_a_resource_is_matched_after_an_export(services: Cluster) -> None:
    await services.apply(package("1"), stack="s")
    ids = (await services.record("s")).ids
    edited = driver_pb2.UpdateResource(
        kind="Dashboard", id=ids["Dashboard", "hosts-1"], spec_json='{"charts":[],"description":"","name":"All hosts"}'
    )
    await services.mutate(driver_pb2.Mutation(update=edited))
    again = package("2").replace('"Hosts"', '"All hosts"')
    assert (await services.plan(again, stack="s")).steps == []


async def test_another_stack_is_not_concerned(services: Cluster) -> None:
    await services.apply(text(an_object("Dashboard", "a", "Hosts")), stack="one")
    plan = await services.plan(text(an_object("Dashboard", "b", "Hosts")), stack="two")
    assert [(step.verb, step.key.name) for step in plan.steps] == [(Verb.CREATE, "b")]


async def test_an_uninstall_after_new_names_leaves_nothing(services: Cluster) -> None:
    await services.apply(package("1"), stack="s")
    await services.apply(package("2"), stack="s")
    assert (await services.uninstall("s")).state == SUCCEEDED
    assert await services.resources() == []


async def test_a_stack_without_a_name_follows_new_names(services: Cluster) -> None:
    """A resource with a unique name leads to the stack, as the request names none."""

    async def applied(suffix: str) -> Shown:
        objects = text(an_object("Bucket", "raw", "raw"), an_object("Dashboard", f"hosts-{suffix}", "Hosts"))
        plan = await services.plan(objects, standalone=True, store=True)
        events = [event async for event in services.apply_plan(plan.name, plan.digest)]
        assert events[-1].finished.state == SUCCEEDED
        return plan

    await applied("1")
    before = await platform(services)
    plan = await applied("2")
    assert (plan.header.stack_id != "", plan.steps) == (True, [])
    assert [(each.old_key.name, each.new_key.name) for each in plan.record.key_changes] == [("hosts-1", "hosts-2")]
    assert await platform(services) == before
