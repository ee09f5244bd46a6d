"""All kinds of the package format in one stack, through real servers: from its first apply to its last."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from pkger.driver.v1 import driver_pb2
from pkger.model.v1 import object_pb2, operation_pb2
from pkger.planner.v1.planner_pb2 import PackageSources

from services.core.errors import RequestInvalid
from services.core.model import Verb
from services.kinds.registry import KINDS
from tests.apply.packages import EVERY_KIND, LABEL, a_rule, an_endpoint, text
from tests.cluster import Calls, Cluster, sources

CANARY = "canary-8a1f"


def renamed(chosen: dict[str, Any]) -> str:
    """The package with another display name of the object *chosen*."""
    spec = chosen["spec"] | {"name": "another name"}
    return text(*(item | {"spec": spec} if item is chosen else item for item in EVERY_KIND))


async def endpoint_names(services: Cluster) -> dict[str, list[str]]:
    """The live names of the endpoints of each rule, by the endpoint name in its spec."""
    resources = await services.resources()
    names = {resource.id: json.loads(resource.spec_json)["name"] for resource in resources}
    return {
        json.loads(resource.spec_json)["endpointName"]: [names[each.id] for each in resource.references]
        for resource in resources
        if resource.kind == "NotificationRule"
    }


async def test_a_package_of_every_kind_lives_its_whole_life(services: Cluster, calls: Calls) -> None:
    applied = await services.apply(text(*EVERY_KIND), stack="s")
    assert applied.state == operation_pb2.OPERATION_STATE_SUCCEEDED, applied.cause
    resources = await services.resources()
    assert {resource.kind for resource in resources} == KINDS.keys()
    assert all(len(resource.label_ids) == 1 for resource in resources if resource.kind != "Label")
    assert await endpoint_names(services) == {"hook": ["hook"], "pager": ["pager"]}

    writes = calls.count("Mutate")
    assert (await services.apply(text(*EVERY_KIND), stack="s")).no_change
    assert calls.count("Mutate") == writes

    removed = await services.uninstall("s")
    assert removed.state == operation_pb2.OPERATION_STATE_SUCCEEDED, removed.cause
    assert await services.resources() == []


async def test_the_summary_has_the_ids_of_every_kind(services: Cluster) -> None:
    summary = (await services.plan_that_ran(text(*EVERY_KIND), stack="s")).summary
    assert summary is not None
    ids = (await services.record("s")).ids
    assert {entry["templateMetaName"]: entry["check"]["id"] for entry in summary["checks"]} == {
        "hot": ids["CheckThreshold", "hot"],
        "silent": ids["CheckDeadman", "silent"],
    }
    assert {
        entry["templateMetaName"]: entry["notificationEndpoint"]["id"] for entry in summary["notificationEndpoints"]
    } == {name: id_ for (kind, name), id_ in ids.items() if kind.startswith("NotificationEndpoint")}
    assert [entry["telegrafConfig"]["id"] for entry in summary["telegrafConfigs"]] == [ids["Telegraf", "agent"]]
    assert {entry["templateMetaName"]: entry["endpointID"] for entry in summary["notificationRules"]} == {
        "to_hook": int(ids["NotificationEndpointHTTP", "hook"], 16),
        "to_pager": int(ids["NotificationEndpointPagerDuty", "pager"], 16),
    }


@pytest.mark.parametrize("item", EVERY_KIND, ids=lambda item: item["kind"])
async def test_a_renamed_resource_keeps_its_id(services: Cluster, item: dict[str, Any]) -> None:
    await services.apply(text(*EVERY_KIND), stack="s")
    before = await services.record("s")
    plan = await services.plan(renamed(item), stack="s")
    assert [(step.verb, step.key.kind) for step in plan.steps] == [(Verb.UPDATE, item["kind"])]
    assert (await services.apply(renamed(item), stack="s")).state == operation_pb2.OPERATION_STATE_SUCCEEDED
    assert (await services.record("s")).resources == before.resources
    assert await endpoint_names(services) == {
        name: ["another name" if item["metadata"]["name"] == name else name] for name in ("hook", "pager")
    }


async def test_a_vanished_endpoint_comes_back_and_its_rule_gets_it(services: Cluster) -> None:
    await services.apply(text(*EVERY_KIND), stack="s")
    [pager] = await services.resources(kinds=["NotificationEndpointPagerDuty"])
    await services.mutate(driver_pb2.Mutation(delete=driver_pb2.DeleteResource(kind=pager.kind, id=pager.id)))
    assert await endpoint_names(services) == {"hook": ["hook"], "pager": []}
    plan = await services.plan(text(*EVERY_KIND), stack="s")
    assert [(step.verb, step.key.name) for step in plan.steps] == [
        (Verb.CREATE, "pager"),
        (Verb.UPDATE, "to_pager"),
        (Verb.ATTACH, "pager"),
    ]
    await services.apply(text(*EVERY_KIND), stack="s")
    assert await endpoint_names(services) == {"hook": ["hook"], "pager": ["pager"]}
    assert (await services.plan(text(*EVERY_KIND), stack="s")).no_change


async def test_a_rule_that_leaves_the_package_is_removed_with_its_endpoint(services: Cluster) -> None:
    endpoint, rule = an_endpoint("Slack", "extra", "extra"), a_rule("to_extra", "extra")
    await services.apply(text(*EVERY_KIND, endpoint, rule), stack="s")
    finished = await services.apply(text(*EVERY_KIND), stack="s")
    assert finished.state == operation_pb2.OPERATION_STATE_SUCCEEDED
    assert "extra" not in {entry.key.name for entry in (await services.record("s")).resources}
    assert len(await services.resources()) == len(EVERY_KIND)


async def test_a_credential_itself_gets_nowhere(
    services: Cluster, module_folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    written = text(LABEL, an_endpoint("Slack", "chat", "chat", token=CANARY))
    seen: list[object] = []
    for call in (services.plan(written, stack="s"), services.apply(written, stack="s"), services.apply(written)):
        with pytest.raises(RequestInvalid, match="token of NotificationEndpointSlack 'chat'") as caught:
            await call
        assert f" source-0:1:{written.index(CANARY)} (token of" in str(caught.value)
        seen += [caught.value, caught.value.metadata, caught.value.__cause__]
    assert await services.resources() == []
    assert await services.stack_names() == []
    assert CANARY not in str(seen)
    assert CANARY not in caplog.text + "".join(str(record.__dict__) for record in caplog.records)
    files = [path for path in module_folder.rglob("*") if path.is_file()]
    assert {"platform.db", "stack.db"} <= {path.name for path in files}
    assert not [path for path in files if CANARY.encode() in path.read_bytes()]


@pytest.mark.parametrize("reference", [{"key": "k"}, {"key": "k", "default": CANARY}])
async def test_a_credential_by_an_environment_value_gets_nowhere_either(
    services: Cluster, reference: dict[str, str]
) -> None:
    written = text(LABEL, an_endpoint("Slack", "chat", "chat", token={"envRef": reference}))
    env = {"k": json.dumps(CANARY)}
    package = PackageSources(sources=sources([written]), env_json=env)
    column = written.index('{"envRef') + 1
    place = f"source-0:1:{column}"
    for sent in [package] + [PackageSources(sources=sources([written]))] * ("default" in reference):
        with pytest.raises(RequestInvalid, match=f" {place} .token of NotificationEndpointSlack 'chat'.") as caught:
            await services.plan(package=sent)
        assert CANARY not in f"{caught.value} {caught.value.metadata}"
    if "default" not in reference:
        [warning] = (await services.plan(written)).warnings
        assert warning.startswith(f"{place}: root[1].spec.token: this credential comes from an environment value")


async def test_the_platform_takes_no_credential_either(services: Cluster) -> None:
    spec = json.dumps({"name": "chat", "token": CANARY})
    create = driver_pb2.CreateResource(kind="NotificationEndpointSlack", spec_json=spec)
    answer = await services.mutate(driver_pb2.Mutation(create=create))
    assert answer.results[0].rejected.reason == operation_pb2.REJECTION_REASON_CONTENT_REFUSED
    assert CANARY not in str(answer)
    assert await services.resources() == list[object_pb2.Resource]()
