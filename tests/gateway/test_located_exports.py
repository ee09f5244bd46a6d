"""Exports of resources without their organization, and in the form of InfluxDB."""

from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.apply.packages import a_check, a_rule, an_endpoint, an_object
from tests.cluster import Calls, Cluster
from tests.gateway.gateway import client, gateway, settings

EXPORT = "/api/v2/templates/export"
ORGS = "one=embedded/one,two=embedded/two,empty=embedded/empty"


async def post(session: aiohttp.ClientSession, path: str, body: dict[str, Any]) -> tuple[int, Any]:
    async with session.post(path, json=body) as answer:
        return answer.status, await answer.json()


async def applied(session: aiohttp.ClientSession, org: str, *package: dict[str, Any]) -> dict[str, Any]:
    """The summary of an apply to the organization of that name."""
    async with session.get("/api/v2/orgs", params={"org": org}) as answer:
        org_id = (await answer.json())["orgs"][0]["id"]
    body = {"orgID": org_id, "template": {"contents": list(package)}, "secrets": {"slack-token": "value"}}
    status, document = await post(session, "/api/v2/templates/apply", body)
    assert status == 201, document
    summary: dict[str, Any] = document["summary"]
    return summary


def bucket(summary: dict[str, Any]) -> dict[str, str]:
    """The only bucket of a summary, as a request names it."""
    (found,) = summary["buckets"]
    return {"kind": "Bucket", "id": f"{found['id']:016x}"}


@pytest.mark.parametrize("unknown", [0, 1, 2])
async def test_resources_of_several_organizations_are_found_and_all_unknown_ones_listed(
    services: Cluster, tmp_path: Path, unknown: int
) -> None:
    missing = [{"kind": "Bucket", "id": f"00000000deadbee{number}"} for number in range(unknown)]
    async with (
        gateway(settings(tmp_path, PKGER_HTTP_ORGS=ORGS), services) as address,
        client(address) as session,
    ):
        first = bucket(await applied(session, "one", an_object("Bucket", "first", "first")))
        second = bucket(await applied(session, "two", an_object("Bucket", "second", "second")))
        status, document = await post(session, EXPORT, {"resources": [second, *missing, first]})
    if unknown:
        assert status == 404
        assert all(each["id"] in document["message"] for each in missing)
        assert first["id"] not in document["message"]
    else:
        assert [each["metadata"]["name"] for each in document] == ["first", "second"]


async def test_resources_are_not_looked_up_one_by_one(services: Cluster, calls: Calls, tmp_path: Path) -> None:
    async with gateway(settings(tmp_path, PKGER_HTTP_ORGS=ORGS), services) as address, client(address) as session:
        named = []
        for org in ("one", "two"):
            summary = await applied(session, org, *(an_object("Label", f"{org}-{n}", f"{org}-{n}") for n in range(32)))
            named += [{"kind": "Label", "id": f"{label['id']:016x}"} for label in summary["labels"]]
        status, document = await post(session, EXPORT, {"resources": named})
    assert (status, len(document)) == (200, 64)
    # Each of the three organizations is asked once for all 64 resources. Two of them have some, so they are asked for
    # each half. Then each of these two exports its own resources.
    assert calls.count("ExportPackage") == 3 + 4 + 2


async def test_an_export_has_default_values(services: Cluster, tmp_path: Path) -> None:
    chart = {"kind": "Single_Stat", "name": "c", "width": 1, "height": 1, "queries": [{"query": "buckets()"}]}
    chart["colors"] = [{"name": "n", "type": "text", "hex": "#ffffff"}]
    package = (
        an_endpoint("Slack", "chat", "chat"),
        a_rule("rule", "chat", "rule", messageTemplate="m"),
        a_check("Threshold", "check", "check"),
        an_object("Dashboard", "board", "board", charts=[chart]),
        an_object("Dashboard", "bare", "bare"),
    )
    async with gateway(settings(tmp_path, PKGER_HTTP_ORGS=ORGS), services) as address, client(address) as session:
        await applied(session, "one", *package)
        async with session.get("/api/v2/orgs", params={"org": "one"}) as answer:
            org = (await answer.json())["orgs"][0]["id"]
        _, document = await post(session, EXPORT, {"orgIDs": [{"orgID": org}]})
    specs = {each["metadata"]["name"]: each["spec"] for each in document}
    assert {name: spec["name"] for name, spec in specs.items()} == {name: name for name in specs}
    assert specs["chat"]["status"] == "active"
    assert specs["bare"]["charts"] == []
    assert [each["kind"] for each in specs["board"]["charts"]] == ["Single_Stat"]
