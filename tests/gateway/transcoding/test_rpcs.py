"""Every public RPC over HTTP, with real services; each answer conforms to its schema."""

import json
from typing import Any
from urllib.parse import quote

from pkger.model.v1 import plan_pb2
from pkger.planner.v1 import planner_pb2
from pkger.planner.v1.planner_pb2_grpc import PlannerServiceStub

from services.gateway.transcoding.bindings import bindings
from services.gateway.transcoding.calling import LARGE
from services.gateway.transcoding.problems import PROBLEM_SCHEMA
from services.rpc.message_json import document_of
from tests.apply.packages import an_object
from tests.cluster import ALL_VIEWS, Cluster, sources
from tests.conftest import ROOT
from tests.gateway.gateway import TOKEN
from tests.gateway.transcoding.api import BASE, LABEL, Answered, Api, a_source, events_of, target_of

AT_HOME = ("embedded", "default", "fleet")
"""A stack by its name."""

BUCKET = (
    "---\napiVersion: influxdata.com/v2alpha1\nkind: Bucket\nmetadata: {name: readings}\n"
    "spec: {name: readings, associations: [{kind: Label, name: fleet}]}\n"
)


class Covered(Api):
    """A client that records its calls."""

    called: set[str]

    async def call(self, name: str, *path: str, **more: Any) -> Answered:
        self.called.add(name)
        return await super().call(name, *path, **more)

    async def done(self, name: str, *path: str, **more: Any) -> Answered:
        """Call an RPC that has to succeed."""
        answered = await self.call(name, *path, **more)
        assert answered.status == 200, answered.documents
        return answered

    async def one(self, name: str, *path: str, **more: Any) -> Any:
        """Call an RPC that has to succeed with one message."""
        return (await self.done(name, *path, **more)).document

    async def finished(self, name: str, *path: str, **more: Any) -> Any:
        """Run an operation; returns its last event."""
        finished = (await self.done(name, *path, **more)).documents[-1]["finished"]
        assert finished["state"] == "OPERATION_STATE_SUCCEEDED", finished
        return finished


async def test_every_rpc_is_reached_decoded_and_answered(api: Api, services: Cluster) -> None:
    client = Covered(api.session, api.address)
    client.called = set()
    await read_platforms_and_packages(client)
    await change_repositories(client)
    await read_published_packages(client)
    await change_definitions(client)
    stack = await make_a_stack(client)
    await read_operations(client, stack)
    await plan_and_apply(client, stack)
    await perform_actions(client)
    await roll_back(client, stack)
    await change_the_record(client, stack)
    await compare_and_export(client, stack)
    await watch(client, stack)
    await remove(client, stack)
    assert client.called == {binding.name for binding in bindings()}


async def read_platforms_and_packages(client: Covered) -> None:
    kinds = (await client.one("ParserService_ListKinds"))["kinds"]
    assert "Label" in {kind["name"] for kind in kinds}
    [platform] = (await client.one("PlannerService_ListPlatforms", query=[("platform", "embedded")]))["platforms"]
    assert platform["name"] == "embedded"
    checked = await client.one("PlannerService_CheckPlatform", "embedded", query=[("org", "default")])
    assert checked["name"] == "embedded"
    body = {**a_source(), "view": ["PACKAGE_VIEW_OBJECTS"]}
    parsed = (await client.done("ParserService_ParsePackage", body=body)).documents
    objects = [each for part in parsed for each in part.get("objects", {}).get("objects", [])]
    rendered = await client.one("ParserService_RenderPackage", body={"package": {"objects": objects}})
    assert "kind: Label" in rendered["text"]


async def change_repositories(client: Covered) -> None:
    body: dict[str, Any] = {"name": "main", "address": "http://127.0.0.1:8000/", "only": ["web-*"]}
    created = await client.one("RepositoryService_CreateRepository", body=body)
    repository = created["repository"]
    assert {key: repository[key] for key in body} == body
    assert (repository["priority"], repository["enabled"], len(created["warnings"])) == (0, True, 1)
    taken = await client.call("RepositoryService_CreateRepository", body=body)
    assert (taken.status, taken.document["reason"]) == (422, "REPOSITORY_EXISTS")
    body = {"priority": 5, "only": {"patterns": []}, "enabled": False}
    updated = (await client.one("RepositoryService_UpdateRepository", "main", body=body))["repository"]
    assert (updated["priority"], updated["only"], updated["enabled"]) == (5, [], False)
    listed = await client.one("RepositoryService_ListRepositories", query=[("page_size", "1")])
    assert listed == {"repositories": [updated], "next_page_token": ""}
    faulty = {"name": "other", "address": "https://me:hunter2@packages.example.com"}
    refused = await client.call("RepositoryService_CreateRepository", body=faulty)
    assert (refused.status, refused.document["metadata"]["field"]) == (400, "address")
    assert "hunter2" not in str(refused.document)
    assert await client.one("RepositoryService_DeleteRepository", "main") == {}
    for name, empty in (("RepositoryService_DeleteRepository", None), ("RepositoryService_UpdateRepository", {})):
        unknown = await client.call(name, "main", body=empty)
        assert (unknown.status, unknown.document["reason"]) == (404, "REPOSITORY_NOT_FOUND")


CONFIG_MAP = "apiVersion: pkger/v1\nkind: ConfigMap\nmetadata: {name: db}\nspec: {data: {host: db1}}\n"


async def change_definitions(client: Covered) -> None:
    parsed = await client.done("ParserService_ParseDefinitions", body={"sources": [{"text": CONFIG_MAP}]})
    [definition] = parsed.documents[-1]["definitions"]["definitions"]
    body = {"changes": [{"definition": definition}]}
    [stored] = (await client.one("DefinitionService_PutDefinitions", body=body))["definitions"]
    assert (stored["definition"]["name"], stored["definition"]["json"]) == ("db", "")
    listed = await client.one("DefinitionService_ListDefinitions", query=[("kind", "ConfigMap")])
    assert listed == {"definitions": [stored], "next_page_token": ""}
    read = (await client.one("DefinitionService_GetDefinition", "ConfigMap", "db"))["definition"]
    assert read == {**stored, "definition": definition}
    changed = [("etag", "sha256:other")]
    refused = await client.call("DefinitionService_DeleteDefinition", "ConfigMap", "db", query=changed)
    assert (refused.status, refused.document["reason"]) == (422, "DEFINITION_CHANGED")
    assert await client.one("DefinitionService_DeleteDefinition", "ConfigMap", "db") == {}
    unknown = await client.call("DefinitionService_GetDefinition", "ConfigMap", "db")
    assert (unknown.status, unknown.document["reason"]) == (404, "DEFINITION_NOT_FOUND")


async def read_published_packages(client: Covered) -> None:
    address = (ROOT / "examples" / "repository").as_uri()
    await client.one("RepositoryService_CreateRepository", body={"name": "main", "address": address})
    search = [("text", "labels"), ("page_size", "1"), ("refresh", "true")]
    answer = await client.one("PackageService_SearchPackages", query=search)
    assert [each["name"] for each in answer["packages"]] == ["base-labels"]
    versions = (await client.one("PackageService_ListVersions", "base-labels"))["versions"]
    assert [each["version"] for each in versions] == ["1.3.0", "1.2.0"]
    package = await client.one("PackageService_GetPackage", "base-labels", query=[("version_range", "~1.2")])
    assert (package["repository"], package["manifest"]["version"]) == ("main", "1.2.0")
    assert package["version"] == versions[1]
    install = {"changes": {"changes": [{"install": {"name": "team-dashboards"}}]}}
    resolution = (await client.one("PackageService_ResolvePackages", body=install))["resolution"]
    assert [each["name"] for each in resolution["changes"]] == ["base-labels", "web-buckets", "team-dashboards"]
    install["changes"]["changes"][0]["install"]["version_range"] = "^9"
    conflict = await client.call("PackageService_ResolvePackages", body=install)
    assert (conflict.status, conflict.document["conflict"]["code"]) == (409, "CONFLICT_CODE_NO_MATCHING_VERSION")
    unknown = await client.call("PackageService_ListVersions", "nothing")
    assert (unknown.status, unknown.document["reason"]) == (404, "PACKAGE_NOT_FOUND")
    unread = await client.call("PackageService_GetPackage", "base-labels", query=[("version_range", "~>1")])
    assert (unread.status, unread.document["metadata"]["position"]) == (400, "1")
    await client.one("RepositoryService_DeleteRepository", "main")


async def make_a_stack(client: Covered) -> str:
    body = {"name": "fleet", "description": "cars"}
    stack = (await client.one("StackService_CreateStack", body=body))["stack"]
    other = (await client.one("StackService_CreateStack_2", "embedded", "ops", body={}))["stack"]
    assert other["target"] == {"platform": "embedded", "org": "ops"}
    stacks = (await client.one("StackService_ListStacks", query=[("names", "fleet"), ("names", "x")]))["stacks"]
    assert [each["id"] for each in stacks] == [stack["id"]]
    stacks = (await client.one("StackService_ListStacks_2", "embedded", "ops"))["stacks"]
    assert [each["id"] for each in stacks] == [other["id"]]
    changed = await client.one("StackService_UpdateStack", stack["id"], body={"description": "vehicles"})
    assert changed["stack"]["description"] == "vehicles"
    changed = await client.one("StackService_UpdateStack_2", *AT_HOME, body={"description": ""})
    assert changed["stack"]["description"] == ""
    await client.finished("ApplierService_Apply", body={"stack": {"id": stack["id"]}, "package": a_source()})
    await client.finished("ApplierService_Apply_2", stack["id"], body={"package": a_source()})
    finished = await client.finished("ApplierService_Apply_3", *AT_HOME, body={"package": a_source()})
    assert finished["no_change"]
    by_id = await client.one("StackService_GetStack", stack["id"])
    assert by_id == await client.one("StackService_GetStack_2", *AT_HOME)
    assert by_id["stack"]["resource_count"] == 1
    by_id = await client.one("StackService_ListResources", stack["id"])
    assert by_id == await client.one("StackService_ListResources_2", *AT_HOME)
    assert by_id["resources"][0]["key"] == {"kind": "Label", "name": "fleet"}
    resource_id = by_id["resources"][0]["resource_id"]
    by_id = await client.one("StackService_ListPackages", stack["id"])
    assert by_id == await client.one("StackService_ListPackages_2", *AT_HOME)
    assert by_id["packages"] == []
    by_id = await client.one("PackageService_ExplainPackages", stack["id"], query=[("page_size", "2")])
    assert by_id == await client.one("PackageService_ExplainPackages_2", *AT_HOME)
    assert by_id == {"packages": [], "unread": [], "next_page_token": ""}
    query = [("names", "base-labels"), ("refresh", "true")]
    missing = await client.call("PackageService_ExplainPackages", stack["id"], query=query)
    assert (missing.status, missing.document["reason"]) == (404, "PACKAGE_NOT_FOUND")
    resource = f'{{"kind": "Label", "id": "{resource_id}"}}'
    owners = await client.one("StackService_FindOwners", query=[("resources", resource)])
    assert [owner["stack_id"] for owner in owners["owners"]] == [stack["id"]]
    assert await client.one("StackService_FindOwners_2", body={"resources": []}) == {"owners": [], "users": []}
    return str(stack["id"])


async def read_operations(client: Covered, stack: str) -> None:
    assert await client.one("ApplierService_ListOperations", query=[("target.org", "ops")]) == {
        "operations": [],
        "next_page_token": "",
    }
    query = [
        ("stack_id", stack),
        ("target.org", "default"),
        ("states", "OPERATION_STATE_SUCCEEDED"),
        ("page_size", "1"),
    ]
    [listed] = (await client.one("ApplierService_ListOperations", query=query))["operations"]
    assert listed["author"] == "tester"
    operation = (await client.one("ApplierService_GetOperation", listed["id"]))["operation"]
    assert operation["plan_id"] == listed["plan_id"]
    events = (await client.done("ApplierService_WatchOperation", listed["id"])).documents
    assert [each["seq"] for each in events] == list(range(1, len(events) + 1))
    for name in ("ApplierService_CancelOperation", "ApplierService_RecoverOperation"):
        refused = await client.call(name, listed["id"], body={})
        assert (refused.status, refused.document["reason"]) == (404, "OPERATION_NOT_FOUND")
        assert refused.document["metadata"] == {"operation": listed["id"]}


async def plan_and_apply(client: Covered, stack: str) -> None:
    body = {"stack": {"id": stack}, "package": a_source(LABEL + BUCKET), "view": ["PLAN_VIEW_STEPS"]}
    parts = (await client.done("PlannerService_CreatePlan", body=body)).documents
    plan = parts[0]["part"]["header"]
    assert plan["counts"]["creates"] == 1
    spare = (await client.done("PlannerService_CreatePlan", body=body)).documents[0]["part"]["header"]
    plans = (await client.one("StackService_ListPlans", query=[("stack_name", "fleet")]))["plans"]
    assert {plan["id"], spare["id"]} <= {each["id"] for each in plans}
    assert await client.one("StackService_DeletePlan", spare["id"]) == {}
    view = [("view", "PLAN_VIEW_STEPS"), ("view", "PLAN_VIEW_DIFFS")]
    stored = (await client.done("StackService_GetPlan", plan["id"], query=view)).documents
    assert stored[0] == parts[0]
    body = {"run_options": {"expected_plan_digest": plan["digest"]}}
    await client.finished("ApplierService_ApplyPlan", plan["id"], body=body)


def definition(kind: str, spec: dict[str, Any], **metadata: Any) -> dict[str, str]:
    document = {"apiVersion": "pkger/v1", "kind": kind, "metadata": metadata, "spec": spec}
    return {"kind": kind, "name": metadata.get("name", ""), "json": json.dumps(document)}


BACKUP = {
    "actions": {
        "backup": {
            "outputArtifacts": {"saved": {"keyValue": {"snapshot": "{{ phases.export.output.snapshot }}"}}},
            "phases": [{"name": "export", "func": "ExportStack"}],
        }
    }
}


async def perform_actions(client: Covered) -> None:
    functions = (await client.one("ActionService_ListFunctions"))["functions"]
    assert "ExportStack" in {each["name"] for each in functions}
    run = {"name": "backup", "blueprint": "b", "object": {"kind": "Stack", "name": "fleet"}}
    definitions = [
        definition("Blueprint", BACKUP, name="b"),
        definition("ActionSet", {"actions": [run]}, name="first", labels={"why": "night"}),
    ]
    answer = await client.one("ActionService_CreateActionSet", body={"definitions": definitions})
    operation = answer["action_set"]["operation_id"]
    events = (await client.done("ApplierService_WatchOperation", operation)).documents
    assert events[-1]["finished"]["state"] == "OPERATION_STATE_SUCCEEDED"
    made = (await client.one("ActionService_GetActionSet", "first"))["action_set"]
    assert (made["state"], made["author"], made["wait"]) == ("ACTION_SET_STATE_COMPLETE", "tester", "600s")
    snapshot = made["actions"][0]["artifacts"][0]["values"]["snapshot"]
    query = [("labels", '{"why": "night"}'), ("stack.name", "fleet")]
    listed = (await client.one("ActionService_ListActionSets", query=query))["action_sets"]
    assert [each["name"] for each in listed] == ["first"]
    assert (await client.one("ActionService_ListActionSets", query=[("labels", '{"why": "day"}')]))["action_sets"] == []
    definitions = [definition("ActionSet", {"actions": [{**run, "name": "restore", "blueprint": "c"}]})]
    invalid = await client.call("ActionService_CreateActionSet", body={"definitions": definitions})
    assert (invalid.status, invalid.document["message"]) == (
        422,
        "the action set has 1 violation; see the member violations",
    )
    assert 'there is no blueprint "c"' in invalid.document["violations"][0]["reason"]
    [found] = (await client.one("SnapshotService_ListSnapshots", query=[("stack_name", "fleet")]))["snapshots"]
    assert found["id"] == snapshot
    parts = (await client.done("SnapshotService_GetSnapshot", snapshot)).documents
    assert json.loads(parts[0]["snapshot"]["manifest_json"])["stack"]["name"] == "fleet"
    assert [each["content"]["digest"] for each in parts[1:]] == [
        each["digest"] for each in json.loads(parts[0]["snapshot"]["manifest_json"])["contents"]
    ]
    kept = await client.call("ActionService_DeleteActionSet", "first")
    assert (kept.status, kept.document["reason"]) == (422, "ACTION_SET_HAS_SNAPSHOTS")
    assert await client.one("SnapshotService_DeleteSnapshot", snapshot) == {"is_deleted": True}
    made = (await client.one("ActionService_GetActionSet", "first"))["action_set"]
    assert made["actions"][0]["artifacts"][0]["deleted_snapshots"][0]["deleted_by"] == "tester"
    assert await client.one("ActionService_DeleteActionSet", "first") == {}
    gone = await client.call("ActionService_GetActionSet", "first")
    assert (gone.status, gone.document["reason"]) == (404, "ACTION_SET_NOT_FOUND")


async def roll_back(client: Covered, stack: str) -> None:
    revisions = (await client.one("StackService_ListRevisions", stack))["revisions"]
    assert revisions == (await client.one("StackService_ListRevisions_2", *AT_HOME))["revisions"]
    assert [(each["number"], each["author"]) for each in revisions] == [(2, "tester"), (1, "tester")]
    by_id = (await client.done("StackService_GetRevision", stack, "1")).documents
    assert by_id == (await client.done("StackService_GetRevision_2", *AT_HOME, "1")).documents
    assert [each["key"]["name"] for each in by_id[1]["objects"]["objects"]] == ["fleet"]
    query = [("old", "1"), ("new", "2")]
    by_id = (await client.done("StackService_DiffRevisions", stack, query=query)).documents
    assert by_id == (await client.done("StackService_DiffRevisions_2", *AT_HOME, query=query)).documents
    assert [each["status"] for each in by_id[0]["diffs"]["resources"]] == ["DIFF_STATUS_NEW"]
    await client.finished("ApplierService_RollbackStack", stack, body={"revision": 1})
    await client.finished("ApplierService_RollbackStack_2", *AT_HOME, body={"revision": "2"})


async def change_the_record(client: Covered, stack: str) -> None:
    entries = (await client.one("StackService_ListResources", stack))["resources"]
    ids = {entry["key"]["kind"]: entry["resource_id"] for entry in entries}
    await client.one("StackService_RenameResource", stack, "Bucket", "readings", body={"new_name": "b"})
    await client.one("StackService_RenameResource_2", *AT_HOME, "Bucket", "b", body={"newName": "c"})
    await client.one("StackService_ForgetResource", stack, "Bucket", "c", body={})
    query = [("kinds", "Bucket")]
    [listed] = (await client.done("PlannerService_ListLiveResources", "embedded", "default", query=query)).documents
    assert [each["resource"]["id"] for each in listed["resources"]] == [ids["Bucket"]]
    body: dict[str, Any] = {"package": a_source(LABEL + BUCKET)}
    [planned] = (await client.done("PlannerService_PlanImport", stack, body=body)).documents
    assert [planned] == (await client.done("PlannerService_PlanImport_2", *AT_HOME, body=body)).documents
    assert [each["status"] for each in planned["imports"]["objects"]] == [
        "IMPORT_STATUS_UNOWNED",
        "IMPORT_STATUS_RECORDED",
    ]
    body = {"resources": [{"kind": "Bucket", "id": ids["Bucket"], "name": "readings"}]}
    [imported] = (await client.done("ApplierService_ImportResources", stack, body=body)).documents
    assert imported["entries"][0]["key"] == {"kind": "Bucket", "name": "readings"}
    await client.one("StackService_ForgetResource_2", *AT_HOME, "Bucket", "readings", body={})
    body = {"resources": [{"kind": "Bucket", "id_or_name": ids["Bucket"], "name": "readings"}]}
    await client.done("ApplierService_ImportResources_2", *AT_HOME, body=body)


async def compare_and_export(client: Covered, stack: str) -> None:
    by_id = (await client.done("PlannerService_DetectDrift", stack, body={})).documents
    by_name = (await client.done("PlannerService_DetectDrift_2", *AT_HOME, body={"keys": []})).documents
    assert by_id[0]["summary"]["stack_id"] == by_name[0]["summary"]["stack_id"] == stack
    query = [("everything.kinds", "Label"), ("encoding", "ENCODING_JSON")]
    parts = (await client.done("PlannerService_ExportPackage", query=query)).documents
    assert parts[0]["header"]["kind_counts"] == {"Label": 1}
    parts = (await client.done("PlannerService_ExportPackage_2", body={"stack": {"id": stack}})).documents
    assert parts[0]["header"]["object_count"] == 2


async def watch(client: Covered, stack: str) -> None:
    """These streams have no end, so only the first message is read."""
    for name, path in (("StackService_WatchStack", (stack,)), ("StackService_WatchStack_2", AT_HOME)):
        client.called.add(name)
        [binding] = [each for each in bindings() if each.name == name]
        headers = {"Accept": "text/event-stream"}
        async with client.session.get(target_of(binding, *path), headers=headers) as response:
            received = b""
            while b"data: " not in received or not received.endswith(b"\n\n"):
                received += await response.content.readany()
        [(position, data), *_] = events_of(received)
        assert f'"position":"{position}"' in data
        assert f'"id":"{stack}"' in data


async def remove(client: Covered, stack: str) -> None:
    refused = await client.call("StackService_DeleteStack", stack)
    assert (refused.status, refused.document["code"]) == (422, "conflict")
    assert refused.document["reason"] == "STACK_NOT_EMPTY"
    await client.finished("ApplierService_UninstallStack_2", *AT_HOME, body={})
    assert await client.one("StackService_DeleteStack_2", *AT_HOME) == {}
    body = {"after_uninstall": "AFTER_UNINSTALL_DELETE"}
    assert (await client.done("ApplierService_UninstallStack", stack, body=body)).documents == []


async def test_the_path_accepts_every_valid_name_of_a_stack(api: Api) -> None:
    name = "a/b:watch? ü%2F"
    made = (await api.call("StackService_CreateStack", body={"name": name})).document["stack"]
    found = await api.call("StackService_GetStack_2", "embedded", "default", quote(name, safe=""))
    assert found.document["stack"] == made


async def test_a_request_that_is_sent_twice_with_one_key_has_its_effect_once(api: Api) -> None:
    key = {"Idempotency-Key": "k-1"}
    first = await api.call("StackService_CreateStack", body={"name": "one"}, headers=key)
    again = await api.call("StackService_CreateStack", body={"name": "one"}, headers=key)
    assert first.document == again.document
    other = await api.call("StackService_CreateStack", body={"name": "two"}, headers=key)
    assert (other.status, other.document["reason"]) == (422, "REQUEST_ID_REUSED")
    both = await api.call("StackService_CreateStack", body={"request_id": "k-2"}, headers=key)
    assert (both.status, both.document["metadata"]["field"]) == (400, "request_id")


async def test_a_plan_with_another_digest_is_a_conflict(api: Api) -> None:
    body = {"stack": {"name": "fleet"}, "package": a_source(), "runOptions": {"expectedPlanDigest": "sha256:00"}}
    refused = await api.call("ApplierService_Apply", body=body)
    assert (refused.status, refused.document["code"], refused.document["reason"]) == (422, "conflict", "PLAN_STALE")


async def test_a_package_that_breaks_rules_is_an_error_with_all_of_them(api: Api) -> None:
    body = {"package": a_source(LABEL.replace("Label", "Labl"))}
    for name in ("ApplierService_Apply", "PlannerService_CreatePlan"):
        refused = await api.call(name, body=body, headers={"Accept": "text/event-stream"})
        assert (refused.status, refused.document["code"]) == (422, "unprocessable entity")
        assert [each["path"] for each in refused.document["violations"]] == ["root[0].kind"]
    parsed = await api.call("ParserService_ParsePackage", body=body["package"])
    assert parsed.documents[0]["header"]["violation_count"] == 1


async def test_an_environment_value_keeps_all_digits_of_an_integer(api: Api) -> None:
    text = LABEL.replace("spec: {name: fleet}", "spec: {name: {envRef: {key: number}}}")
    request = {**a_source(text), "env_json": {"number": str(2**63 - 1)}, "view": ["PACKAGE_VIEW_OBJECTS"]}
    parsed = await api.call("ParserService_ParsePackage", body=request)
    [item] = [item for part in parsed.documents for item in part.get("objects", {}).get("objects", ())]
    assert item["env_references"][0]["value_json"] == "9223372036854775807"
    planning = {"package": {**a_source(text), "env_json": {"number": "north"}}, "validate_only": True}
    refused = await api.call("PlannerService_CreatePlan", body=planning)
    assert (refused.status, refused.document["metadata"]["field"]) == (400, "env_json.number")


async def test_a_policy_is_set_and_returned_with_its_fields(api: Api) -> None:
    policy = {
        "history": 5,
        "ignore": [{"kind": "Bucket", "names": ["raw*"], "paths": ["/description"]}],
        "overrides": [{"match": {"kind": "", "names": []}, "protect": True, "ignore": []}],
    }
    made = await api.call("StackService_CreateStack", body={"name": "guarded", "policy": policy})
    assert (made.status, made.document["stack"]["policy"]) == (200, policy)
    stack_id, body = made.document["stack"]["id"], {"policy": {"share": "alway"}}
    refused = await api.call("StackService_UpdateStack", stack_id, body=body)
    assert (refused.status, refused.document["metadata"]["field"]) == (400, "policy.share")
    assert "did you mean always?" in str(refused.document)
    cleared = await api.call("StackService_UpdateStack", stack_id, body={"policy": {}})
    assert "policy" not in cleared.document["stack"]


async def test_the_author_is_the_name_of_the_token(api: Api) -> None:
    body = {"package": a_source(), "run_options": {"author": "another"}}
    refused = await api.call("ApplierService_Apply", body=body)
    assert (refused.status, refused.document["metadata"]["field"]) == (400, "run_options.author")


async def test_a_body_that_a_page_of_another_site_can_send_is_refused(api: Api) -> None:
    for media_type in ("text/plain", "application/x-www-form-urlencoded", ""):
        headers = {"Content-Type": media_type}
        async with api.session.post(f"{BASE}/stacks", data=b"{}", headers=headers) as response:
            assert response.status == 415
            assert (await response.json())["code"] == "unsupported media type"


async def test_an_unchanged_answer_is_not_sent_again(api: Api) -> None:
    await api.call("ApplierService_Apply", body={"stack": {"name": "fleet"}, "package": a_source()})
    [operation] = (await api.call("ApplierService_ListOperations")).document["operations"]
    view = [("view", "PLAN_VIEW_STEPS")]
    for name, path, query in (
        ("ApplierService_GetOperation", [operation["id"]], []),
        ("ApplierService_WatchOperation", [operation["id"]], [("after_seq", "1")]),
        ("StackService_GetPlan", [operation["plan_id"]], view),
        ("StackService_GetRevision_2", ["embedded", "default", "fleet", "1"], []),
    ):
        first = await api.call(name, *path, query=query)
        tag = {"If-None-Match": f'"other", {first.headers["ETag"]}'}
        again = await api.call(name, *path, query=query, headers=tag)
        assert (again.status, again.headers["ETag"]) == (304, first.headers["ETag"])
        other = await api.call(name, *path, query=query, headers={"If-None-Match": '"other"'})
        assert other.documents == first.documents


async def test_a_plan_that_is_applied_has_another_tag_than_before(api: Api) -> None:
    body = {"stack": {"name": "fleet"}, "package": a_source()}
    plan = (await api.call("PlannerService_CreatePlan", body=body)).documents[0]["part"]["header"]["id"]
    pending = await api.call("StackService_GetPlan", plan)
    await api.call("ApplierService_ApplyPlan", plan, body={})
    tag = {"If-None-Match": pending.headers["ETag"]}
    applied = await api.call("StackService_GetPlan", plan, headers=tag)
    assert applied.documents[0]["part"]["header"]["state"] == "PLAN_STATE_APPLIED"


async def test_a_request_for_headers_gets_them(api: Api) -> None:
    await api.call("ApplierService_Apply", body={"stack": {"name": "fleet"}, "package": a_source()})
    for target in ("/kinds", "/platforms/embedded/orgs/default/stacks/fleet:watch"):
        async with api.session.head(f"{BASE}{target}") as response:
            assert response.status == 200
            assert await response.read() == b""


async def test_a_large_dry_run_is_the_same_as_over_grpc(api: Api, services: Cluster) -> None:
    """Threads decode large bodies and encode large messages."""
    text = json.dumps([an_object("Label", f"label-{number}", f"label {number}") for number in range(400)])
    package = {"sources": [{"name": "source-0", "text": text, "encoding": "ENCODING_JSON"}]}
    views = [plan_pb2.PlanView.Name(view) for view in ALL_VIEWS]
    body = {"package": package, "validate_only": True, "view": views}
    parts = (await api.call("PlannerService_CreatePlan", body=body)).documents
    request = planner_pb2.CreatePlanRequest(
        package=planner_pb2.PackageSources(sources=sources([text])), validate_only=True, view=ALL_VIEWS
    )
    planner = services.peers["planner"]
    wanted = [
        document_of(answer) async for answer in planner.stream(PlannerServiceStub(planner.channel).CreatePlan, request)
    ]
    assert parts == wanted
    assert max(len(json.dumps(part)) for part in parts) > LARGE


async def test_an_error_before_the_route_has_the_form_of_all_others(api: Api) -> None:
    for method, target, token, expected in (
        ("GET", "/stacks", "wrong", (401, "unauthorized")),
        ("GET", "/nowhere", TOKEN, (404, "not found")),
        ("PUT", "/stacks", TOKEN, (405, "method not allowed")),
    ):
        headers = {"Authorization": f"Bearer {token}"}
        async with api.session.request(method, f"{BASE}{target}", headers=headers) as response:
            body = await response.json()
        assert (response.status, body["code"]) == expected
        assert list(body) == PROBLEM_SCHEMA["required"]
        assert body["request_id"] == response.headers["X-Request-Id"]
