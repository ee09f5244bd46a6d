"""``pkger plan --snapshot`` and ``pkger apply --snapshot``."""

from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml

from tests.apply.packages import LABEL, a_rule, an_endpoint, an_object, text
from tests.cli.command import at_terminal, environment, parts, pkger
from tests.cluster import Cluster
from tests.snapshots import keep_snapshot, stored_export

NONE = "sha256:" + 64 * "0"
BUCKET = an_object("Bucket", "later", "Later")


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--snapshot", "latest", "--stack", "s"], "write the id of a snapshot, sha256: and 64 hex digits"),
        (["--snapshot", NONE.upper(), "--stack", "s"], "write the id of a snapshot, sha256: and 64 hex digits"),
        (["--snapshot", NONE], "name the stack that the snapshot is restored into with --stack"),
        (
            ["--snapshot", NONE, "--stack", "s", "-f", "p.yml"],
            "--snapshot cannot be combined with FILE... or its options",
        ),
        (["--snapshot", NONE, "--stack", "s", "--env-ref", "a=b"], "--snapshot cannot be combined with FILE... or its"),
    ],
    ids=["a word", "capitals", "no stack", "a file", "a value"],
)
@pytest.mark.parametrize("command", ["plan", "apply"])
async def test_a_restore_that_cannot_be_meant_is_refused(
    command: str, options: Sequence[str], problem: str, tmp_path: Path
) -> None:
    ended = await pkger(command, *options, env=environment(tmp_path))
    assert ended.code == 2
    assert problem in " ".join(ended.err.split())


async def test_a_saved_plan_has_its_snapshot(tmp_path: Path) -> None:
    ended = await pkger("apply", "--plan", "0" * 16, "--snapshot", NONE, env=environment(tmp_path))
    assert ended.code == 2
    assert "--plan cannot be combined with FILE... or its options" in ended.err


async def test_a_snapshot_that_is_not_there_is_named(services: Cluster, tmp_path: Path) -> None:
    ended = await pkger("apply", "--snapshot", NONE, "--stack", "s", env=environment(tmp_path, services.addresses))
    assert ended.code == 1
    assert ended.err.startswith(f"Error: there is no snapshot '{NONE}'")
    assert await services.stack_names() == []


async def test_a_stack_is_restored(services: Cluster, tmp_path: Path) -> None:
    env = environment(tmp_path, services.addresses)
    await services.apply(text(LABEL), stack="s")
    snapshot = await keep_snapshot(services, await stored_export(services, "s"))
    options = ["--snapshot", snapshot, "--stack", "s"]
    assert parts((await pkger("plan", *options, "-o", "json", env=env)).out)["header"]["no_change"]
    await services.apply(text(an_object("Label", "lucid_einstein", "changed"), BUCKET), stack="s")

    unasked = await pkger("apply", *options, env=env)
    assert unasked.code == 1
    assert "the plan deletes 1 resource, and there is no terminal to ask at" in unasked.err
    kept = await pkger("apply", *options, "--keep-others", env=env)
    assert (kept.code, kept.err) == (0, "")
    assert "Done: 1 updated." in kept.out
    assert sorted((await services.record("s")).ids) == [("Bucket", "later"), ("Label", "lucid_einstein")]
    restored = await pkger("apply", *options, "--yes", "--author", "ann", env=env)
    assert (restored.code, restored.err) == (0, "")
    assert "- Bucket" in restored.out
    assert sorted((await services.record("s")).ids) == [("Label", "lucid_einstein")]
    again = await pkger("apply", *options, "--yes", env=env)
    assert (again.code, again.err) == (0, "")
    await services.uninstall("s")
    gone = await pkger("apply", *options, "--yes", env=env)
    assert (gone.code, gone.err) == (0, "")
    assert sorted((await services.record("s")).ids) == [("Label", "lucid_einstein")]


async def test_secrets_of_a_restore_are_asked_for_and_no_plan_is_left(services: Cluster, tmp_path: Path) -> None:
    env = environment(tmp_path, services.addresses)
    await services.apply(text(an_endpoint("Slack", "chat", "Chat"), a_rule("r", "chat")), stack="s")
    snapshot = await keep_snapshot(services, await stored_export(services, "s"))
    await services.uninstall("s")
    options = ["--snapshot", snapshot, "--stack", "s"]
    missing = await pkger("apply", *options, "--yes", env=env)
    assert missing.code == 1
    assert "slack-token" in missing.err
    assert await services.stack_names() == []
    answers = [(b"slack-token", b"s3cret-value\n"), (b"Apply this plan?", b"n\n")]
    code, _ = await at_terminal("apply", *options, answers=answers, env=env)
    assert code == 1
    assert await services.stack_names() == []
    code, _ = await at_terminal("apply", *options, answers=[answers[0], (b"Apply this plan?", b"y\n")], env=env)
    assert code == 0
    assert await services.secret_keys() == ["slack-token"]
    assert sorted((await services.record("s")).ids) == [
        ("NotificationEndpointSlack", "chat"),
        ("NotificationRule", "r"),
    ]


async def test_a_saved_snapshot_says_what_the_package_said(services: Cluster, tmp_path: Path) -> None:
    document = {
        "apiVersion": "pkger/v1",
        "kind": "Lifecycle",
        "metadata": {"name": "x"},
        "spec": {"policy": {"on_delete": "orphan"}},
    }
    label = {**LABEL, "metadata": {**LABEL["metadata"], "lifecycle": {"protect": True}}}
    await services.apply(text(document, label), stack="s")
    snapshot = await keep_snapshot(services, await stored_export(services, "s"))
    env = environment(tmp_path, services.addresses)
    saved = await pkger("snapshots", "save", snapshot, env=env)
    assert (saved.code, saved.err) == (0, "")
    written, item = yaml.safe_load_all(saved.out)
    assert (written, item["metadata"]) == (document, label["metadata"])
