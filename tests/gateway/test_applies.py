"""Applies over HTTP: plan digests, idempotency keys, rollback, and credentials that stay hidden."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import RawTestServer
from pkger.journal.v1 import planning_pb2
from pkger.journal.v1.planning_pb2_grpc import PlanningServiceStub
from pkger.model.v1 import object_pb2
from pkger.parser.v1 import parser_pb2
from pkger.planner.v1 import planner_pb2

import parser_svc.__main__ as parser
from services.gateway.settings import GatewaySettings
from services.rpc.process import Service
from services.settings import Settings
from tests.cluster import Cluster, cluster
from tests.gateway.gateway import TOKEN, client, gateway, settings

APPLY, STACKS = "/api/v2/templates/apply", "/api/v2/stacks"

ORG = "d28a912511da88e3"
"""The first digits of the SHA-256 of ``embedded/example``."""


def an_object(kind: str, name: str, /, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "influxdata.com/v2alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}


LABEL = an_object("Label", "l", name="label", color="#112233")
BUCKET = an_object("Bucket", "b", name="bucket")
SLACK = an_object("NotificationEndpointSlack", "e", name="slack", url="https://hooks.example.com/a")


@pytest.fixture
def made(tmp_path: Path) -> GatewaySettings:
    return settings(tmp_path)


@pytest.fixture
async def http(services: Cluster, made: GatewaySettings) -> AsyncIterator[aiohttp.ClientSession]:
    async with gateway(made, services) as address, client(address) as session:
        yield session


async def post(http: aiohttp.ClientSession, path: str, body: Any, **headers: str) -> tuple[int, Any]:
    async with http.post(path, json=body, headers=headers) as answer:
        return answer.status, await answer.json()


async def get(http: aiohttp.ClientSession, path: str) -> Any:
    async with http.get(path) as answer:
        assert answer.status == 200
        return await answer.json()


def body_of(*objects: dict[str, Any], **members: Any) -> dict[str, Any]:
    return {"orgID": ORG, "template": {"contents": list(objects)}, **members}


async def a_stack(http: aiohttp.ClientSession, name: str = "") -> str:
    status, stack = await post(http, STACKS, {"orgID": ORG, "name": name})
    assert status == 201
    return str(stack["id"])


async def test_an_apply_runs_the_plan_that_was_shown_and_no_other(http: aiohttp.ClientSession) -> None:
    stack = await a_stack(http)
    _, shown = await post(http, APPLY, body_of(LABEL, stackID=stack, dryRun=True))
    other = body_of(BUCKET, stackID=stack, planDigest=shown["planDigest"])
    status, refused = await post(http, APPLY, other)
    assert (status, refused["code"]) == (422, "conflict")
    assert (await post(http, APPLY, {**other, "dryRun": True}))[0] == 422
    status, done = await post(http, APPLY, body_of(LABEL, stackID=stack, planDigest=shown["planDigest"]))
    assert (status, done["planDigest"]) == (201, shown["planDigest"])


async def test_an_environment_value_keeps_all_digits_of_an_integer(http: aiohttp.ClientSession) -> None:
    label = an_object("Label", "l", name={"envRef": {"key": "number"}})
    body = body_of(label, dryRun=True, envRefs={"number": 2**63 - 1})
    status, planned = await post(http, APPLY, body)
    assert (status, planned["summary"]["labels"][0]["name"]) == (200, "9223372036854775807")
    assert planned["summary"]["labels"][0]["envReferences"][0]["value"] == 2**63 - 1


@pytest.mark.parametrize("is_list", [True, False])
@pytest.mark.parametrize("is_text", [True, False])
async def test_an_export_of_the_user_interface_is_named(
    http: aiohttp.ClientSession, is_list: bool, is_text: bool
) -> None:
    export = {"meta": {"version": "1"}, "content": {"data": {"type": "dashboard", "attributes": {"name": "Load"}}}}
    contents: Any = [export] if is_list else export
    template = {"contents": json.dumps(contents) if is_text else contents, "sources": ["load.json"]}
    status, refused = await post(http, APPLY, {"orgID": ORG, "template": template, "dryRun": True})
    assert status == 422
    assert "this is a dashboard as the user interface of InfluxDB exports it" in json.dumps(refused)
    assert "pkger convert FILE" in json.dumps(refused)


async def test_equal_warnings_are_one_in_the_header(http: aiohttp.ClientSession) -> None:
    labels = [an_object("Label", name, colour="red") for name in ("one", "two")]
    async with http.post(APPLY, json=body_of(*labels, dryRun=True)) as answer:
        shown = answer.headers["X-Pkger-Warnings"]
    assert shown.count("there is no field 'colour'") == 1
    assert shown.endswith("(and at 1 other place)")


async def test_the_same_key_gets_the_same_answer(http: aiohttp.ClientSession) -> None:
    stack = await a_stack(http)
    key = {"Idempotency-Key": "k"}
    first = await post(http, APPLY, body_of(LABEL, stackID=stack), **key)
    again = await post(http, APPLY, body_of(LABEL, stackID=stack), **key)
    assert first == again
    assert first[1]["diff"]["labels"][0]["stateStatus"] == "new"
    status, other = await post(http, APPLY, body_of(BUCKET, stackID=stack), **key)
    assert (status, other["code"]) == (422, "conflict")
    assert "Idempotency-Key" in other["message"]
    _, without = await post(http, APPLY, body_of(LABEL, stackID=stack))
    assert without["diff"]["labels"][0]["stateStatus"] == "exists"


async def test_a_nameless_stack_is_found_again_and_loses_nothing(http: aiohttp.ClientSession) -> None:
    _, first = await post(http, APPLY, body_of(LABEL))
    _, more = await post(http, APPLY, body_of(LABEL, BUCKET))
    _, less = await post(http, APPLY, body_of(BUCKET))
    _, other = await post(http, APPLY, body_of(an_object("Label", "other", name="other")))
    assert first["stackID"] == more["stackID"] == less["stackID"] != other["stackID"]
    stack = await get(http, f"{STACKS}/{first['stackID']}")
    assert [resource["templateMetaName"] for resource in stack["resources"]] == ["b", "l"]
    _, dry = await post(http, APPLY, body_of(LABEL, dryRun=True))
    assert dry["stackID"] == first["stackID"]
    _, dry = await post(http, APPLY, body_of(an_object("Label", "new", name="new"), dryRun=True))
    assert dry["stackID"] == ""


async def test_an_object_of_a_named_stack_is_a_conflict_that_names_the_stack(http: aiohttp.ClientSession) -> None:
    stack = await a_stack(http, "owner")
    await post(http, APPLY, body_of(LABEL, stackID=stack))
    for is_dry in (True, False):
        status, refused = await post(http, APPLY, body_of(LABEL, dryRun=is_dry))
        assert (status, refused["code"]) == (422, "conflict")
        assert "owner" in refused["message"]


async def test_two_applies_at_once_make_one_stack(http: aiohttp.ClientSession) -> None:
    answers = await asyncio.gather(*(post(http, APPLY, body_of(LABEL)) for _ in range(4)))
    done = [answer for status, answer in answers if status == 201]
    assert {answer["stackID"] for answer in done} == {done[0]["stackID"]}
    assert all(status in (201, 422) for status, _ in answers)
    assert len((await get(http, f"{STACKS}?orgID={ORG}"))["stacks"]) == 1


async def test_an_apply_that_the_platform_rejects_is_rolled_back(older_services: Cluster, tmp_path: Path) -> None:
    async with gateway(settings(tmp_path), older_services) as address, client(address) as http:
        refused = an_object("Bucket", "refused", name="_refused")
        status, failed = await post(http, APPLY, body_of(LABEL, BUCKET, refused))
        assert (status, failed["code"]) == (500, "internal error")
        first, *lines = failed["message"].split("\n")
        assert "all changes were rolled back" in first
        assert any(line.strip().startswith("Bucket refused: ") for line in lines)
        assert (await get(http, f"{STACKS}?orgID={ORG}"))["stacks"] == []
        assert await older_services.resources("example") == []


async def test_a_stack_of_another_organization_is_a_conflict(services: Cluster, tmp_path: Path) -> None:
    made = settings(tmp_path, PKGER_HTTP_ORGS="example=embedded/example,other=embedded/other")
    async with gateway(made, services) as address, client(address) as http:
        stack = await a_stack(http)
        other = (await get(http, "/api/v2/orgs?org=other"))["orgs"][0]["id"]
        status, refused = await post(http, APPLY, body_of(LABEL, stackID=stack) | {"orgID": other})
        assert (status, refused["code"]) == (422, "conflict")
        status, refused = await post(http, f"{STACKS}/{stack}/uninstall?orgID={other}", {})
        assert (status, refused["code"]) == (422, "conflict")
        async with http.delete(f"{STACKS}/{stack}?orgID={other}") as answer:
            assert answer.status == 422
        assert (await get(http, f"{STACKS}?orgID={other}"))["stacks"] == []


async def test_a_stack_of_an_organization_that_is_not_served_is_not_found(services: Cluster, tmp_path: Path) -> None:
    async with gateway(settings(tmp_path, PKGER_HTTP_ORGS=""), services) as address, client(address) as http:
        stack = (await post(http, STACKS, {"orgID": (await get(http, "/api/v2/orgs"))["orgs"][0]["id"]}))[1]["id"]
    async with gateway(settings(tmp_path), services) as address, client(address) as http:
        async with http.get(f"{STACKS}/{stack}") as answer:
            assert answer.status == 404
        async with http.delete(f"{STACKS}/{stack}") as answer:
            assert answer.status == 204
        assert (await post(http, "/api/v2/templates/export", {"stackID": stack}))[0] == 404


CANARY = "canary-of-a-secret"


async def test_a_literal_credential_becomes_a_secret_that_no_answer_or_log_shows(
    http: aiohttp.ClientSession, services: Cluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    stack, answers = await a_stack(http), []
    literal = {**SLACK, "spec": {**SLACK["spec"], "token": CANARY}}
    status, dry = await post(http, APPLY, body_of(literal, stackID=stack, dryRun=True))
    assert status == 200
    assert dry["summary"]["notificationEndpoints"][0]["notificationEndpoint"]["token"] == ""
    assert dry["summary"]["missingSecrets"] == []
    answers.append(dry)
    status, done = await post(http, APPLY, body_of(literal, stackID=stack, secrets={"more": CANARY}))
    assert status == 201
    (key,) = {*await services.secret_keys("example")} - {"more"}
    assert key.endswith("-token")
    assert done["summary"]["notificationEndpoints"][0]["notificationEndpoint"]["token"] == f"secret: {key}"
    answers.append(done)
    status, again = await post(http, APPLY, body_of(literal, stackID=stack))
    assert again["diff"]["notificationEndpoints"][0]["stateStatus"] == "exists"
    assert await services.secret_keys("example") == sorted([key, "more"])
    answers += [again, await get(http, f"{STACKS}/{stack}"), await get(http, f"{STACKS}?orgID={ORG}")]
    answers.append((await post(http, "/api/v2/templates/export", {"stackID": stack}))[1])
    # A package that is refused: the name of the endpoint is not a text.
    wrong = {**literal, "metadata": {"name": 7}}
    answers.append((await post(http, APPLY, body_of(wrong, stackID=stack, secrets={"more": CANARY})))[1])
    files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and path.name != "platform.db"]
    for word in (CANARY, TOKEN):
        assert word not in json.dumps(answers)
        assert word not in caplog.text + "".join(str(record.__dict__) for record in caplog.records)
        assert not any(word.encode() in content for content in files)
    operation = await services.newest_operation()
    assert operation.author == "tester"


async def test_a_repeated_request_gets_the_same_plan_and_the_credentials_again(
    http: aiohttp.ClientSession, services: Cluster
) -> None:
    """A gateway that dies between plan and operation has not supplied them."""
    literal = {**SLACK, "spec": {**SLACK["spec"], "token": CANARY}}
    source = parser_pb2.Source(name="a.json", text=json.dumps([literal]))
    request = planner_pb2.CreatePlanRequest(
        stack=object_pb2.StackRef(id=await a_stack(http)),
        package=planner_pb2.PackageSources(sources=[source]),
        request_id="r",
    )
    peer = services.peers["planner"]
    stub, message = PlanningServiceStub(peer.channel), planning_pb2.PlanStandalonePackageRequest(request=request)
    answers = [[each async for each in peer.stream(stub.PlanStandalonePackage, message)] for _ in range(2)]
    plans = [[each.part.part.header.id for each in answer if each.part.part.HasField("header")] for answer in answers]
    secrets = [dict(answer[0].secrets.values) for answer in answers]
    assert plans[0] == plans[1] != []
    assert secrets[0] == secrets[1]
    assert list(secrets[0].values()) == [CANARY]


YAML = """
apiVersion: influxdata.com/v2alpha1
kind: Label
metadata: {name: {envRef: {key: label, default: red}}}
---
apiVersion: influxdata.com/v2alpha1
kind: NotificationEndpointSlack
metadata: {name: chat}
spec:
  url: https://hooks.slack.com/services/x
  token: {envRef: {key: token}}
  associations: [{kind: Label, name: red}]
"""

PROGRAM = """
local endpoint(name) = {
  apiVersion: 'influxdata.com/v2alpha1',
  kind: 'NotificationEndpointSlack',
  metadata: { name: name },
  spec: { url: 'https://hooks.slack.com/services/x', token: 'canary-of-a-secret-2' },
};
[endpoint('other')]
"""


@asynccontextmanager
async def generous(settings: Settings) -> AsyncIterator[Service]:
    """A parser that evaluates programs, and fetches from this machine."""
    async with parser.opened(replace(settings, allow_jsonnet=True, allow_private_addresses=True)) as service:
        yield service


@asynccontextmanager
async def serving_text(text: str) -> AsyncIterator[str]:
    """The address of a file with *text*."""

    async def answer(request: web.BaseRequest) -> web.Response:
        return web.Response(text=text)

    async with RawTestServer(answer) as server:
        yield str(server.make_url("/package.json"))


async def test_credentials_in_addresses_are_masked_in_answers(http: aiohttp.ClientSession, services: Cluster) -> None:
    hook = "https://hooks.slack.com/services/"
    stack = await a_stack(http)

    def wanted(path: str, **members: Any) -> dict[str, Any]:
        return body_of({**SLACK, "spec": {**SLACK["spec"], "url": hook + path}}, stackID=stack, **members)

    answers = [await post(http, APPLY, wanted("T0/B0/first"))]
    answers += [await post(http, APPLY, wanted(path, dryRun=True)) for path in ("T0/B0/first", "T0/B0/second")]
    same, changed = (answer["diff"]["notificationEndpoints"][0] for _, answer in answers[1:])
    assert (same["old"]["url"], same["new"]["url"]) == (f"{hook}(hidden)", f"{hook}(hidden)")
    assert (changed["old"]["url"], changed["new"]["url"]) == (f"{hook}(hidden)", f"{hook}(changed)")
    assert answers[2][1]["summary"]["notificationEndpoints"][0]["url"] == f"{hook}(hidden)"
    assert answers[1][1]["planDigest"] != answers[2][1]["planDigest"]
    async with http.get(f"/api/pkger/v1/stacks/{stack}/revisions/1") as answer:
        answers.append((answer.status, await answer.text()))
    assert "(hidden)" in answers[-1][1]
    assert "T0/B0" not in str(answers)
    [held] = await services.resources("example")
    assert json.loads(held.spec_json)["url"] == f"{hook}T0/B0/first"


async def test_literal_credentials_of_any_source_become_secrets(tmp_path: Path) -> None:
    listed = {**SLACK, "metadata": {"name": "listed"}, "spec": {**SLACK["spec"], "token": f"{CANARY}-3"}}
    templates = [
        {"sources": ["chat.yml"], "contents": YAML},
        {"sources": ["other.jsonnet"], "contents": PROGRAM, "contentType": "jsonnet"},
        {"sources": ["listed.json"], "contents": [listed]},
    ]
    fetched = json.dumps([{**listed, "metadata": {"name": "fetched"}, "spec": {**listed["spec"], "name": "fetched"}}])
    async with (
        serving_text(fetched) as url,
        cluster(tmp_path, {"parser": generous}) as services,
        gateway(settings(tmp_path), services) as address,
        client(address) as http,
    ):
        stack = await a_stack(http)
        body = {"orgID": ORG, "stackID": stack, "templates": templates, "envRefs": {"token": CANARY}}
        body["remotes"] = [{"url": url}]
        status, dry = await post(http, APPLY, {**body, "dryRun": True})
        assert status == 200, dry
        status, done = await post(http, APPLY, body)
        keys = await services.secret_keys("example")
        _, again = await post(http, APPLY, body)
        assert await services.secret_keys("example") == keys
    assert status == 201
    assert dry["sources"] == done["sources"] == [url, "chat.yml", "other.jsonnet", "listed.json"]
    tokens = [each["token"] for each in done["summary"]["notificationEndpoints"]]
    assert sorted(tokens) == [f"secret: {key}" for key in keys]
    assert len(keys) == 4
    (label,) = done["summary"]["labels"]
    # Other fields keep their environment references.
    assert [reference["envRefKey"] for reference in label["envReferences"]] == ["label"]
    assert len(done["summary"]["labelMappings"]) == 1
    assert {each["stateStatus"] for each in again["diff"]["notificationEndpoints"]} == {"exists"}
    assert CANARY not in json.dumps([dry, done, again])


async def test_an_update_of_a_stack_is_applied_as_a_whole_or_not_at_all(
    http: aiohttp.ClientSession, services: Cluster
) -> None:
    owner, taker = await a_stack(http, "owner"), await a_stack(http, "taker")
    _, done = await post(http, APPLY, body_of(LABEL, BUCKET, stackID=owner))
    bucket, label = (f"{done['diff'][kind][0]['id']:016x}" for kind in ("buckets", "labels"))

    async def patch(stack: str, **members: Any) -> tuple[int, Any]:
        async with http.patch(f"{STACKS}/{stack}", json=members) as answer:
            return answer.status, await answer.json()

    def added(*resources: tuple[str, str]) -> list[dict[str, str]]:
        return [{"kind": kind, "resourceID": resource} for kind, resource in resources]

    assert (await patch(taker, additionalResources=added(("Bucket", bucket))))[0] == 422, "another stack owns it"
    assert (await patch(taker, additionalResources=added(("Bucket", "00000000deadbeef"))))[0] == 422
    assert (await patch(owner, additionalResources=added(("Bucket", bucket))))[0] == 200, "the stack has it already"
    assert (await patch(taker, name="owner"))[1]["code"] == "conflict"
    async with http.delete(f"{STACKS}/{owner}?orgID={ORG}") as answer:
        assert answer.status == 204
    free = await services.apply(json.dumps([LABEL, BUCKET]), org="example")
    assert free.state
    ids = {resource.kind: resource.id for resource in await services.resources("example")}
    resources = added(("Bucket", ids["Bucket"]), ("Label", ids["Label"]))
    status, _ = await patch(taker, name=" no name ", additionalResources=resources)
    assert status == 400
    assert (await get(http, f"{STACKS}/{taker}"))["resources"] == [], "nothing was imported"
    status, updated = await patch(taker, name="new", additionalResources=resources)
    assert (status, updated["name"]) == (200, "new")
    assert sorted(each["resourceID"] for each in updated["resources"]) == sorted(ids.values())
    assert label


async def test_a_shorter_retention_needs_no_consent_and_the_dry_run_shows_it(
    http: aiohttp.ClientSession, services: Cluster
) -> None:
    stack = await a_stack(http)
    await post(http, APPLY, body_of(BUCKET, stackID=stack))
    rules = [{"type": "expire", "everySeconds": 3600}]
    short = {**BUCKET, "spec": {**BUCKET["spec"], "retentionRules": rules}}
    status, shown = await post(http, APPLY, body_of(short, stackID=stack, dryRun=True))
    [row] = shown["diff"]["buckets"]
    assert (status, row["old"]["retentionRules"], row["new"]["retentionRules"]) == (200, None, rules)
    assert (await post(http, APPLY, body_of(short, stackID=stack)))[0] == 201
    [bucket] = await services.resources("example")
    assert json.loads(bucket.spec_json)["retentionRules"] == rules


@pytest.mark.parametrize("dry_run", [True, False])
async def test_an_empty_package_removes_all_resources_only_with_allow_empty(
    http: aiohttp.ClientSession, services: Cluster, *, dry_run: bool
) -> None:
    stack = await a_stack(http)
    await post(http, APPLY, body_of(LABEL, BUCKET, stackID=stack))
    nothing = {"orgID": ORG, "stackID": stack, "templates": [], "dryRun": dry_run}
    status, refused = await post(http, APPLY, nothing)
    assert (status, refused["code"]) == (422, "unprocessable entity")
    assert "all 2 resources" in refused["message"]
    assert '("allowEmpty": true)' in refused["message"]
    assert len(await services.resources("example")) == 2
    assert (await post(http, APPLY, {**nothing, "allowEmpty": True}))[0] == (200 if dry_run else 201)
    assert len(await services.resources("example")) == (2 if dry_run else 0)
