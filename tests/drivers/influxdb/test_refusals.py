"""Invalid applies, through all services: each is refused with the right error, and writes nothing to the server."""

from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest
from pkger.planner.v1 import planner_pb2

from services.core.errors import ContentRefused, OrgUnknown, PkgerError, PlanStale, ServiceUnavailable
from tests.apply.packages import a_check, a_rule, an_endpoint, an_object, text
from tests.cluster import Cluster
from tests.drivers.influxdb.lives import FIELD, FULL
from tests.drivers.influxdb.running import organization, services_on
from tests.drivers.influxdb.test_keeping import asked
from tests.influx.server import Influx

RED = an_object("Label", "red", "red")
RAW = text(RED, an_object("Bucket", "raw", "raw"))


async def refused(server: Influx, work: Awaitable[object], error: type[PkgerError]) -> str:
    """The error with which *work* is refused; it writes nothing."""
    server.records.clear()
    with pytest.raises(error) as caught:
        await work
    assert server.records.count("write") == 0
    return str(caught.value)


async def token_with(server: Influx, org_id: str, *types: str, status: str = "active") -> str:
    """A token that may read an organization, and write resources of some types."""
    permissions: list[dict[str, Any]] = [{"action": "read", "resource": {"type": "orgs", "id": org_id}}]
    permissions += [{"action": "write", "resource": {"type": type_, "orgID": org_id}} for type_ in types]
    made = await asked(
        server, "POST", "authorizations", {"orgID": org_id, "status": status, "permissions": permissions}
    )
    return str(made["token"])


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        ([an_object("Bucket", "b", "_x")], "underscore"),
        ([an_object("Variable", "v", "import", type="constant", values=["a"])], "'import' is a keyword of Flux"),
        ([an_object("Task", "t", "t", cron="@daily", every="1h", query="x()")], "either cron or every"),
        ([a_check("Threshold", "c", "c", query="buckets()")], 'r._field == "NAME" once'),
    ],
)
async def test_content_that_the_server_would_refuse_is_refused_before_any_write(
    server: Influx, on_influxdb: Cluster, objects: list[dict[str, Any]], expected: str
) -> None:
    package = text(RED, *objects)
    for work in (on_influxdb.plan(package, stack="s"), on_influxdb.apply(package, stack="s")):
        assert expected in await refused(server, work, ContentRefused)


async def test_an_existing_check_is_not_changed_to_one_without_a_field(server: Influx, on_influxdb: Cluster) -> None:
    """The server would store it, answer with an error, and run the script before the update."""
    await on_influxdb.apply(text(a_check("Threshold", "c", "c", query=FIELD)), stack="s")
    changed = text(a_check("Threshold", "c", "c", query="buckets()"))
    assert "r._field" in await refused(server, on_influxdb.apply(changed, stack="s"), ContentRefused)


async def test_a_rule_whose_endpoint_was_deleted_outside_gets_it_back(server: Influx, on_influxdb: Cluster) -> None:
    rule = a_rule("r", "chat", "r", messageTemplate="m")
    package = text(an_endpoint("Slack", "chat", "chat"), rule)
    await on_influxdb.apply(package, stack="s")
    [endpoint] = server.state.kinds["notificationEndpoints"]
    await asked(server, "DELETE", f"notificationEndpoints/{endpoint}")
    server.records.clear()
    plan = await on_influxdb.plan(package, stack="s")
    assert [(step.verb.value, step.key.name) for step in plan.steps] == [("create", "chat"), ("update", "r")]
    assert server.records.count("write") == 0
    assert (await on_influxdb.apply(package, stack="s")).counts.updates == 1
    assert (await on_influxdb.apply(package, stack="s")).no_change
    [held], [again] = (server.state.kinds[kind].values() for kind in ("notificationRules", "notificationEndpoints"))
    assert held["endpointID"] == again["id"] != endpoint


@pytest.mark.parametrize(
    "wanted", [text(RED, an_object("Bucket", "raw", "raw", ["red"])), text(RED)], ids=["attached", "deleted"]
)
async def test_a_label_attached_outside_makes_a_plan_stale(server: Influx, on_influxdb: Cluster, wanted: str) -> None:
    await on_influxdb.apply(RAW, stack="s")
    plan = await on_influxdb.plan(wanted, stack="s", store=True)
    [label] = server.state.labels
    [bucket] = [each["id"] for each in server.state.kinds["buckets"].values() if each["name"] == "raw"]
    await asked(server, "POST", f"buckets/{bucket}/labels", {"labelID": label})

    async def applied() -> None:
        async for _ in on_influxdb.apply_plan(plan.name):
            pass

    assert "Bucket 'raw' got Label" in await refused(server, applied(), PlanStale)


async def test_a_missing_organization_is_an_error(server: Influx, on_influxdb: Cluster) -> None:
    for work in (on_influxdb.plan(RAW, stack="s", org="nowhere"), on_influxdb.apply(RAW, stack="s", org="nowhere")):
        assert "nowhere" in await refused(server, work, OrgUnknown)


async def test_wrong_tokens_write_nothing(server: Influx, tmp_path: Path) -> None:
    org = await organization(server.url, server.token, "default")
    tokens: dict[str, tuple[str, type[PkgerError], str]] = {
        "wrong": ("canary-8a1f", ServiceUnavailable, "unknown or inactive"),
        "inactive": (await token_with(server, org, status="inactive"), ServiceUnavailable, "token is inactive"),
        "of another organization": (await token_with(server, server.org, "labels", "buckets"), OrgUnknown, "default"),
    }
    for name, (token, error, expected) in tokens.items():
        folder = tmp_path / name
        folder.mkdir()
        async with services_on(server, token, folder) as services:
            for work in (
                services.plan(RAW, stack="s"),
                services.apply(RAW, stack="s"),
                services.export(everything=planner_pb2.ExportFilter()),
            ):
                message = await refused(server, work, error)
                assert expected in message
                assert token not in message


async def test_a_token_without_rights_to_read_creates_nothing_twice(server: Influx, tmp_path: Path) -> None:
    """Its lists are empty, but it may write, so the resources of the stack would be created again."""
    org = await organization(server.url, server.token, "default")
    async with services_on(server, server.token, tmp_path) as services:
        await services.apply(FULL, stack="s")
    blind = await token_with(server, org, "labels", "buckets", "tasks", "dashboards", "variables", "telegrafs")
    async with services_on(server, blind, tmp_path) as services:
        for work in (services.plan(FULL, stack="s"), services.apply(FULL, stack="s"), services.uninstall("s")):
            assert "may not read" in await refused(server, work, PkgerError)
