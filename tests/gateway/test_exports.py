"""Exports over HTTP: across organizations, as YAML, with warnings, and applied again."""

import json
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from services.gateway.media_types import wants_yaml
from tests.cluster import Cluster
from tests.drivers.client import create
from tests.gateway.gateway import client, gateway, settings

EXPORT, APPLY = "/api/v2/templates/export", "/api/v2/templates/apply"

TWO = "example=embedded/example,other=embedded/other"


def a_bucket(name: str, shown: str, **spec: Any) -> dict[str, Any]:
    spec = {"name": shown, **spec}
    return {"apiVersion": "influxdata.com/v2alpha1", "kind": "Bucket", "metadata": {"name": name}, "spec": spec}


async def export(http: aiohttp.ClientSession, body: Any, **headers: str) -> tuple[int, str, dict[str, str]]:
    async with http.post(EXPORT, json=body, headers=headers) as answer:
        return answer.status, await answer.text(), dict(answer.headers)


async def ids(http: aiohttp.ClientSession) -> dict[str, str]:
    async with http.get("/api/v2/orgs") as answer:
        return {org["name"]: org["id"] for org in (await answer.json())["orgs"]}


async def test_resources_are_found_in_any_organization(services: Cluster, tmp_path: Path) -> None:
    await services.apply(json.dumps([a_bucket("a", "first"), a_bucket("b", "second")]), stack="s", org="example")
    await services.apply(json.dumps([a_bucket("c", "third")]), stack="s", org="other")
    async with gateway(settings(tmp_path, PKGER_HTTP_ORGS=TWO), services) as address, client(address) as http:
        wanted = {"resources": [{"kind": "Bucket", "name": name} for name in ("third", "first")]}
        status, text, _ = await export(http, wanted)
        assert status == 200
        assert [(each["metadata"]["name"], each["spec"]["name"]) for each in json.loads(text)] == [
            ("a", "first"),
            ("c", "third"),
        ]
        assert (await export(http, {"resources": list(reversed(wanted["resources"]))}))[1] == text
        missing = {"resources": [*wanted["resources"], {"kind": "Bucket", "name": "nothing"}]}
        status, text, _ = await export(http, missing)
        assert (status, "Bucket nothing" in text) == (404, True)
        org = await ids(http)
        both = {"orgIDs": [{"orgID": org["example"]}, {"orgID": org["other"]}]}
        status, text, headers = await export(http, both, Accept="application/x-yaml")
        assert headers["Content-Type"].startswith("application/x-yaml")
        assert [each["metadata"]["name"] for each in yaml.safe_load_all(text)] == ["a", "b", "c"]


async def test_two_objects_of_one_name_cannot_be_in_one_package(services: Cluster, tmp_path: Path) -> None:
    await services.apply(json.dumps([a_bucket("a", "first")]), stack="s", org="example")
    await services.apply(json.dumps([a_bucket("a", "other")]), stack="s", org="other")
    async with gateway(settings(tmp_path, PKGER_HTTP_ORGS=TWO), services) as address, client(address) as http:
        org = await ids(http)
        status, text, _ = await export(http, {"orgIDs": [{"orgID": org["example"]}, {"orgID": org["other"]}]})
        assert (status, "one organization at a time" in text) == (422, True)


async def test_a_resource_that_no_package_may_have_is_left_out_or_refused(services: Cluster, tmp_path: Path) -> None:
    await services.apply(json.dumps([a_bucket("a", "first")]), stack="s", org="example")
    answer = await services.mutate(
        create("Bucket", {"name": "b", "description": "", "retentionRules": []}), org="example"
    )
    assert answer.results
    async with gateway(settings(tmp_path), services) as address, client(address) as http:
        org = await ids(http)
        status, text, headers = await export(http, {"orgIDs": [{"orgID": org["example"]}]})
        assert (status, [each["spec"]["name"] for each in json.loads(text)]) == (200, ["first"])
        assert "'b'" in headers["X-Pkger-Warnings"]
        status, text, _ = await export(http, {"resources": [{"kind": "Bucket", "name": "b"}]})
        assert (status, json.loads(text)["code"]) == (422, "unprocessable entity")


async def test_an_export_that_is_applied_changes_nothing(services: Cluster, tmp_path: Path) -> None:
    async with gateway(settings(tmp_path), services) as address, client(address) as http:
        org = (await ids(http))["example"]
        package = [a_bucket("a", "first", retentionRules=[{"type": "expire", "everySeconds": 7200}])]
        async with http.post(APPLY, json={"orgID": org, "template": {"contents": package}}) as answer:
            stack = (await answer.json())["stackID"]
        _, text, _ = await export(http, {"stackID": stack})
        body = {"orgID": org, "stackID": stack, "template": {"contents": json.loads(text)}}
        async with http.post(APPLY, json=body) as answer:
            assert answer.status == 201
            (row,) = (await answer.json())["diff"]["buckets"]
        assert row["old"] == row["new"]
        assert (await services.newest_operation()).result.no_change


async def test_an_export_says_what_the_template_said(services: Cluster, tmp_path: Path) -> None:
    document = {
        "apiVersion": "pkger/v1",
        "kind": "Lifecycle",
        "metadata": {"name": "x"},
        "spec": {"policy": {"drift": "ignore"}},
    }
    bucket = a_bucket("a", "first")
    protected = {**bucket, "metadata": {"name": "a", "lifecycle": {"protect": True}}}
    async with gateway(settings(tmp_path), services) as address, client(address) as http:
        org = (await ids(http))["example"]
        body = {"orgID": org, "template": {"contents": [protected, document]}}
        async with http.post(APPLY, json=body) as answer:
            stack = (await answer.json())["stackID"]
        _, text, _ = await export(http, {"stackID": stack})
        written, item = json.loads(text)
        assert (written, item["metadata"]) == (document, protected["metadata"])


def test_clients_that_prefer_yaml_get_it() -> None:
    assert all(map(wants_yaml, ("application/x-yaml", "text/yml", "text/html, application/yaml;q=0.5")))
    others = ("", "*/*", "application/json", "text/yml;q=0.1, application/json", "application/yaml;q=0", "x;q=z")
    assert not any(map(wants_yaml, others))
