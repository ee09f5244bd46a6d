"""Restores of a backup: into copies and changed stacks, refused before the first write, and undone when they fail."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pkger.applier.v1 import applier_pb2
from pkger.applier.v1.applier_pb2_grpc import ApplierServiceStub
from pkger.driver.v1 import driver_pb2
from pkger.model.v1 import action_pb2, object_pb2, operation_pb2
from pkger.stack.v1 import policy_pb2, stack_pb2
from pkger.stack.v1.stack_pb2_grpc import StackServiceStub

from services.core.errors import Reason, StackNotFound
from services.kinds.attachment import compressed, decompressed
from services.settings import STACK_DATABASE
from tests.action_sets.test_backups import CHANGED, PACKAGE, backup, example, follows
from tests.action_sets.world import COMPLETE, FAILED, World, outputs, states
from tests.applier.faulty import ItemFault
from tests.apply.packages import EVERY_KIND, LABEL, an_endpoint, an_object, text
from tests.cluster import Record

SECRETS = ["http-token", "routing-key", "slack-token"]
"""The keys of the secrets of ``EVERY_KIND``."""

UNREACHABLE = "https://127.0.0.1:9/never.yml"

CHAT = an_endpoint("Slack", "chat", "Chat")

BROKEN = '{"name":"Chat"}'
"""The spec of an endpoint that cannot be exported."""


def restoring(partial: bool = False, secrets: bool = False, **arguments: Any) -> dict[str, Any]:
    """
    The blueprint of the examples, whose restore has these *arguments*.

    Args:
        partial: Whether its backup leaves out what cannot be exported.
        secrets: Whether its restore takes the secrets of ``EVERY_KIND``.
        arguments: Arguments of RestoreStack.
    """
    document = example()
    actions = document["spec"]["actions"]
    actions["backup"]["phases"][0]["args"] = {"partial": partial}
    actions["restore"]["phases"][1]["args"] |= arguments
    if secrets:
        actions["restore"]["secretNames"] = ["tokens"]
        values = {key: f"{{{{ secrets.tokens.{key.replace('-', '_')} }}}}" for key in SECRETS}
        actions["restore"]["phases"][1]["args"]["secrets"] = values
    return document


def elsewhere(stack: str, org: str = "") -> dict[str, Any]:
    """Overrides of an action set with another stack as its object."""
    return {"overrides": {"object": {"kind": "Stack", "name": stack, **({"target": {"org": org}} if org else {})}}}


async def restore(
    here: World, name: str, definitions: dict[str, Any] | None = None, **spec: Any
) -> action_pb2.ActionSet:
    """A restore of the backup *name* that is complete."""
    done = await here.run(definitions or restoring(), follows(name, "restore", **spec))
    assert (done.state, set(states(done).values())) == (COMPLETE, {"COMPLETE"}), done.cause
    return done


async def failed_restore(
    here: World, name: str, definitions: dict[str, Any] | None = None, **spec: Any
) -> action_pb2.PhaseFailure:
    """The first failure of a restore of the backup *name*."""
    done = await here.run(definitions or restoring(), follows(name, "restore", **spec))
    assert done.state == FAILED
    return done.failures[0]


def backup_of_fleet() -> dict[str, Any]:
    """An action set that backs ``fleet`` up."""
    of_fleet = {"name": "backup", "blueprint": "stack-backup", "object": {"kind": "Stack", "name": "fleet"}}
    return {"apiVersion": "pkger/v1", "kind": "ActionSet", "metadata": {}, "spec": {"actions": [of_fleet]}}


async def stack_of(here: World, name: str, org: str = "") -> Record | None:
    """The record of a stack; None: it does not exist."""
    try:
        return await here.services.record(name, org)
    except StackNotFound:
        return None


async def children(here: World) -> list[operation_pb2.Operation]:
    """The operations that phases began."""
    request = applier_pb2.ListOperationsRequest(page_size=500)
    answer = await here.applier.call(ApplierServiceStub(here.applier.channel).ListOperations, request)
    return [each for each in answer.operations if each.parent]


async def make_stack(here: World, **fields: Any) -> None:
    """Create the stack ``fleet``."""
    request = stack_pb2.CreateStackRequest(name="fleet", **fields)
    peer = here.services.peers["stack"]
    await peer.call(StackServiceStub(peer.channel).CreateStack, request)


async def change_chat(here: World, spec: str) -> None:
    """Write the endpoint ``Chat`` as a user does."""
    [chat] = await here.services.resources(kinds=["NotificationEndpointSlack"])
    update = driver_pb2.UpdateResource(kind=chat.kind, id=chat.id, spec_json=spec)
    await here.services.mutate(driver_pb2.Mutation(update=update))


async def test_a_copy_in_another_organization(here: World) -> None:
    await here.services.apply(PACKAGE, stack="fleet")
    name = await backup(here)
    before = await here.services.resources()

    await restore(here, name, **elsewhere("copy", "lab"))

    assert (await here.services.plan(PACKAGE, stack="copy", org="lab")).no_change
    assert len(await here.services.resources("lab")) == len(before)
    assert await here.services.resources() == before
    assert (await here.services.plan(PACKAGE, stack="fleet")).no_change


async def test_a_copy_under_another_name_after_the_stack_is_gone(here: World) -> None:
    await here.services.apply(PACKAGE, stack="fleet")
    name = await backup(here)
    await here.services.uninstall("fleet")

    await restore(here, name, restoring(stack="copy"))

    assert (await here.services.plan(PACKAGE, stack="copy")).no_change
    assert await stack_of(here, "fleet") is None


async def test_a_copy_beside_the_stack_is_refused_what_the_stack_has_in_another_form(here: World) -> None:
    await here.services.apply(PACKAGE, stack="fleet")
    name = await backup(here)
    await here.services.apply(CHANGED, stack="fleet")
    before = await here.services.resources()

    failure = await failed_restore(here, name, **elsewhere("copy"))

    assert failure.error_reason == Reason.SHARED_DIFFERS
    assert "stack 'fleet'" in failure.message
    assert await here.services.resources() == before
    assert await stack_of(here, "copy") is None


async def test_a_copy_beside_the_stack_has_resources_of_its_own_where_names_may_repeat(here: World) -> None:
    package = text(an_object("Dashboard", "cpu", "CPU"))
    await here.services.apply(package, stack="fleet")
    name = await backup(here)

    await restore(here, name, **elsewhere("copy"))

    assert len(await here.services.resources()) == 2
    assert (await here.services.plan(package, stack="copy")).no_change
    assert (await here.services.plan(package, stack="fleet")).no_change


@pytest.mark.parametrize(("prune", "left"), [(True, {"Readings"}), (False, {"Readings", "New"})])
async def test_over_a_changed_stack_only_prune_deletes_what_came_later(
    here: World, prune: bool, left: set[str]
) -> None:
    await here.services.apply(PACKAGE, stack="fleet")
    name = await backup(here)
    await here.services.apply(CHANGED, stack="fleet")

    done = await restore(here, name, restoring(prune=prune))

    assert {each.display_name for each in await here.services.resources(kinds=["Bucket"])} == left
    counts = outputs(done)["apply"]
    assert (counts["deleted"], counts["noChange"]) == (int(prune), False)
    recorded = {each.key.name for each in (await here.services.record("fleet")).resources}
    assert recorded == ({"red", "raw"} if prune else {"red", "raw", "new"})
    assert outputs(await restore(here, name, restoring(prune=prune)))["apply"]["noChange"]


async def test_an_empty_backup_deletes_all_only_with_prune(here: World) -> None:
    await here.services.apply(PACKAGE, stack="fleet")
    await here.services.apply(text(), stack="fleet", allow_empty=True)
    name = await backup(here)
    await here.services.apply(PACKAGE, stack="fleet")

    await restore(here, name, restoring(prune=False))
    assert (await here.services.plan(PACKAGE, stack="fleet")).no_change
    await restore(here, name, restoring(prune=True))
    assert await here.services.resources() == []


async def test_a_protected_resource_stays(here: World) -> None:
    protected = policy_pb2.PolicyOverride(match=policy_pb2.ObjectMatch(kind="Bucket"), protect=True)
    await make_stack(here, policy=policy_pb2.Policy(overrides=[protected]))
    await here.services.apply(text(LABEL), stack="fleet")
    name = await backup(here)
    await here.services.apply(text(LABEL, an_object("Bucket", "later", "Later")), stack="fleet")

    await restore(here, name, restoring(prune=True))

    assert [each.display_name for each in await here.services.resources(kinds=["Bucket"])] == ["Later"]


async def test_missing_secrets_are_named_before_the_first_write(here: World) -> None:
    await here.services.apply(text(*EVERY_KIND), stack="fleet")
    name = await backup(here)
    await here.services.uninstall("fleet")
    here.driver.heal()

    failure = await failed_restore(here, name)

    assert failure.error_reason == Reason.VALUES_MISSING
    assert all(key in failure.message for key in SECRETS)
    assert here.driver.sent == []
    assert await stack_of(here, "fleet") is None


async def test_missing_secrets_come_with_the_restore_or_stay_missing_on_request(here: World) -> None:
    await here.services.apply(text(*EVERY_KIND), stack="fleet")
    name = await backup(here)
    await here.services.uninstall("fleet")
    keys = [key.replace("-", "_") for key in SECRETS]
    places = {"overrides": {"secrets": {"tokens": {key: {"given": True} for key in keys}}}}

    done = await here.run(
        restoring(secrets=True),
        follows(name, "restore", **places),
        secrets={f"tokens.{key}": f"value of {key}" for key in keys},
    )

    assert done.state == COMPLETE, done.cause
    assert await here.services.secret_keys() == SECRETS
    await restore(here, name, restoring(allowMissing=True), **elsewhere("copy", "lab"))
    assert await here.services.secret_keys("lab") == []


def change_byte(folder: Path, table: str, column: str, is_compressed: bool) -> None:
    """Change one letter in a column of the store: that of a name in a package, or of the action in a manifest."""
    with closing(sqlite3.connect(folder / STACK_DATABASE)) as store, store:
        for row, stored in store.execute(f"SELECT rowid, {column} FROM {table}").fetchall():
            whole = decompressed(stored) if is_compressed else stored
            changed = whole.replace("Readings", "readings").replace('"backup"', '"Backup"')
            body = compressed(changed) if is_compressed else changed
            store.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", [body, row])


@pytest.mark.parametrize(
    ("table", "column", "is_compressed", "problem"),
    [
        ("attachment_parts", "body", True, "its content does not have the digest sha256:"),
        ("snapshots", "manifest", False, "its manifest does not have its digest"),
    ],
)
async def test_a_byte_that_changed_is_noticed_before_the_first_write(
    here: World, tmp_path: Path, table: str, column: str, is_compressed: bool, problem: str
) -> None:
    await here.services.apply(PACKAGE, stack="fleet")
    name = await backup(here)
    await here.services.uninstall("fleet")
    change_byte(tmp_path, table, column, is_compressed)
    here.driver.heal()

    failure = await failed_restore(here, name)

    assert (failure.function, failure.error_reason) == ("VerifySnapshot", Reason.SNAPSHOT_CORRUPT)
    assert problem in failure.message
    unchecked = restoring()
    del unchecked["spec"]["actions"]["restore"]["phases"][0]
    failure = await failed_restore(here, name, unchecked)
    assert (failure.function, failure.error_reason) == ("RestoreStack", Reason.SNAPSHOT_CORRUPT)
    assert problem in failure.message
    assert (here.driver.sent, await children(here)) == ([], [])
    assert await stack_of(here, "fleet") is None


@pytest.mark.parametrize("mutation", range(3))
async def test_a_restore_that_fails_in_the_middle_leaves_the_stack_as_it_was(here: World, mutation: int) -> None:
    await here.services.apply(PACKAGE, stack="fleet")
    name = await backup(here)
    await here.services.apply(CHANGED, stack="fleet")
    before = await here.services.record("fleet")
    here.driver.fail({mutation: ItemFault.REJECT})

    failure = await failed_restore(here, name)

    assert len(here.driver.sent) > mutation
    assert failure.reason == action_pb2.PHASE_REASON_CHILD_ROLLED_BACK
    here.driver.heal()
    assert (await here.services.plan(CHANGED, stack="fleet")).no_change
    after = await here.services.record("fleet")
    assert (after.resources, after.generation) == (before.resources, before.generation)
    assert not after.stack.HasField("reservation")


async def test_a_restore_that_fails_after_its_seal_is_complete_and_its_operation_names_what_is_left(
    here: World,
) -> None:
    """What it does last is the deletion of a bucket, which nobody can undo."""
    await here.services.apply(PACKAGE, stack="fleet")
    name = await backup(here)
    await here.services.apply(CHANGED, stack="fleet")
    here.driver.fail({3: ItemFault.REJECT})

    done = await restore(here, name)

    [child] = await children(here)
    assert (child.id, child.result.leftover_count) == (outputs(done)["apply"]["operation"], 1)
    assert "New" in {each.display_name for each in await here.services.resources(kinds=["Bucket"])}


async def test_addresses_of_the_stack_are_not_part_of_a_restore(here: World) -> None:
    """The package at the address might have the same objects, and nothing answers there."""
    await here.services.apply(PACKAGE, stack="fleet")
    name = await backup(here)
    await here.services.apply(CHANGED, stack="fleet")
    peer = here.services.peers["stack"]
    update = stack_pb2.UpdateStackRequest(
        stack=object_pb2.StackRef(name="fleet"), urls=stack_pb2.StackUrls(urls=[UNREACHABLE])
    )
    await peer.call(StackServiceStub(peer.channel).UpdateStack, update)

    await restore(here, name)

    record = await here.services.record("fleet")
    assert {each.key.name for each in record.resources} == {"red", "raw"}
    assert list(record.stack.urls) == [UNREACHABLE]


async def test_a_backup_without_a_resource_of_the_stack_is_refused(here: World) -> None:
    await here.services.apply(text(LABEL, CHAT), stack="fleet")
    await change_chat(here, BROKEN)

    done = await here.run(restoring(), backup_of_fleet())

    [failure] = done.failures
    assert (done.state, failure.reason) == (FAILED, action_pb2.PHASE_REASON_FAILED)
    assert 'cannot be exported: NotificationEndpointSlack "chat": it breaks a rule of packages' in failure.message
    assert failure.message.endswith("; say partial: true to leave them out of the backup")
    assert not done.actions[0].artifacts


@pytest.mark.parametrize("prune", [True, False])
async def test_what_a_partial_backup_left_out_is_not_touched(here: World, prune: bool) -> None:
    await here.services.apply(text(LABEL, CHAT), stack="fleet")
    await change_chat(here, BROKEN)
    done = await here.run(restoring(partial=True), backup_of_fleet())
    assert done.state == COMPLETE, done.cause
    assert outputs(done)["export"]["leftOut"] == 1
    await here.services.apply(text(an_object("Label", "lucid_einstein", "changed"), CHAT), stack="fleet")
    await change_chat(here, '{"name":"Chat","url":"https://example.com/changed"}')
    before = await here.services.resources(kinds=["NotificationEndpointSlack"])

    await restore(here, done.name, restoring(prune=prune))

    assert await here.services.resources(kinds=["NotificationEndpointSlack"]) == before
    assert [each.display_name for each in await here.services.resources(kinds=["Label"])] == ["label_1"]
    recorded = {each.key.name for each in (await here.services.record("fleet")).resources}
    assert recorded == {"lucid_einstein", "chat"}


async def test_a_stack_that_is_gone_gets_what_the_backup_says(here: World) -> None:
    policy = policy_pb2.Policy(history=7)
    await make_stack(here, description="of the lab", urls=[UNREACHABLE], policy=policy)
    peer = here.services.peers["stack"]
    no_urls = stack_pb2.UpdateStackRequest(stack=object_pb2.StackRef(name="fleet"), urls=stack_pb2.StackUrls())
    urls = stack_pb2.UpdateStackRequest(
        stack=object_pb2.StackRef(name="fleet"), urls=stack_pb2.StackUrls(urls=[UNREACHABLE])
    )
    await peer.call(StackServiceStub(peer.channel).UpdateStack, no_urls)
    await here.services.apply(PACKAGE, stack="fleet")
    await peer.call(StackServiceStub(peer.channel).UpdateStack, urls)
    name = await backup(here)
    await here.services.uninstall("fleet")

    await restore(here, name)

    stack = (await here.services.record("fleet")).stack
    assert (stack.description, list(stack.urls), stack.policy) == ("of the lab", [UNREACHABLE], policy)


async def test_an_existing_stack_keeps_its_own(here: World) -> None:
    await make_stack(here, description="then")
    await here.services.apply(PACKAGE, stack="fleet")
    name = await backup(here)
    peer = here.services.peers["stack"]
    update = stack_pb2.UpdateStackRequest(stack=object_pb2.StackRef(name="fleet"), description="now")
    await peer.call(StackServiceStub(peer.channel).UpdateStack, update)

    await restore(here, name)

    assert (await here.services.record("fleet")).stack.description == "now"


@pytest.mark.parametrize("mutation", range(3))
async def test_a_restore_that_fails_leaves_no_stack_that_was_gone(here: World, mutation: int) -> None:
    await here.services.apply(PACKAGE, stack="fleet")
    name = await backup(here)
    await here.services.uninstall("fleet")
    here.driver.fail({mutation: ItemFault.REJECT})

    failure = await failed_restore(here, name)

    assert len(here.driver.sent) > mutation
    assert failure.reason == action_pb2.PHASE_REASON_CHILD_ROLLED_BACK
    assert await stack_of(here, "fleet") is None
    assert await here.services.resources() == []
    here.driver.heal()
    await restore(here, name)
