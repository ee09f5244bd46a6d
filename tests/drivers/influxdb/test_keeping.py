"""The driver keeps fields unknown to specs, scripts of rules up to date, system buckets, and secrets."""

from typing import Any

import aiohttp
import pytest

from tests.drivers.client import (
    CONTENT_REFUSED,
    NAME_TAKEN,
    ORG,
    DriverClient,
    create,
    delete,
    ends,
    put_secret,
    reference,
    spec,
    update,
)
from tests.drivers.influxdb.running import Server
from tests.drivers.influxdb.samples import influxdb_sample as sample
from tests.influx import faults
from tests.influx.server import Influx


async def asked(server: Influx | Server, method: str, path: str, body: Any = None) -> Any:
    """Change the server as a user does, without the driver."""
    headers = {"Authorization": f"Token {server.token}", "Accept": "application/json"}
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.request(method, f"{server.url}/api/v2/{path}", json=body) as answer,
    ):
        assert answer.status < 300, await answer.text()
        return None if answer.status == 204 else await answer.json()


async def test_cells_keep_their_ids_and_the_further_fields_of_their_views(client: DriverClient, server: Influx) -> None:
    [made] = await client.made(create("Dashboard", sample("Dashboard", "d", "")))
    path = f"dashboards/{made.id}"
    [cell] = (await asked(server, "GET", f"{path}?include=properties"))["cells"]
    builder = {**cell["properties"]["queries"][0], "editMode": "builder", "name": "by hand"}
    shown = {**cell["properties"], "queries": [builder]}
    await asked(server, "PATCH", f"{path}/cells/{cell['id']}/view", {"name": cell["name"], "properties": shown})
    log = await asked(server, "POST", f"{path}/cells", {"x": 0, "y": 9, "w": 1, "h": 1})

    [written] = await client.made(update("Dashboard", made.id, sample("Dashboard", "renamed", "")))
    assert spec(written)["charts"] == spec(made)["charts"]
    cells = (await asked(server, "GET", f"{path}?include=properties"))["cells"]
    assert [each["id"] for each in cells] == [cell["id"], log["id"]]
    assert cells[0]["properties"]["queries"][0]["name"] == "by hand"

    [chart] = sample("Dashboard", "d", "")["charts"]
    await client.made(
        update("Dashboard", made.id, {**sample("Dashboard", "d", ""), "charts": [{**chart, "note": "n"}]})
    )
    cells = (await asked(server, "GET", f"{path}?include=properties"))["cells"]
    assert [each["id"] for each in cells] == [cell["id"], log["id"]]


async def test_endpoints_checks_rules_and_variables_keep_fields_unknown_to_specs(
    client: DriverClient, server: Influx
) -> None:
    endpoint, check, variable = await client.made(
        *(create(kind, sample(kind, "it", "")) for kind in ("NotificationEndpointHTTP", "CheckThreshold", "Variable"))
    )
    [rule] = await client.made(create("NotificationRule", sample("NotificationRule", "it", "")))
    for held, further in (
        (f"notificationEndpoints/{endpoint.id}", {"headers": {"a": "b"}, "contentTemplate": "t"}),
        (f"notificationRules/{rule.id}", {"runbookLink": "http://x", "limit": 2, "limitEvery": 3}),
    ):
        await asked(server, "PUT", held, {**await asked(server, "GET", held), **further})
        change = endpoint if "Endpoints" in held else rule
        await client.made(update(change.kind, change.id, sample(change.kind, "it", "new"), change.references))
        answer = await asked(server, "GET", held)
        assert {key: answer[key] for key in further} == further
    held = f"checks/{check.id}"
    before = await asked(server, "GET", held)
    query = {**before["query"], "editMode": "builder", "name": "by hand"}
    await asked(server, "PUT", held, {**before, "query": query})
    await client.made(update("CheckThreshold", check.id, sample("CheckThreshold", "it", "new")))
    assert (await asked(server, "GET", held))["query"]["name"] == "by hand"
    created = (await asked(server, "GET", f"variables/{variable.id}"))["createdAt"]
    await client.made(update("Variable", variable.id, sample("Variable", "it", "new")))
    assert (await asked(server, "GET", f"variables/{variable.id}"))["createdAt"] == created


async def test_a_changed_endpoint_updates_the_scripts_of_its_rules(client: DriverClient, server: Influx) -> None:
    kind = "NotificationEndpointSlack"
    [endpoint] = await client.made(create(kind, sample(kind, "e", "")))
    refers = [reference("/endpointName", kind, endpoint.id)]
    [rule] = await client.made(create("NotificationRule", sample("NotificationRule", "r", ""), references=refers))
    task = (await asked(server, "GET", f"notificationRules/{rule.id}"))["taskID"]
    await client.made(update(kind, endpoint.id, {**sample(kind, "e", ""), "url": "https://moved.example.com"}))
    assert "moved.example.com" in (await asked(server, "GET", f"tasks/{task}"))["flux"]
    server.records.clear()
    await client.made(update(kind, endpoint.id, {**sample(kind, "e", "changed"), "url": "https://moved.example.com"}))
    assert server.records.count("PATCH") == 0


@pytest.mark.parametrize(
    ("fault", "method", "path"),
    [
        (faults.unanswered(), "PUT", "/api/v2/notificationEndpoints/*"),
        (faults.refused(500), "GET", "/api/v2/notificationRules"),
        (faults.refused(429), "PATCH", "/api/v2/notificationRules/*"),
    ],
)
async def test_outdated_scripts_are_updated_when_their_endpoint_is_read(
    client: DriverClient, server: Influx, fault: faults.Fault, method: str, path: str
) -> None:
    """The engine looks up a write without an answer by reading, and accepts an endpoint that is as wanted."""
    kind = "NotificationEndpointSlack"
    [endpoint] = await client.made(create(kind, sample(kind, "e", "")))
    refers = [reference("/endpointName", kind, endpoint.id)]
    [rule] = await client.made(create("NotificationRule", sample("NotificationRule", "r", ""), references=refers))
    task = (await asked(server, "GET", f"notificationRules/{rule.id}"))["taskID"]
    server.faults.add(fault, method, path)
    moved = {**sample(kind, "e", ""), "url": "https://moved.example.com"}
    assert ends(await client.mutate(update(kind, endpoint.id, moved))) == ["ambiguous"]
    assert "moved.example.com" not in (await asked(server, "GET", f"tasks/{task}"))["flux"]
    [found] = await client.read((kind, endpoint.id))
    assert spec(found) == moved
    assert "moved.example.com" in (await asked(server, "GET", f"tasks/{task}"))["flux"]
    server.records.clear()
    assert await client.read((kind, endpoint.id)) == [found]
    assert server.records.count("write") == 0


async def test_a_refused_update_of_a_check_is_undone(client: DriverClient, server: Influx) -> None:
    """The server stores the refused check, and keeps running the script before the update."""
    [made] = await client.made(create("CheckThreshold", sample("CheckThreshold", "c", "")))
    server.faults.add(faults.failed(500), "PUT", f"/api/v2/checks/{made.id}")
    server.records.clear()
    assert (
        await client.refusal(update("CheckThreshold", made.id, sample("CheckThreshold", "c", "new"))) == CONTENT_REFUSED
    )
    assert await client.listing("CheckThreshold") == [made]
    assert server.records.count("PUT") == 2

    server.faults.add(faults.failed(500), "PUT", f"/api/v2/checks/{made.id}")
    server.faults.add(faults.refused(500), "PUT", f"/api/v2/checks/{made.id}", nth=2)
    wanted = update("CheckThreshold", made.id, sample("CheckThreshold", "c", "new"))
    assert ends(await client.mutate(wanted)) == ["ambiguous"]


async def test_system_buckets_are_hidden(client: DriverClient, server: Influx) -> None:
    assert await client.listing("Bucket") == []
    [org] = [each for each in (await asked(server, "GET", "orgs"))["orgs"] if each["name"] == ORG]
    for bucket in (await asked(server, "GET", f"buckets?orgID={org['id']}"))["buckets"]:
        assert bucket["type"] == "system"
        assert await client.read(("Bucket", bucket["id"])) == [None]
        server.records.clear()
        assert ends(await client.mutate(delete("Bucket", bucket["id"]))) == ["done"]
        assert server.records.count("write") == 0
    assert not server.state.erased


async def test_a_change_of_retention_and_its_undo_change_the_shards(client: DriverClient, server: Influx) -> None:
    kept = sample("Bucket", "b", "")
    [made] = await client.made(create("Bucket", kept))
    for rules in ([], [{"type": "expire", "everySeconds": 200_000}], kept["retentionRules"]):
        [written] = await client.made(update("Bucket", made.id, {**kept, "retentionRules": rules}))
        assert spec(written)["retentionRules"] == rules
    [rule] = (await asked(server, "GET", f"buckets/{made.id}"))["retentionRules"]
    assert rule["shardGroupDurationSeconds"] == 3600


async def test_keys_that_the_server_generates_for_endpoints_are_not_listed(
    client: DriverClient, server: Influx
) -> None:
    [org] = [each for each in (await asked(server, "GET", "orgs"))["orgs"] if each["name"] == ORG]
    body = {"type": "slack", "name": "s", "url": "http://x", "status": "active", "token": "abc", "orgID": org["id"]}
    await asked(server, "POST", "notificationEndpoints", body)
    await client.mutate(put_secret("ours", "v"))
    assert await client.secret_keys() == ["ours"]
    [endpoint] = await client.listing("NotificationEndpointSlack")
    assert "abc" not in endpoint.spec_json


async def test_a_resource_without_a_kind_is_not_listed_but_keeps_its_name(client: DriverClient, server: Influx) -> None:
    kind = "NotificationEndpointHTTP"
    [org] = [each for each in (await asked(server, "GET", "orgs"))["orgs"] if each["name"] == ORG]
    telegram = {"type": "telegram", "name": "t", "token": "x", "channel": "c", "status": "active", "orgID": org["id"]}
    await asked(server, "POST", "notificationEndpoints", telegram)
    assert await client.listing(kind) == []
    assert await client.refusal(create(kind, sample(kind, "t", ""))) == NAME_TAKEN


async def test_months_of_a_schedule_and_further_options_of_a_task_are_kept(
    client: DriverClient, server: Influx
) -> None:
    [org] = [each for each in (await asked(server, "GET", "orgs"))["orgs"] if each["name"] == ORG]
    query = 'from(bucket: "b") |> range(start: -1h)'
    option = 'option task = {name: "monthly", every: 1mo, concurrency: 3, retry: 4}'
    await asked(server, "POST", "tasks", {"orgID": org["id"], "flux": f"{option}\n\n{query}"})
    [task] = await client.listing("Task")
    assert (spec(task)["every"], spec(task)["query"]) == ("1mo", query)
    for change in ({"query": query.replace("-1h", "-2h")}, {"every": "1y"}):
        await client.made(update("Task", task.id, {**spec(task), **change}))
        live = await asked(server, "GET", f"tasks/{task.id}")
        assert "concurrency: 3, retry: 4}" in live["flux"]
        [read] = await client.listing("Task")
        assert spec(read) == {**spec(task), **change}
    assert live["every"] == "1y"


async def test_further_options_in_the_script_of_a_package_run_and_are_compared(
    client: DriverClient, server: Influx
) -> None:
    query = 'option task = {name: "own", concurrency: 2, every: 1h, retry: 3} // why\nx()'
    [made] = await client.made(create("Task", {**sample("Task", "t", ""), "query": query}))
    path = f"tasks/{made.id}"
    flux = (await asked(server, "GET", path))["flux"]
    assert "concurrency: 2, retry: 3}" in flux
    query = spec(made)["query"]
    assert "concurrency: 2, " in query

    by_hand = flux.replace("concurrency: 2, retry: 3}", "concurrency: 5}", 1)
    await asked(server, "PATCH", path, {"flux": by_hand})
    [read] = await client.read(("Task", made.id))
    assert read
    assert spec(read)["query"] == query.replace("concurrency: 2", "concurrency: 5").replace(", retry: 3", "")
    await client.made(update("Task", made.id, {**spec(made), "query": "x()"}))
    assert "concurrency" not in (await asked(server, "GET", path))["flux"]


@pytest.mark.parametrize("option", ["concurrency: 101", "retry: 0", "concurrency: n"])
async def test_a_script_with_an_option_that_the_server_refuses_is_refused(client: DriverClient, option: str) -> None:
    query = f'option task = {{name: "own", every: 1h, {option}}}\nx()'
    assert await client.refusal(create("Task", {**sample("Task", "t", ""), "query": query})) == CONTENT_REFUSED
    assert await client.would_hold(create("Task", {**sample("Task", "t", ""), "query": query})) is None


async def test_an_offset_in_months_is_refused(client: DriverClient) -> None:
    assert await client.would_hold(create("Task", {**sample("Task", "t", ""), "offset": "1mo"})) is None
