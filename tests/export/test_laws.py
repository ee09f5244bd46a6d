"""Laws of exports, on random platforms through real servers: an export equals the platform."""

import itertools
from typing import Any

import pytest
from hypothesis import event, given, settings
from pkger.driver.v1 import driver_pb2
from pkger.model.v1 import operation_pb2
from pkger.planner.v1 import planner_pb2

from services.core.model import Verb
from services.drivers.embedded.kinds import EMBEDDED
from tests.cluster import Cluster
from tests.export.random_platforms import Drawn, platforms

ALL = planner_pb2.ExportFilter()
SUCCEEDED = operation_pb2.OPERATION_STATE_SUCCEEDED
_numbers = itertools.count()


async def make(services: Cluster, org: str, drawn: Drawn) -> None:
    """Make the platform that was drawn in *org*."""
    for stack, package in drawn.stacks.items():
        finished = await services.apply(package, stack=stack, org=org)
        assert finished.state == SUCCEEDED, finished.cause
    resources = await services.resources(org)
    labels = [each for each in resources if each.kind == "Label"]
    others = [each for each in resources if each.kind != "Label"]
    for resource, label in drawn.attached if others else ():
        chosen = others[resource % len(others)]
        attach = driver_pb2.AttachLabel(kind=chosen.kind, id=chosen.id, label_id=labels[label % len(labels)].id)
        await services.mutate(driver_pb2.Mutation(attach=attach), org=org)


async def content(services: Cluster, org: str) -> list[bytes]:
    """All resources of the platform."""
    return [each.SerializeToString(deterministic=True) for each in await services.resources(org)]


@pytest.mark.timeout(3600)
@settings(settings.get_profile("exports"))
@given(drawn=platforms())
async def test_an_export_equals_the_platform(services: Cluster, drawn: Drawn) -> None:
    number = next(_numbers)
    org, copy = f"org-{number}", f"copy-{number}"
    await make(services, org, drawn)
    before = await content(services, org)

    everything = await services.export(org=org, everything=ALL)
    assert everything.warning_texts == []
    for item in everything.objects:
        event(item["kind"])

    # Applied to its own stack, an export changes nothing.
    for stack in ("one", "two"):
        export = await services.export(stack=stack, org=org)
        assert export.warning_texts == []
        plan = await services.plan(export.text, stack=stack, org=org)
        assert plan.steps == []
        finished = await services.apply(export.text, stack=stack, org=org)
        assert finished.state == SUCCEEDED, finished.cause
        assert await content(services, org) == before

    # Without a stack, only resources without unique names are created, and the plan warns of that.
    plan = await services.plan(everything.text, org=org)
    created = [step.key for step in plan.steps if step.verb is not Verb.ATTACH]
    assert all(EMBEDDED.kinds[key.kind].unique_name("") is None for key in created)
    assert {step.verb for step in plan.steps} <= {Verb.CREATE, Verb.ATTACH}
    assert len(plan.warnings) >= len(created)
    assert all(any(warning.startswith(str(key)) for warning in plan.warnings) for key in created)

    # Applied to another organization, it makes resources whose export is the same text.
    again = await services.export(org=org, everything=ALL)
    finished = await services.apply(again.text, stack="copy", org=copy)
    assert finished.state == SUCCEEDED, finished.cause
    assert (await services.export(org=copy, everything=ALL)).text == again.text
    assert (await services.export(stack="copy", org=copy)).text == again.text
    assert (await services.plan(again.text, stack="copy", org=copy)).no_change


@pytest.mark.timeout(3600)
@settings(settings.get_profile("exports"))
@given(drawn=platforms())
async def test_a_resource_has_the_same_name_whatever_else_is_exported(services: Cluster, drawn: Drawn) -> None:
    org = f"names-{next(_numbers)}"
    await make(services, org, drawn)
    whole = {name_of(item): item for item in (await services.export(org=org, everything=ALL)).objects}
    assert len({(item["kind"], item["metadata"]["name"]) for item in whole.values()}) == len(whole)
    for resource in await services.resources(org):
        asked = planner_pb2.NamedResource(kind=resource.kind, id=resource.id)
        single = await services.export(org=org, resources=[asked])
        assert (resource.kind, resource.display_name) in {name_of(item)[:2] for item in single.objects}
        for item in single.objects:
            assert whole[name_of(item)] == item


def name_of(item: dict[str, Any]) -> tuple[str, str, str]:
    name = item["metadata"]["name"]
    return item["kind"], item["spec"].get("name", name), name
