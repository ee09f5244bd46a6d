"""Guarantees of an apply beyond the six steps, through real servers."""

import pytest
from pkger.driver.v1 import driver_pb2
from pkger.model.v1 import operation_pb2, plan_pb2
from pkger.stack.v1 import stack_pb2
from pkger.stack.v1.stack_pb2_grpc import StackServiceStub

from services.core.errors import PlanStale, SharedDiffers, StackNotFound
from services.core.model import Verb
from tests.apply.packages import BUCKET, DASHBOARD, LABEL, RENAMED, STEPS, an_object, text
from tests.cluster import Calls, Cluster, InvalidPackage, Record

REFUSED = an_object("Bucket", "reserved", "_system")
"""The platform reserves such names; the package format allows them."""


async def everything(services: Cluster) -> tuple[list[bytes], list[Record]]:
    """The platform and all records, as they are."""
    resources = [resource.SerializeToString(deterministic=True) for resource in await services.resources()]
    return resources, [await services.record(name) for name in await services.stack_names()]


async def test_a_refused_resource_leaves_platform_and_record_exactly_as_they_were(older_services: Cluster) -> None:
    await older_services.apply(STEPS[1], stack="s")
    before = await everything(older_services)
    changed = text(RENAMED, BUCKET, DASHBOARD, an_object("Variable", "v", "v", ["lucid_einstein"]), REFUSED)
    finished = await older_services.apply(changed, stack="s")
    assert finished.state == operation_pb2.OPERATION_STATE_ROLLED_BACK
    assert finished.cause.startswith("create Bucket 'reserved': ")
    assert await everything(older_services) == before


async def test_a_refused_first_apply_leaves_nothing_at_all(older_services: Cluster) -> None:
    finished = await older_services.apply(text(LABEL, REFUSED), stack="s")
    assert finished.state == operation_pb2.OPERATION_STATE_ROLLED_BACK
    assert await everything(older_services) == ([], [])
    assert not finished.stack_id


async def test_packages_given_together_are_one_package(services: Cluster) -> None:
    labels, others = text(LABEL), text(BUCKET, DASHBOARD)
    with pytest.raises(InvalidPackage):
        await services.plan(others)
    await services.apply(labels, others, stack="s")
    record = await services.record("s")
    assert [entry.key.name for entry in record.resources] == ["pristine_noir", "charmed_saratoba", "lucid_einstein"]
    assert list(record.sources) == ["source-0", "source-1"]
    assert (await services.plan(STEPS[1], stack="s")).no_change
    with pytest.raises(InvalidPackage) as caught:
        await services.plan(labels, STEPS[1])
    assert caught.value.paths == ["root[1].metadata.name"]


async def test_an_apply_without_a_stack_leaves_no_record(services: Cluster) -> None:
    finished = await services.apply(STEPS[1])
    assert finished.state == operation_pb2.OPERATION_STATE_SUCCEEDED
    assert finished.counts.creates == len(await services.resources()) == 3
    assert await services.stack_names() == []


async def test_an_apply_without_a_stack_never_removes(services: Cluster) -> None:
    await services.apply(STEPS[1])
    await services.apply(text(LABEL))
    assert len(await services.resources()) == 3


async def test_a_dry_run_writes_nothing_anywhere(services: Cluster, calls: Calls) -> None:
    await services.apply(STEPS[1], stack="s")
    before, served = await everything(services), len(calls.methods)
    await services.plan(STEPS[6], stack="s")
    assert set(calls.methods[served:]) <= {
        "CreatePlan",
        "ParsePackage",
        "FindOwners",
        "GetStack",
        "Describe",
        "ListResources",
        "PrepareSpecs",
    }
    await services.plan(STEPS[4], stack="another", org="elsewhere")
    assert await everything(services) == before


async def test_a_plan_with_nothing_to_do_lists_once_however_many_resources_there_are(
    services: Cluster, calls: Calls
) -> None:
    package = text(
        LABEL, *(an_object("Task", f"t{n}", f"t{n}", ["lucid_einstein"], every="1h", query="x") for n in range(50))
    )
    await services.apply(package, stack="s")
    calls.methods.clear()
    assert (await services.plan(package, stack="s")).no_change
    assert sorted(calls.methods) == [
        "CreatePlan",
        "GetStack",
        "ListResources",
        "ListResources",
        "ParsePackage",
    ]


async def test_a_plan_lists_what_the_package_adds_to_the_recorded_kinds(services: Cluster, calls: Calls) -> None:
    await services.apply(text(LABEL), stack="s")
    await services.mutate(
        driver_pb2.Mutation(create=driver_pb2.CreateResource(kind="Variable", spec_json='{"name":"known"}'))
    )
    calls.methods.clear()
    plan = await services.plan(text(LABEL, an_object("Variable", "v", "known", values=["a"])), stack="s")
    assert [entry.key.name for entry in plan.record.entries if entry.resource_id] == ["v"]
    assert calls.count("ListResources") == 3


async def test_only_the_approved_plan_runs(services: Cluster, calls: Calls) -> None:
    agreed = await services.plan(STEPS[1], stack="s")
    await services.mutate(
        driver_pb2.Mutation(create=driver_pb2.CreateResource(kind="Label", spec_json='{"name":"label_1"}'))
    )
    calls.methods.clear()
    with pytest.raises(PlanStale):
        [event async for event in services.events(STEPS[1], stack="s", digest=agreed.digest)]
    assert calls.count("Mutate") == 0
    assert await services.stack_names() == []
    again = await services.plan(STEPS[1], stack="s")
    events = [event async for event in services.events(STEPS[1], stack="s", digest=again.digest)]
    assert events[0].accepted.digest == again.digest
    assert events[-1].finished.state == operation_pb2.OPERATION_STATE_SUCCEEDED


async def test_only_the_stack_that_owns_a_resource_changes_it(services: Cluster) -> None:
    await services.apply(STEPS[1], stack="mine")
    for stack in ("theirs", ""):
        with pytest.raises(SharedDiffers, match="of stack 'mine'"):
            await services.apply(text(LABEL | {"spec": {**LABEL["spec"], "color": "#000001"}}), stack=stack)
    assert await services.stack_names() == ["mine"]


async def test_an_uninstall_leaves_what_the_stack_adopted(services: Cluster) -> None:
    await services.mutate(
        driver_pb2.Mutation(create=driver_pb2.CreateResource(kind="Bucket", spec_json='{"name":"bucket_1"}'))
    )
    await services.apply(STEPS[1], stack="s")
    finished = await services.uninstall("s")
    assert finished.state == operation_pb2.OPERATION_STATE_SUCCEEDED
    (left,) = await services.resources()
    assert (left.kind, list(left.label_ids)) == ("Bucket", [])
    assert await services.stack_names() == []


async def test_the_end_of_an_empty_stack_is_a_change(services: Cluster) -> None:
    stub = StackServiceStub(services.peers["stack"].channel)
    await services.peers["stack"].call(
        stub.CreateStack, stack_pb2.CreateStackRequest(name="empty", target=services.target())
    )
    kept = await services.uninstall("empty", after_uninstall=plan_pb2.AFTER_UNINSTALL_KEEP)
    assert (kept.no_change, kept.generation) == (True, 0)
    finished = await services.uninstall("empty")
    assert (finished.no_change, finished.stack_id) == (False, "")
    assert await services.stack_names() == []


async def test_organizations_do_not_see_each_other(services: Cluster) -> None:
    one, two = (services.in_org(f"{services.org}-{name}") for name in ("one", "two"))
    for each in (one, two):
        await each.apply(STEPS[1])
    assert await services.resources() == []
    assert len(await one.resources()) == len(await two.resources()) == 3


async def test_a_vanished_resource_is_created_again(services: Cluster) -> None:
    await services.apply(STEPS[1], stack="s")
    (dashboard,) = await services.resources(kinds=["Dashboard"])
    await services.mutate(driver_pb2.Mutation(delete=driver_pb2.DeleteResource(kind="Dashboard", id=dashboard.id)))
    plan = await services.plan(STEPS[1], stack="s")
    assert [step.verb for step in plan.steps] == [Verb.CREATE, Verb.ATTACH]
    await services.apply(STEPS[1], stack="s")
    (again,) = await services.resources(kinds=["Dashboard"])
    assert again.label_ids == dashboard.label_ids
    assert again.id in {entry.resource_id for entry in (await services.record("s")).resources}


async def test_the_summary_of_a_finished_apply_has_all_ids(services: Cluster) -> None:
    plan = await services.plan_that_ran(STEPS[1], stack="s")
    ids = {resource.kind: int(resource.id, 16) for resource in await services.resources()}
    summary = plan.summary
    assert summary is not None
    assert [summary[key][0]["id"] for key in ("buckets", "dashboards", "labels")] == [
        ids["Bucket"],
        ids["Dashboard"],
        ids["Label"],
    ]
    assert summary["buckets"][0]["labelAssociations"][0]["id"] == ids["Label"]
    assert [(mapping["resourceID"], mapping["labelID"]) for mapping in summary["labelMappings"]] == [
        (ids["Bucket"], ids["Label"]),
        (ids["Dashboard"], ids["Label"]),
    ]


async def test_a_stack_of_an_unknown_id_is_not_found(services: Cluster) -> None:
    with pytest.raises(StackNotFound):
        await services.plan(destroy=True, stack="nobody")
