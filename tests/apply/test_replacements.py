"""Replacements through real servers: buckets, checks, endpoints."""

import json
from itertools import permutations
from typing import Any

import pytest
from pkger.model.v1 import operation_pb2, plan_pb2
from pkger.planner.v1 import planner_pb2

from services.core.errors import ReplacementRefused
from services.core.model import Verb
from tests.apply.packages import a_check, a_rule, an_endpoint, an_object, text
from tests.cluster import Cluster

SUCCEEDED = operation_pb2.OPERATION_STATE_SUCCEEDED

LABEL = an_object("Label", "l", "label")
PLAIN = text(an_object("Bucket", "b", "readings"))
IMPLICIT = text(an_object("Bucket", "b", "readings", schemaType="implicit"))
EXPLICIT = text(an_object("Bucket", "b", "readings", schemaType="explicit"))


async def ids(services: Cluster) -> dict[tuple[str, str], str]:
    """Id of each resource by kind and display name."""
    return {(each.kind, json.loads(each.spec_json)["name"]): each.id for each in await services.resources()}


async def platform(services: Cluster) -> list[tuple[str, str, list[str], list[str]]]:
    """Kind, name, and names of labels and references of each resource, sorted."""
    resources = await services.resources()
    names = {each.id: json.loads(each.spec_json)["name"] for each in resources}
    return sorted(
        (
            each.kind,
            names[each.id],
            [names[label] for label in each.label_ids],
            [names[reference.id] for reference in each.references],
        )
        for each in resources
    )


@pytest.mark.parametrize("stack", ["s", ""])
@pytest.mark.parametrize("is_adopted", [False, True])
async def test_the_implicit_schema_type_changes_nothing(services: Cluster, stack: str, is_adopted: bool) -> None:
    if is_adopted:
        await services.apply(PLAIN)
    await services.apply(PLAIN, stack=stack)
    before = await ids(services)
    for package in (IMPLICIT, PLAIN):
        assert (await services.plan(package, stack=stack)).steps == []
        assert (await services.apply(package, stack=stack)).state == SUCCEEDED
    assert await ids(services) == before


async def test_an_unowned_bucket_is_replaced_only_if_that_is_allowed(services: Cluster) -> None:
    await services.apply(PLAIN)
    before = await ids(services)
    for call in (services.plan, services.apply):
        for stack in ("", "new"):
            with pytest.raises(ReplacementRefused, match=r"replaced and lose its data, as schemaType cannot change"):
                await call(EXPLICIT, stack=stack)
    assert await ids(services) == before
    assert await services.stack_names() == []
    [conflict] = (await services.plan(EXPLICIT, allow_replace=True)).conflicts
    assert "it will be replaced and lose its data, as schemaType cannot change" in conflict.message
    assert (await services.apply(EXPLICIT, allow_replace=True)).state == SUCCEEDED
    assert (await ids(services)).keys() == before.keys()
    assert await ids(services) != before


@pytest.mark.parametrize("is_adopted", [False, True])
async def test_a_bucket_of_the_stack_is_replaced_and_the_plan_says_why(services: Cluster, is_adopted: bool) -> None:
    if is_adopted:
        await services.apply(PLAIN)
    await services.apply(PLAIN, stack="s")
    plan = await services.plan(EXPLICIT, stack="s")
    assert [(step.verb, step.reason) for step in plan.steps] == [
        (Verb.DELETE, "schemaType cannot change: replaced, with its data"),
        (Verb.CREATE, "replaces the old resource"),
    ]
    assert (await services.apply(EXPLICIT, stack="s")).state == SUCCEEDED
    assert (await services.plan(EXPLICIT, stack="s")).no_change


FAMILIES = {
    "check": [("Deadman", a_check), ("Threshold", a_check)],
    "endpoint": [("HTTP", an_endpoint), ("PagerDuty", an_endpoint), ("Slack", an_endpoint)],
}
TURNS = [
    pytest.param(*turn, marks=[pytest.mark.slow] if number else [])
    for kinds in FAMILIES.values()
    for number, turn in enumerate(permutations(kinds, 2))
]
"""Pairs of an old and a new kind; one pair of each family is not slow."""


def a_package(kind: str, make: Any, is_renamed: bool = False) -> str:
    """A labelled check or endpoint; an endpoint has two rules."""
    rules = [a_rule("r", "x", "first"), a_rule("s", "x", "second")] if make is an_endpoint else []
    return text(LABEL, make(kind, "x", "another" if is_renamed else "name", ["l"]), *rules)


@pytest.mark.parametrize("is_adopted", [False, True])
@pytest.mark.parametrize(("old", "new"), TURNS, ids=lambda kind: kind[0])
async def test_a_change_of_kind_there_and_back(
    services: Cluster, old: tuple[str, Any], new: tuple[str, Any], is_adopted: bool
) -> None:
    if is_adopted:
        await services.apply(a_package(*old))
    await services.apply(a_package(*old), stack="s")
    before, others = await platform(services), await ids(services)
    for package in (a_package(*new), a_package(*old)):
        plan = await services.plan(package, stack="s")
        [diff] = [diff for diff in plan.resource_diffs if diff.key.name == "x"]
        assert diff.status == plan_pb2.DIFF_STATUS_EXISTS
        assert diff.old_kind
        finished = await services.apply(package, stack="s")
        assert (finished.state, finished.cause, finished.leftover_count) == (SUCCEEDED, "", 0)
        assert (await services.plan(package, stack="s")).no_change
        now = await platform(services)
        assert [each[1:] for each in now] == [each[1:] for each in before]
        live = {(each.kind, each.id) for each in await services.resources()}
        assert {(entry.key.kind, entry.resource_id) for entry in (await services.record("s")).resources} <= live
    assert await platform(services) == before
    kept = {each for each in others if each[1] != "name"}
    assert {each: (await ids(services))[each] for each in kept} == {each: others[each] for each in kept}


@pytest.mark.parametrize(("old", "new"), TURNS, ids=lambda kind: kind[0])
async def test_a_change_of_kind_and_name_at_once(services: Cluster, old: tuple[str, Any], new: tuple[str, Any]) -> None:
    await services.apply(a_package(*old), stack="s")
    changed = a_package(*new, is_renamed=True)
    assert (await services.apply(changed, stack="s")).state == SUCCEEDED
    assert (await services.plan(changed, stack="s")).no_change
    assert "another" in {name for _, name, _, _ in await platform(services)}
    assert "name" not in {name for _, name, _, _ in await platform(services)}


@pytest.mark.parametrize(("old", "new"), TURNS, ids=lambda kind: kind[0])
async def test_a_change_of_kind_without_a_stack_has_to_be_allowed(
    services: Cluster, old: tuple[str, Any], new: tuple[str, Any]
) -> None:
    before, after = a_package(*old), a_package(*new)
    await services.apply(before)
    rules = [each for each in await platform(services) if each[0] == "NotificationRule"]
    with pytest.raises(ReplacementRefused, match="its kind cannot change"):
        await services.apply(after)
    skip = [planner_pb2.Skip(kind="NotificationRule")]
    assert (await services.apply(after, skip=skip, allow_replace=True)).state == SUCCEEDED
    assert (await services.plan(after, skip=skip)).steps == []
    assert [each for each in await platform(services) if each[0] == "NotificationRule"] == rules


@pytest.mark.parametrize("is_adopted", [False, True])
async def test_an_association_that_goes_while_its_label_is_skipped(services: Cluster, is_adopted: bool) -> None:
    labelled = text(LABEL, an_object("Bucket", "b", "bk", ["l"]))
    bare = text(LABEL, an_object("Bucket", "b", "bk"))
    if is_adopted:
        await services.apply(bare)
    await services.apply(labelled, stack="s")
    before = await services.record("s")
    skip = [planner_pb2.Skip(kind="Label")]
    assert (await services.apply(bare, stack="s", skip=skip)).no_change
    assert await services.record("s") == before
    assert (await services.plan(labelled, stack="s")).no_change
    [step] = (await services.plan(bare, stack="s")).steps
    assert step.verb == Verb.DETACH
    assert (await services.apply(bare, stack="s")).state == SUCCEEDED
    assert await platform(services) == [("Bucket", "bk", [], []), ("Label", "label", [], [])]


async def test_a_label_that_goes_while_its_bucket_is_skipped(services: Cluster) -> None:
    await services.apply(text(LABEL, an_object("Bucket", "b", "bk", ["l"])), stack="s")
    skip = [planner_pb2.Skip(kind="Bucket")]
    assert (await services.apply(text(an_object("Variable", "v", "v")), stack="s", skip=skip)).state == SUCCEEDED
    entries = {entry.key.name: list(entry.associations) for entry in (await services.record("s")).resources}
    assert entries == {"b": [], "v": []}


async def test_the_summary_of_a_rule_names_its_skipped_endpoint(services: Cluster) -> None:
    package = text(an_endpoint("Slack", "e", "team"), a_rule("r", "e"))
    await services.apply(package)
    [endpoint] = await services.resources(kinds=["NotificationEndpointSlack"])
    plan = await services.plan(package, skip=[planner_pb2.Skip(kind="NotificationEndpoint")])
    assert plan.summary is not None
    [rule] = plan.summary["notificationRules"]
    assert (rule["endpointID"], rule["endpointTemplateMetaName"], rule["endpointType"]) == (
        int(endpoint.id, 16),
        "e",
        "slack",
    )


async def test_a_replacement_that_fails_is_in_no_summary(older_services: Cluster) -> None:
    """It creates first, as the new name is free, so the old bucket and its data still exist."""
    await older_services.apply(PLAIN, stack="s")
    before, record = await ids(older_services), await older_services.record("s")
    reserved = text(an_object("Bucket", "b", "_readings", schemaType="explicit"))
    finished = await older_services.apply(reserved, stack="s")
    assert finished.state == operation_pb2.OPERATION_STATE_ROLLED_BACK
    operation = await older_services.newest_operation()
    plan = await older_services.stored_plan(operation.plan_id)
    assert plan.summary is not None
    [bucket] = plan.summary["buckets"]
    assert "id" not in bucket
    assert (await ids(older_services), await older_services.record("s")) == (before, record)


async def test_an_apply_without_a_stack_that_changes_nothing_says_so(services: Cluster) -> None:
    await services.apply(PLAIN)
    assert (await services.plan(PLAIN)).no_change
    assert (await services.apply(PLAIN)).no_change
