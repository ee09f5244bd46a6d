"""
What packages cannot express: writes leave it alone, a plan warns where the server does not let them, exports name it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.apply.packages import a_check, an_object, text
from tests.cli.command import environment, pkger
from tests.cluster import Cluster
from tests.drivers.client import CONTENT_REFUSED, DriverClient, create, spec, update
from tests.drivers.influxdb.lives import FIELD
from tests.drivers.influxdb.samples import influxdb_sample as sample
from tests.drivers.influxdb.test_keeping import asked
from tests.influx.server import Influx

DAY = 86_400
LINE = {
    "kind": "xy",
    "name": "cpu",
    "width": 4,
    "height": 3,
    "geom": "line",
    "queries": [{"query": "a()"}, {"query": "b()"}],
    "axes": [{"name": "x"}, {"name": "y"}],
}


def bucket(seconds: int) -> dict[str, Any]:
    rules = [{"type": "expire", "everySeconds": seconds}] if seconds else []
    return an_object("Bucket", "fine", "fine", retentionRules=rules)


def board(*charts: Mapping[str, Any]) -> str:
    return text(an_object("Dashboard", "board", "board", charts=list(charts)))


async def newest(server: Influx, collection: str) -> Any:
    """The resource of a collection that was created last, as the server shows it."""
    *_, id_ = server.state.kinds[collection]
    return await asked(server, "GET", f"{collection}/{id_}?include=properties")


async def change_view(server: Influx, **properties: Any) -> None:
    """Change properties of the first cell of the dashboard, as a user does."""
    [cell, *_] = (held := await newest(server, "dashboards"))["cells"]
    view = {"name": cell["name"], "properties": {**cell["properties"], **properties}}
    await asked(server, "PATCH", f"dashboards/{held['id']}/cells/{cell['id']}/view", view)


async def first_view(server: Influx) -> Any:
    return (await newest(server, "dashboards"))["cells"][0]["properties"]


@pytest.mark.parametrize(
    ("before", "chosen", "after", "expected"),
    [
        (3 * DAY, 3600, 4 * DAY, 3600),
        (3 * DAY, 3600, 0, 3600),
        (0, 2 * DAY, 2 * DAY, 2 * DAY),
        (4 * DAY, 2 * DAY, DAY, 3600),
        (30 * DAY, DAY, 0, 7 * DAY),
    ],
    ids=["longer", "endless", "as long", "too short", "not chosen"],
)
async def test_a_new_retention_keeps_the_shards_that_a_user_chose(
    server: Influx, on_influxdb: Cluster, before: int, chosen: int, after: int, expected: int
) -> None:
    await on_influxdb.apply(text(bucket(before)), stack="s")
    held = await newest(server, "buckets")
    rule = {"type": "expire", "everySeconds": before, "shardGroupDurationSeconds": chosen}
    await asked(server, "PATCH", f"buckets/{held['id']}", {"retentionRules": [rule]})
    plan = await on_influxdb.plan(text(bucket(after)), stack="s")
    is_reset = "retentionRules[0].shardGroupDurationSeconds: 172800 -> 3600"
    assert [is_reset in warning for warning in plan.warnings] == [True] * (expected == 3600 != chosen)
    await on_influxdb.apply(text(bucket(after)), stack="s")
    [rule] = (await newest(server, "buckets"))["retentionRules"]
    assert (rule["everySeconds"], rule["shardGroupDurationSeconds"]) == (after, expected)
    assert (await on_influxdb.plan(text(bucket(after)), stack="s")).warnings == []


async def test_a_changed_chart_keeps_what_it_cannot_express(server: Influx, on_influxdb: Cluster) -> None:
    await on_influxdb.apply(board(LINE), stack="s")
    queries = (await first_view(server))["queries"]
    for query in queries:
        query.update(editMode="builder", name="by hand", builderConfig={"buckets": ["raw"]})
    axes = {name: {**axis, "bounds": ["", ""]} for name, axis in (await first_view(server))["axes"].items()}
    await change_view(server, queries=queries, axes=axes)
    before = await first_view(server)

    renamed = {**LINE, "name": "load", "note": "n", "axes": [{"name": "x", "label": "time"}, {"name": "y"}]}
    plan = await on_influxdb.plan(board(renamed), stack="s")
    assert ([step.verb.value for step in plan.steps], plan.warnings) == (["update"], [])
    await on_influxdb.apply(board(renamed), stack="s")
    expected = {**before, "note": "n", "axes": {**before["axes"], "x": {**before["axes"]["x"], "label": "time"}}}
    assert await first_view(server) == expected


async def test_a_plan_names_the_state_of_a_builder_that_a_new_query_resets(
    server: Influx, on_influxdb: Cluster
) -> None:
    await on_influxdb.apply(board(LINE), stack="s")
    queries = (await first_view(server))["queries"]
    for query in queries:
        query.update(editMode="builder")
    await change_view(server, queries=queries)
    changed = board({**LINE, "queries": [{"query": "a()"}, {"query": "c()"}]})
    plan = await on_influxdb.plan(changed, stack="s")
    assert plan.warnings == [
        "the update of Dashboard 'board' also changes what packages cannot express: queries[1].editMode of cell 'cpu'"
    ]
    await on_influxdb.apply(changed, stack="s")
    modes = [(query["text"], query["editMode"]) for query in (await first_view(server))["queries"]]
    assert modes == [("a()", "builder"), ("c()", "advanced")]


async def test_a_kept_property_never_changes_a_chart(client: DriverClient, server: Influx) -> None:
    """Digits without effect would take effect once the chart has digits of its own."""
    [made] = await client.made(create("Dashboard", sample("Dashboard", "d", "")))
    await change_view(server, decimalPlaces={"isEnforced": False, "digits": 4})
    [chart] = sample("Dashboard", "d", "")["charts"]
    wanted = {**sample("Dashboard", "d", ""), "charts": [{**chart, "decimalPlaces": 0}]}
    [written] = await client.made(update("Dashboard", made.id, wanted))
    assert spec(written) == wanted


async def test_a_plan_names_the_builder_of_a_check_that_a_new_query_resets(
    server: Influx, on_influxdb: Cluster
) -> None:
    await on_influxdb.apply(text(a_check("Threshold", "c", "c", query=FIELD)), stack="s")
    held = await newest(server, "checks")
    query = {**held["query"], "text": f"{FIELD}\n", "editMode": "builder", "builderConfig": {"buckets": ["raw"]}}
    await asked(server, "PUT", f"checks/{held['id']}", {**held, "query": query})

    described = text(a_check("Threshold", "c", "c", query=FIELD, description="d"))
    assert (await on_influxdb.plan(described, stack="s")).warnings == []
    await on_influxdb.apply(described, stack="s")
    assert (await newest(server, "checks"))["query"]["editMode"] == "builder"
    changed = text(a_check("Threshold", "c", "c", query=FIELD.replace("usage", "load")))
    warnings = (await on_influxdb.plan(changed, stack="s")).warnings
    assert [warning.rpartition(": ")[2] for warning in warnings] == [
        "query.editMode, as the query changes",
        "query.builderConfig, as the query changes",
    ]


async def test_metadata_of_a_user_survives_an_update_of_a_telegraf_configuration(
    client: DriverClient, server: Influx
) -> None:
    config = '[[outputs.influxdb_v2]]\nbucket = "raw"\n'
    [made] = await client.made(create("Telegraf", {**sample("Telegraf", "t", ""), "config": config}))
    path = f"telegrafs/{made.id}"
    for buckets, after in ((["raw"], ["new"]), (["by hand"], ["by hand"])):
        held = await asked(server, "GET", path)
        metadata = {"buckets": buckets, "owner": "ops"}
        await asked(server, "PUT", path, {**held, "config": config, "metadata": metadata})
        await client.made(
            update("Telegraf", made.id, {**sample("Telegraf", "t", ""), "config": config.replace("raw", "new")})
        )
        assert (await asked(server, "GET", path))["metadata"] == {"buckets": after, "owner": "ops"}


async def made_by_hand(server: Influx, collection: str, **body: Any) -> Any:
    """A resource as a user creates it, in the organization of the services."""
    [org] = (await asked(server, "GET", "orgs?org=default"))["orgs"]
    return await asked(server, "POST", collection, {"orgID": org["id"], **body})


async def test_an_export_names_each_field_and_resource_that_it_leaves_out(
    server: Influx, on_influxdb: Cluster, tmp_path: Path
) -> None:
    rule = {"type": "expire", "everySeconds": 3 * DAY, "shardGroupDurationSeconds": 3600}
    await made_by_hand(server, "buckets", name="fine", retentionRules=[rule])
    endpoint = {"type": "http", "name": "hook", "url": "http://x", "method": "POST", "authMethod": "none"}
    further = {"headers": {"Authorization": "canary-8a1f"}, "contentTemplate": "t"}
    await made_by_hand(server, "notificationEndpoints", status="active", **endpoint, **further)
    telegram = {"type": "telegram", "name": "chat", "token": "x", "channel": "c", "status": "active"}
    await made_by_hand(server, "notificationEndpoints", **telegram)
    option = 'option task = {name: "monthly", every: 1mo, concurrency: 3}'
    await made_by_hand(server, "tasks", flux=f"{option}\n\nx()")
    line = {"shape": "chronograf-v2", "type": "xy", "geom": "stepAfter", "axes": {"x": {}, "y": {}}}
    status = {"shape": "chronograf-v2", "type": "check", "checkID": "0000000000000001"}
    cells = [
        {"name": name, "x": 0, "y": y, "w": 4, "h": 3, "properties": {"properties": view}}
        for y, (name, view) in enumerate((("cpu", line), ("state", status)))
    ]
    await made_by_hand(server, "dashboards", name="board", cells=cells)

    env = environment(tmp_path, on_influxdb.addresses)
    file = tmp_path / "p.yml"
    ended = await pkger("export", "--all", "-o", str(file), env=env)
    lines = ended.err.splitlines()
    assert ended.code == 0
    prefix = "warning: "
    assert [line.removeprefix(prefix) for line in lines if line.startswith(prefix)] == [
        "Bucket 'fine': packages cannot express retentionRules[0].shardGroupDurationSeconds, which is left out",
        "Dashboard 'board': packages cannot express cell 'cpu' (geom must be line, step, stacked,"
        " monotoneX or bar; found 'stepAfter'), which is left out",
        "Dashboard 'board': packages cannot express cell 'state' (type check), which is left out",
        "NotificationEndpointHTTP 'hook': packages cannot express contentTemplate, which is left out",
        "NotificationEndpointHTTP 'hook': packages cannot express headers, which is left out",
        "NotificationEndpointTelegram 'chat': packages have no such kind, so it is left out",
        "Task 'monthly': packages cannot express concurrency of option task, which is left out",
    ]
    assert "every: 1mo" in file.read_text()
    assert "canary-8a1f" not in ended.err + file.read_text()

    strict = await pkger("export", "--all", "--strict", "-o", str(file), env=env)
    assert (strict.code, strict.err.splitlines()[-1]) == (
        1,
        "Error: --strict makes the 7 warnings errors",
    )
    assert (await pkger("export", "Label", "none", "--strict", env=env)).code == 1
    await on_influxdb.apply(text(an_object("Label", "red", "red")))
    assert (await pkger("export", "Label", "red", "--strict", env=env)).code == 0


async def test_a_rule_is_left_out_with_its_telegram_endpoint(server: Influx, on_influxdb: Cluster) -> None:
    telegram = {"type": "telegram", "name": "chat", "token": "x", "channel": "c", "status": "active"}
    await made_by_hand(server, "notificationEndpoints", **telegram)
    endpoint = await newest(server, "notificationEndpoints")
    rule = {"type": "telegram", "name": "r", "endpointID": endpoint["id"], "every": "1m", "status": "active"}
    levels = [{"currentLevel": "CRIT"}]
    await made_by_hand(server, "notificationRules", **rule, statusRules=levels, messageTemplate="m")
    exported = await on_influxdb.export(everything={})
    assert [(each.resource.kind, "left out" in each.text) for each in exported.warnings] == [
        ("NotificationEndpointTelegram", True),
        ("NotificationRule", True),
    ]


@pytest.mark.parametrize("kind", ["CheckCustom", "NotificationEndpointTelegram"])
async def test_kinds_that_packages_do_not_have_are_not_written(client: DriverClient, kind: str) -> None:
    assert await client.refusal(create(kind, {"name": "n"})) == CONTENT_REFUSED
