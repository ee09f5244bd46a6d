"""The stored export of a stack, and plans of the snapshot that has it (planning.proto, StoreExport)."""

import itertools
import json
import secrets
from typing import Any

import pytest
import yaml
from google.protobuf.duration_pb2 import Duration
from hypothesis import given, settings
from pkger.driver.v1 import driver_pb2
from pkger.journal.v1 import journal_pb2, planning_pb2
from pkger.journal.v1.journal_pb2_grpc import JournalServiceStub
from pkger.journal.v1.planning_pb2_grpc import PlanningServiceStub
from pkger.model.v1 import object_pb2, operation_pb2, plan_pb2
from pkger.parser.v1 import parser_pb2
from pkger.planner.v1 import planner_pb2
from pkger.stack.v1 import policy_pb2, stack_pb2
from pkger.stack.v1.stack_pb2_grpc import StackServiceStub

from services.core.errors import ArtifactGone, PackageEmpty, RequestInvalid, SnapshotNotFound, StackNotFound
from services.core.model import Verb
from services.rpc.snapshot_reading import read_snapshot
from tests.apply.packages import EVERY_KIND, LABEL, a_rule, an_endpoint, an_object, text
from tests.cluster import Calls, Cluster, Shown
from tests.export.random_platforms import Drawn, platforms
from tests.export.test_laws import SUCCEEDED, content, make
from tests.snapshots import delete_snapshot, keep_snapshot, snapshot_in_use, stored_export

_numbers = itertools.count()


async def restore(services: Cluster, snapshot: str, stack: str, org: str = "", **more: Any) -> Shown:
    """Plan a snapshot, and run the plan."""
    plan = await services.plan(stack=stack, org=org, snapshot=snapshot, store=True, **more)
    *_, last = [event async for event in services.apply_plan(plan.name)]
    assert last.finished.state == SUCCEEDED, last.finished.cause
    return plan


def changes(plan: Shown) -> list[str]:
    return [f"{step.verb.value} {step.key}" for step in plan.steps]


async def change(services: Cluster, kind: str, display_name: str, spec: str, *references: object_pb2.Reference) -> None:
    """Write the resource of a display name, as a user does."""
    [resource] = [each for each in await services.resources(kinds=[kind]) if each.display_name == display_name]
    update = driver_pb2.UpdateResource(kind=kind, id=resource.id, spec_json=spec, references=references)
    await services.mutate(driver_pb2.Mutation(update=update))


@pytest.mark.timeout(3600)
@settings(settings.get_profile("exports"))
@given(drawn=platforms())
async def test_a_restore_changes_nothing_and_brings_back_what_was_uninstalled(services: Cluster, drawn: Drawn) -> None:
    org = f"drawn-{next(_numbers)}"
    await make(services, org, drawn)
    before = await content(services, org)
    for stack in ("one", "two"):
        exported = await stored_export(services, stack, org)
        assert not exported.left_out
        snapshot = await keep_snapshot(services, exported)
        for keep_others in (False, True):
            plan = await services.plan(stack=stack, org=org, snapshot=snapshot, keep_others=keep_others)
            assert plan.steps == []
        await restore(services, snapshot, stack, org)
        assert await content(services, org) == before
    for stack in ("two", "one"):
        exported = await stored_export(services, stack, org)
        finished = await services.in_org(org).uninstall(stack)
        assert finished.state == SUCCEEDED, finished.cause
        await restore(services, await keep_snapshot(services, exported), stack, org)
        assert (await stored_export(services, stack, org)).package_digest == exported.package_digest


RULE, CHAT, HOOK = a_rule("r", "chat"), an_endpoint("Slack", "chat", "Chat"), an_endpoint("HTTP", "hook", "Hook")


async def test_the_response_says_what_was_stored(services: Cluster, calls: Calls) -> None:
    await services.apply(text(*EVERY_KIND, an_object("Label", "other", "only of this test")), stack="s")
    calls.methods.clear()
    exported = await stored_export(services, "s")
    assert exported.stack == (await services.record("s")).stack
    assert exported.object_count == len(EVERY_KIND) + 1
    snapshot = await read_snapshot(services.peers["stack"], await keep_snapshot(services, exported))
    assert exported.bytes == snapshot.size
    assert exported.secret_keys == ["http-token", "routing-key", "slack-token"]
    assert not exported.left_out
    assert (calls.count("KeepAttachment"), calls.count("StoreAttachment"), calls.count("ParsePackage")) == (1, 1, 0)
    assert await stored_export(services, "s") == exported
    assert (calls.count("KeepAttachment"), calls.count("StoreAttachment")) == (2, 1)


async def test_a_restore_makes_a_stack_that_is_gone_and_a_copy_elsewhere(services: Cluster) -> None:
    await services.apply(text(*EVERY_KIND), stack="s")
    snapshot = await keep_snapshot(services, await stored_export(services, "s"))
    await services.uninstall("s")
    assert await services.resources() == []
    plan = await restore(services, snapshot, "s")
    assert plan.header.sources == [f"snapshot {snapshot}"]
    assert plan.missing_secrets == ["http-token", "routing-key", "slack-token"]
    assert (await services.record("s")).sources == [f"snapshot {snapshot}"]
    assert (await services.plan(text(*EVERY_KIND), stack="s")).no_change
    copy = services.in_org(f"{services.org}-copy")
    await restore(copy, snapshot, "copy")
    assert (await copy.plan(text(*EVERY_KIND), stack="copy")).no_change


async def test_a_restore_undoes_changes_and_keeps_others_if_it_is_told_to(services: Cluster) -> None:
    red, bucket, later = (
        an_object("Label", "red", "Red"),
        an_object("Bucket", "bucket", "Bucket", ["red"]),
        an_object("Bucket", "later", "Later", ["red"]),
    )
    await services.apply(text(red, bucket), stack="s")
    snapshot = await keep_snapshot(services, await stored_export(services, "s"))
    changed = an_object("Bucket", "bucket", "Bucket", description="changed")
    await services.apply(text(red, changed, later), stack="s")
    with_others = await services.plan(stack="s", snapshot=snapshot, keep_others=True)
    assert [str(step.key) for step in with_others.steps] == ["Bucket 'bucket'", "Bucket 'bucket'"]
    assert {step.verb for step in with_others.steps} == {Verb.UPDATE, Verb.ATTACH}
    before = (await services.record("s")).ids
    await restore(services, snapshot, "s", keep_others=True)
    record = await services.record("s")
    assert record.ids == before
    assert (await services.plan(stack="s", revision=record.stack.revision)).no_change
    assert (await services.plan(text(red, bucket, later), stack="s")).no_change
    assert changes(await restore(services, snapshot, "s")) == ["detach Bucket 'later'", "delete Bucket 'later'"]
    assert (await services.plan(text(red, bucket), stack="s")).no_change


async def test_urls_of_the_stack_are_not_part_of_a_restore(services: Cluster) -> None:
    await services.apply(text(LABEL), stack="s")
    snapshot = await keep_snapshot(services, await stored_export(services, "s"))
    stub = StackServiceStub(services.peers["stack"].channel)
    ref = object_pb2.StackRef(id=(await services.record("s")).id)
    urls = stack_pb2.StackUrls(urls=["https://127.0.0.1:9/never.yml"])
    await services.peers["stack"].call(stub.UpdateStack, stack_pb2.UpdateStackRequest(stack=ref, urls=urls))
    assert (await services.plan(stack="s", snapshot=snapshot)).no_change


async def test_a_resource_that_cannot_be_exported_is_named_and_skipped_by_the_restore(services: Cluster) -> None:
    await services.apply(text(LABEL, CHAT, RULE), stack="s")
    await change(services, "NotificationEndpointSlack", "Chat", '{"name":"Chat"}')
    exported = await stored_export(services, "s")
    assert [(each.key.kind, each.key.name, each.problem) for each in exported.left_out] == [
        (
            "NotificationEndpointSlack",
            "chat",
            "it breaks a rule of packages"
            " (spec.url: url must be a URL such as https://example.com/hook; it is missing)",
        ),
        ("NotificationRule", "r", "the resource of its endpointName is left out"),
    ]
    assert (exported.object_count, [*exported.secret_keys]) == (1, [])
    snapshot = await keep_snapshot(services, exported)
    await services.apply(text(an_object("Label", "lucid_einstein", "changed"), CHAT, RULE), stack="s")
    assert changes(await restore(services, snapshot, "s")) == ["update Label 'lucid_einstein'"]
    assert len(await services.resources()) == 3


async def test_a_resource_that_is_gone_is_not_part_of_a_backup(services: Cluster) -> None:
    await services.apply(text(LABEL, CHAT), stack="s")
    [chat] = await services.resources(kinds=["NotificationEndpointSlack"])
    delete = driver_pb2.DeleteResource(kind=chat.kind, id=chat.id)
    await services.mutate(driver_pb2.Mutation(delete=delete))
    exported = await stored_export(services, "s")
    assert (exported.object_count, len(exported.left_out)) == (1, 0)
    await restore(services, await keep_snapshot(services, exported), "s")
    assert list((await services.record("s")).ids) == [("Label", "lucid_einstein")]


async def test_what_others_have_is_not_taken_over_by_a_restore(services: Cluster) -> None:
    """A label that a user attached, and an endpoint that a user chose for a rule, stay those of their owner."""
    await services.apply(text(HOOK, an_object("Label", "blue", "Blue")), stack="theirs")
    await services.apply(text(CHAT, RULE), stack="s")
    by_kind = {each.kind: each.id for each in await services.resources()}
    attach = driver_pb2.AttachLabel(kind="NotificationRule", id=by_kind["NotificationRule"], label_id=by_kind["Label"])
    await services.mutate(driver_pb2.Mutation(attach=attach))
    [rule] = await services.resources(kinds=["NotificationRule"])
    reference = object_pb2.Reference(
        pointer="/endpointName", kind="NotificationEndpointHTTP", id=by_kind["NotificationEndpointHTTP"]
    )
    await change(services, "NotificationRule", "rule", rule.spec_json, reference)
    before = await services.resources()
    exported = await stored_export(services, "s")
    assert (exported.object_count, [*exported.secret_keys]) == (2, ["slack-token"])
    snapshot = await keep_snapshot(services, exported)
    plan = await restore(services, snapshot, "s")
    assert plan.steps == []
    assert [each.key.name for each in plan.record.entries] == []
    assert await services.resources() == before
    await services.uninstall("s")
    await restore(services, snapshot, "s")
    [restored] = await services.resources(kinds=["NotificationRule"])
    assert (list(restored.references), list(restored.label_ids)) == ([reference], [])
    assert list((await services.record("s")).ids) == [("NotificationEndpointSlack", "chat"), ("NotificationRule", "r")]
    assert (await stored_export(services, "s")).package_digest == exported.package_digest
    with pytest.raises(
        RequestInvalid, match="refers to NotificationEndpointHTTP 'hook', which is skipped and does not"
    ):
        await services.plan(stack="copy", org=f"{services.org}-copy", snapshot=snapshot)


async def test_a_restore_shares_what_the_stack_shared(services: Cluster) -> None:
    await services.apply(text(LABEL, CHAT), stack="theirs")
    await services.apply(text(LABEL, CHAT, RULE), stack="s")
    exported = await stored_export(services, "s")
    snapshot = await keep_snapshot(services, exported)
    assert (await services.plan(stack="s", snapshot=snapshot)).no_change
    await services.uninstall("s")
    plan = await restore(services, snapshot, "s")
    assert changes(plan) == ["create NotificationRule 'r'"]
    assert {each.origin for each in (await services.record("s")).resources} == {
        object_pb2.ORIGIN_CREATED,
        object_pb2.ORIGIN_SHARED,
    }
    assert (await stored_export(services, "s")).package_digest == exported.package_digest


async def test_a_protected_resource_stays_as_in_any_plan(services: Cluster) -> None:
    policy = policy_pb2.Policy(
        overrides=[policy_pb2.PolicyOverride(match=policy_pb2.ObjectMatch(kind="Bucket"), protect=True)]
    )
    stub = StackServiceStub(services.peers["stack"].channel)
    request = stack_pb2.CreateStackRequest(target=services.target(), name="s", policy=policy)
    await services.peers["stack"].call(stub.CreateStack, request)
    await services.apply(text(LABEL), stack="s")
    snapshot = await keep_snapshot(services, await stored_export(services, "s"))
    await services.apply(text(LABEL, an_object("Bucket", "later", "Later")), stack="s")
    plan = await services.plan(stack="s", snapshot=snapshot)
    assert (plan.steps, plan.warnings) == ([], ["protected: Bucket 'later' stays"])


async def test_a_snapshot_without_objects_empties_a_stack_only_if_that_is_allowed(services: Cluster) -> None:
    await services.apply(text(LABEL), stack="s")
    await services.apply(text(), stack="s", allow_empty=True)
    exported = await stored_export(services, "s")
    assert (exported.object_count, exported.bytes) == (0, 0)
    snapshot = await keep_snapshot(services, exported)
    await services.apply(text(LABEL), stack="s")
    with pytest.raises(PackageEmpty):
        await services.plan(stack="s", snapshot=snapshot)
    assert (await services.plan(stack="s", snapshot=snapshot, keep_others=True)).no_change
    await restore(services, snapshot, "s", allow_empty=True)
    assert await services.resources() == []


async def test_a_deleted_snapshot_is_only_for_what_has_begun(services: Cluster) -> None:
    await services.apply(text(LABEL), stack="s")
    exported = await stored_export(services, "s")
    async with snapshot_in_use(services, exported) as snapshot:
        await delete_snapshot(services, snapshot, "ann")
        with pytest.raises(ArtifactGone, match=f"snapshot {snapshot} was deleted by ann"):
            await services.plan(stack="s", snapshot=snapshot)
        assert (await plan_of_operation(services, exported.stack, snapshot)).no_change
    with pytest.raises(ArtifactGone, match=f"snapshot {snapshot} was deleted by ann"):
        await services.plan(stack="s", snapshot=snapshot)


async def plan_of_operation(services: Cluster, stack: stack_pb2.Stack, snapshot: str) -> plan_pb2.Plan:
    """The header of a plan for an operation that has begun, and that ends without it."""
    store, planner = services.peers["stack"], services.peers["planner"]
    journal, operation, ref = JournalServiceStub(store.channel), secrets.token_hex(8), object_pb2.StackRef(id=stack.id)
    begin = journal_pb2.BeginOperationRequest(
        stack=ref, operation_id=operation, kind=plan_pb2.OPERATION_KIND_APPLY, holder="tests", ttl=Duration(seconds=60)
    )
    [begun] = [each async for each in store.stream(journal.BeginOperation, begin)]
    request = planning_pb2.PlanOperationRequest(
        operation_id=operation, stack=stack, request=planner_pb2.CreatePlanRequest(stack=ref, snapshot=snapshot)
    )
    planning = PlanningServiceStub(planner.channel)
    first, *_ = [each async for each in planner.stream(planning.PlanOperation, request)]
    finish = journal_pb2.FinishOperationRequest(
        operation_id=operation,
        token=begun.token,
        position=1,
        state=operation_pb2.OPERATION_STATE_FAILED,
        abandon=journal_pb2.Abandon(),
    )
    await store.call(journal.FinishOperation, finish)
    return first.answer.part.header


async def test_an_id_that_no_snapshot_has_is_refused(services: Cluster) -> None:
    with pytest.raises(SnapshotNotFound):
        await services.plan(stack="s", snapshot="sha256:" + 64 * "0")
    with pytest.raises(RequestInvalid, match="snapshot: 'none' is no id of a snapshot"):
        await services.plan(stack="s", snapshot="none")


async def test_a_restore_needs_a_stack(services: Cluster) -> None:
    with pytest.raises(RequestInvalid, match="stack: a snapshot is restored into a stack, so name the stack"):
        await services.plan(snapshot="sha256:" + 64 * "0")
    with pytest.raises(StackNotFound):
        await services.plan(stack_ref=object_pb2.StackRef(id=16 * "0"), snapshot="sha256:" + 64 * "0")
    with pytest.raises(StackNotFound):
        await stored_export(services, "gone")


SAYING: list[dict[str, Any]] = [
    {
        "apiVersion": "pkger/v1",
        "kind": "Lifecycle",
        "metadata": {"name": "x"},
        "spec": {"policy": {"on_delete": "orphan", "ignore": [{"kind": "Task", "paths": ["/status"]}]}},
    },
    {**LABEL, "metadata": {**LABEL["metadata"], "lifecycle": {"protect": True}}},
]


async def own_policies(services: Cluster, stack: str, org: str) -> list[str]:
    """What package and objects say, by the record of a stack."""
    return [each.own_policy_json for each in (await services.record(stack, org)).resources]


async def test_a_restored_stack_is_treated_as_its_package_said(services: Cluster) -> None:
    org = secrets.token_hex(8)
    await services.apply(text(*SAYING), stack="s", org=org)
    said = await own_policies(services, "s", org)
    assert said == ['{"object":{"protect":true},"package":{"on_delete":"orphan"}}']
    exported = await stored_export(services, "s", org)
    snapshot = await keep_snapshot(services, exported)
    assert (await services.plan(stack="s", org=org, snapshot=snapshot)).no_change
    await services.apply(text(LABEL), stack="s", org=org)
    assert await own_policies(services, "s", org) == [""]
    await restore(services, snapshot, "s", org)
    assert await own_policies(services, "s", org) == said
    assert (await stored_export(services, "s", org)).package_digest == exported.package_digest


@pytest.mark.parametrize("encoding", [parser_pb2.ENCODING_YAML, parser_pb2.ENCODING_JSON])
async def test_an_export_that_is_applied_again_says_what_the_package_said(
    services: Cluster, encoding: parser_pb2.Encoding.ValueType
) -> None:
    org = secrets.token_hex(8)
    await services.apply(text(*SAYING), stack="s", org=org)
    exported = await services.export("s", org, encoding=encoding)
    is_json = encoding == parser_pb2.ENCODING_JSON
    documents = json.loads(exported.text) if is_json else list(yaml.safe_load_all(exported.text))
    assert documents[0] == SAYING[0]
    assert exported.header.object_count == 1
    plan = await services.plan(exported.text, stack="s", org=org)
    assert plan.no_change


async def test_an_export_of_a_stack_that_says_nothing_has_no_document(services: Cluster) -> None:
    org = secrets.token_hex(8)
    await services.apply(text(LABEL), stack="s", org=org)
    [document] = yaml.safe_load_all((await services.export("s", org)).text)
    assert (document["kind"], document["metadata"]) == ("Label", {"name": "lucid_einstein"})
