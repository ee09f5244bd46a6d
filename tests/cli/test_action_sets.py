"""
``pkger perform``, ``actionsets`` and ``snapshots`` on real services, as golden files; ``pytest --update-golden``
rewrites them.
"""

import asyncio
import json
import re
import signal
from pathlib import Path

import pytest

from tests.apply.packages import BUCKET, LABEL, text
from tests.cli.command import at_terminal, ended, environment, pkger, started
from tests.cluster import Cluster, cluster

GOLDEN = Path(__file__).with_name("golden") / "action_sets"

HEAD = "apiVersion: pkger/v1\nkind: {}\nmetadata: {{name: {}}}\nspec:\n"
BLUEPRINT = (
    HEAD.format("Blueprint", "keep")
    + """
  actions:
    backup:
      options: {tag: {default: manual, enum: [manual, night]}}
      outputArtifacts: {saved: {keyValue: {snapshot: "{{ phases.export.output.snapshot }}", tag: "{{ options.tag }}"}}}
      phases:
      - {name: export, func: ExportStack}
    restore:
      inputArtifactNames: [saved]
      phases:
      - {name: apply, func: RestoreStack, args: {snapshot: "{{ artifacts.saved.snapshot }}", prune: true}}
    drop:
      kind: None
      inputArtifactNames: [saved]
      phases:
      - {name: drop, func: DeleteSnapshot, args: {snapshot: "{{ artifacts.saved.snapshot }}"}}
    fail:
      phases:
      - {name: export, func: ExportStack, args: {stack: none}}
      - {name: never, func: Sleep, args: {duration: 1s}}
      deferPhase: {name: last, func: Sleep, args: {duration: 1ms}}
    secret:
      kind: None
      secretNames: [pg]
      phases:
      - {name: wait, func: Sleep, args: {duration: 1ms}}
    sleep:
      kind: None
      phases:
      - {name: sleep, func: Sleep, args: {duration: 1h}}
      deferPhase: {name: last, func: Sleep, args: {duration: 1ms}}
"""
)
ACTION_SET = (
    HEAD.format("ActionSet", "of-file")
    + "  sequential: true\n  actions:\n"
    + "".join(
        f"  - {{name: backup, blueprint: keep, object: {{kind: Stack, name: s}}, options: {{tag: {tag}}}}}\n"
        for tag in ("manual", "night")
    )
)
FILES = {
    "keep.yml": BLUEPRINT,
    "set.yml": ACTION_SET,
    "both.yml": f"{BLUEPRINT}---\n{ACTION_SET}",
    "faulty.yml": BLUEPRINT.replace("ExportStack", "KubeTask"),
    "one.json": text(LABEL),
    "two.json": text(LABEL, BUCKET),
}
BACKUP = ["perform", "backup", "--blueprint", "keep", "--object", "stack/s"]
CASES: dict[str, list[str]] = {
    "list-empty": ["actionsets", "list"],
    "snapshots-empty": ["snapshots", "list"],
    "perform-no-blueprint": [*BACKUP, "--name", "first"],
    "perform-file": ["perform", "backup", "-f", "keep.yml", "--object", "stack/s", "--name", "of-the-file"],
    "perform-faulty-file": ["perform", "backup", "-f", "faulty.yml", "--object", "stack/s"],
    "apply-blueprint": ["blueprints", "apply", "-f", "keep.yml"],
    "perform": [*BACKUP, "--name", "first", "--label", "why=test", "--option", "tag=night"],
    "perform-again": [*BACKUP, "--name", "first"],
    "perform-unknown-action": ["perform", "bakcup", "--blueprint", "keep", "--object", "stack/s"],
    "perform-unknown-option": [*BACKUP, "--option", "tga=night", "--artifact", "a.b=c"],
    "perform-wrong-kind": ["perform", "backup", "--blueprint", "keep", "--object", "Label/lucid_einstein@s"],
    "perform-dry-run": [*BACKUP, "--name", "dry", "--dry-run"],
    "perform-fails": ["perform", "fail", "--blueprint", "keep", "--object", "stack/s", "--name", "failing"],
    "perform-from-failed": ["perform", "drop", "--from", "failing"],
    "perform-from-unknown": ["perform", "drop", "--from", "none"],
    "show": ["actionsets", "show", "first"],
    "show-json": ["actionsets", "show", "failing", "-o", "json"],
    "show-unknown": ["actionsets", "show", "none"],
    "list": ["actionsets", "list"],
    "list-filtered": ["actionsets", "list", "--stack", "s", "--label", "why=test", "--state", "complete"],
    "list-unknown-state": ["actionsets", "list", "--state", "done"],
    "watch": ["actionsets", "watch", "failing"],
    "cancel": ["actionsets", "cancel", "first"],
    "snapshots": ["snapshots", "list", "--stack", "s"],
    "snapshot": ["snapshots", "show", "SNAPSHOT"],
    "snapshot-save": ["snapshots", "save", "SNAPSHOT"],
    "snapshot-save-json": ["snapshots", "save", "SNAPSHOT", "saved.json"],
    "snapshot-verify": ["snapshots", "verify", "SNAPSHOT"],
    "snapshot-no-id": ["snapshots", "show", "first"],
    "snapshot-unknown": ["snapshots", "show", "0123456789ab"],
    "restore-unasked": ["perform", "restore", "--from", "first", "--name", "again"],
    "restore": ["perform", "restore", "--from", "first", "--name", "again", "--yes"],
    "restore-quiet-json": ["perform", "restore", "--from", "first", "--yes", "-q", "-o", "json", "--dry-run"],
    "delete-with-snapshots": ["actionsets", "delete", "first"],
    "drop": ["perform", "drop", "--from", "first", "--name", "dropping"],
    "restore-gone": ["perform", "restore", "--from", "first", "--yes"],
    "show-deleted": ["actionsets", "show", "first"],
    "delete": ["actionsets", "delete", "first"],
    "delete-again": ["actionsets", "delete", "first"],
    "create": ["actionsets", "create", "-f", "set.yml"],
    "create-package": ["actionsets", "create", "-f", "one.json"],
    "create-no-set": ["actionsets", "create", "-f", "keep.yml"],
    "create-taken": ["actionsets", "create", "both.yml", "-o", "json"],
    "secret-short": ["perform", "secret", "--blueprint", "keep", "--secret", "pg.password"],
    "secret-missing": ["perform", "secret", "--blueprint", "keep"],
    "operations": ["operations", "list", "--limit", "1"],
}
"""Commands in the order in which they run, on one store."""

TYPED = {"secret-short": b"abc\n"}
"""What is on standard input."""


def normal(printed: str) -> str:
    """*printed* without what differs between runs."""
    printed = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "2026-01-01T00:00:00Z", printed)
    printed = re.sub(r"\b[0-9a-f]{64}\b", "0" * 64, printed)
    printed = re.sub(r'^(  author +|  "author": ")[^"\n]+', r"\1tester", printed, flags=re.MULTILINE)
    printed = re.sub(r"\b[0-9a-f]{16}\b", "0" * 16, printed)
    return re.sub(r"(drop|restore|backup|secret)(-[a-z]+)?-[a-z2-7]{5}\b", r"\1\2-abcde", printed)


@pytest.mark.asyncio(loop_scope="module")
async def test_the_output_of_commands_for_action_sets(
    module_services: Cluster, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    env = environment(tmp_path, module_services.addresses)
    for name, content in FILES.items():
        (tmp_path / name).write_text(content)
    await pkger("apply", "-f", str(tmp_path / "two.json"), "--stack", "s", "--yes", env=env)
    transcripts: dict[str, str] = {}
    snapshot = ""
    for name, arguments in CASES.items():
        if name == "snapshot":
            listed = await pkger("snapshots", "list", "--stack", "s", "-o", "json", env=env)
            snapshot = json.loads(listed.out)[0]["id"].removeprefix("sha256:")[:20]
        if name == "restore":
            await pkger("apply", "-f", str(tmp_path / "one.json"), "--stack", "s", "--yes", env=env)
        words = [str(tmp_path / word) if word.endswith((".yml", ".json")) else word for word in arguments]
        words = [snapshot if word == "SNAPSHOT" else word for word in words]
        answer = await pkger(*words, env=env, typed=TYPED.get(name, b""))
        printed = f"$ pkger {' '.join(arguments)}\n{answer.out}{answer.err}exit status {answer.code}\n"
        transcripts[name] = normal(printed.replace(f"{tmp_path}/", ""))
    if request.config.getoption("--update-golden"):
        GOLDEN.mkdir(exist_ok=True)
        for name, printed in transcripts.items():
            (GOLDEN / f"{name}.txt").write_text(printed)
    assert transcripts == {name: (GOLDEN / f"{name}.txt").read_text() for name in CASES}
    plan = await pkger("plan", "-f", str(tmp_path / "two.json"), "--stack", "s", env=env)
    assert plan.out == "Plan: nothing to do.\n"


async def test_at_a_terminal_a_restore_that_prunes_needs_a_yes(services: Cluster, tmp_path: Path) -> None:
    env = environment(tmp_path, services.addresses)
    for name, content in FILES.items():
        (tmp_path / name).write_text(content)
    await pkger("apply", "-f", str(tmp_path / "two.json"), "--stack", "s", "--yes", env=env)
    await pkger("blueprints", "apply", str(tmp_path / "keep.yml"), env=env)
    await pkger(*BACKUP, "--name", "first", env=env)
    restore = ("perform", "restore", "--from", "first", "--name", "again")
    code, shown = await at_terminal(*restore, answers=[(b"Perform it? [y/N]", b"n\n")], env=env)
    assert code == 1
    assert b"phase apply of action restore, of stack s" in shown
    assert (await pkger("actionsets", "show", "again", env=env)).code == 1
    code, _ = await at_terminal(*restore, answers=[(b"Perform it? [y/N]", b"y\n")], env=env)
    assert code == 0


async def test_a_secret_is_asked_for_and_printed_nowhere(services: Cluster, tmp_path: Path) -> None:
    env = environment(tmp_path, services.addresses)
    (tmp_path / "keep.yml").write_text(BLUEPRINT)
    perform = ("perform", "secret", "-f", str(tmp_path / "keep.yml"), "--secret", "pg.password")
    code, shown = await at_terminal(*perform, answers=[(b"Secret pg.password: ", b"canary-1\n")], env=env)
    assert code == 0, shown
    assert b"canary" not in shown


async def test_ctrl_c_cancels_an_action_set_and_waits_for_its_end(tmp_path: Path) -> None:
    (tmp_path / "keep.yml").write_text(BLUEPRINT)
    async with cluster(tmp_path) as services:
        env = environment(tmp_path, services.addresses)
        process = await started("perform", "sleep", "-f", str(tmp_path / "keep.yml"), "--name", "long", env=env)
        await _output_to(process, "Started Phase")
        process.send_signal(signal.SIGINT)
        shown = await _output_to(process, "was asked to stop")
        end = await ended(process)
        assert (end.code, end.err) == (5, "Error: action set long was cancelled\n")
        shown += end.out
        assert "Ended Phase          sleep/sleep  cancelled" in shown
        assert "Ended deferPhase     sleep/last  complete" in shown
        assert "ActionSet Cancelled  the action set was cancelled" in shown


@pytest.mark.slow
async def test_a_second_ctrl_c_leaves_an_action_set_to_the_services(tmp_path: Path) -> None:
    slow = BLUEPRINT.replace(
        "{name: last, func: Sleep, args: {duration: 1ms}}", "{name: last, func: Sleep, args: {duration: 5s}}"
    )
    (tmp_path / "keep.yml").write_text(slow)
    async with cluster(tmp_path) as services:
        env = environment(tmp_path, services.addresses)
        process = await started("perform", "sleep", "-f", str(tmp_path / "keep.yml"), "--name", "long", env=env)
        await _output_to(process, "Started Phase")
        process.send_signal(signal.SIGINT)
        await _output_to(process, "was asked to stop")
        process.send_signal(signal.SIGINT)
        end = await ended(process)
        assert end.code == 1
        left = "interrupted again; the action set goes on: `pkger actionsets watch long` follows it"
        assert end.err == f"Error: {left}\n"
        listed = await pkger("actionsets", "list", "--state", "stopping", env=env)
        assert listed.out.splitlines()[1].startswith("long")


async def test_an_action_set_goes_on_when_a_detached_command_has_ended(tmp_path: Path) -> None:
    (tmp_path / "keep.yml").write_text(BLUEPRINT)
    async with cluster(tmp_path) as services:
        env = environment(tmp_path, services.addresses)
        perform = ("perform", "sleep", "-f", str(tmp_path / "keep.yml"), "--name", "long")
        detached = await pkger(*perform, "--detach", env=env)
        assert detached.code == 0
        assert detached.out.endswith("runs; `pkger actionsets watch long` follows it\n")
        watching = asyncio.create_task(pkger("actionsets", "watch", "long", env=env))
        cancelled = await pkger("actionsets", "cancel", "long", env=env)
        assert cancelled.out.startswith("action set long was asked to stop: running phases end, then deferPhases run;")
        assert (await watching).code == 5
        refused = await pkger("actionsets", "cancel", "long", env=env)
        assert (refused.code, refused.err) == (1, "Error: action set long has already ended: cancelled\n")


async def test_without_services_nothing_is_detached(tmp_path: Path) -> None:
    (tmp_path / "keep.yml").write_text(BLUEPRINT)
    refused = await pkger(
        "perform", "sleep", "-f", str(tmp_path / "keep.yml"), "--detach", env=environment(tmp_path)
    )  # fmt: skip
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.startswith("Error: --detach: no services run that could go on with the action set")


@pytest.mark.slow
async def test_the_next_command_continues_what_the_services_of_a_command_began(tmp_path: Path) -> None:
    """The services run for the time of a command, and end with it."""
    (tmp_path / "keep.yml").write_text(BLUEPRINT.replace("1h", "5s"))
    env = {**environment(tmp_path), "PKGER_LEASE": "2"}
    process = await started("perform", "sleep", "-f", str(tmp_path / "keep.yml"), "--name", "long", env=env)
    await _output_to(process, "Started Phase")
    process.kill()
    await ended(process)

    watched = await pkger("actionsets", "watch", "long", env=env)

    assert watched.code == 0
    assert "Ended Phase          sleep/sleep  complete" in watched.out


async def _output_to(process: asyncio.subprocess.Process, text: str) -> str:
    """The output of a command up to the line with *text*."""
    assert process.stdout
    shown = ""
    while text not in shown:
        line = await process.stdout.readline()
        assert line, shown
        shown += line.decode()
    return shown
