"""The text output of commands, as golden files; ``pytest --update-golden`` rewrites them."""

import re
from pathlib import Path

import pytest

from tests.apply.packages import BUCKET, DASHBOARD, LABEL, RENAMED, STEPS, an_endpoint, an_object, text
from tests.cli.command import environment, pkger
from tests.cluster import Cluster

GOLDEN = Path(__file__).with_name("golden")

CHANGED = text(
    an_object("Label", "lucid_einstein", "cool label name", color="#326bba"),
    an_object("Bucket", "pristine_noir", "bucket_1", retentionRules=[{"type": "expire", "everySeconds": 86400}]),
    an_object("Task", "alcord_mumphries", "task_1", ["lucid_einstein"], every="1h", query="buckets()"),
)
REPLACED = text(
    an_object("Label", "lucid_einstein", "cool label name", color="#326bba"),
    an_object("Bucket", "pristine_noir", "bucket_1", schemaType="explicit"),
)
REFUSED = text(LABEL, BUCKET, DASHBOARD, an_object("Bucket", "reserved", "_system"))
UNDONE = text(an_object("Label", "lucid_einstein", "renamed"), BUCKET, an_object("Bucket", "reserved", "_system"))
BROKEN = text(BUCKET, an_object("Label", "Bad Name", "x"))
CANARY = "canary-8a1f"
LITERAL = text(*(an_endpoint("Slack", f"chat-{n}", f"chat {n}", token=CANARY) for n in range(12)))
UNKNOWN = text(an_object("Label", "l", "l1") | {"metadata": {"name": {"envRef": {"key": "stage"}}}})

NEEDING = text(LABEL, an_endpoint("Slack", "chat", "chat"))
RENEWED = text(RENAMED, an_endpoint("Slack", "chat", "chat"))
UNMADE = text(RENAMED, an_object("Bucket", "reserved", "_system"))

CASES: dict[str, tuple[str, list[str]]] = {
    "apply-first": (STEPS[1], ["apply", "-f", "FILE", "--stack", "s"]),
    "apply-again": (STEPS[1], ["apply", "-f", "FILE", "--stack", "s"]),
    "plan-changed": (CHANGED, ["plan", "-f", "FILE", "--stack", "s"]),
    "plan-environment": (UNKNOWN, ["plan", "-f", "FILE"]),
    "plan-credential": (LITERAL, ["plan", "-f", "FILE"]),
    "apply-broken": (BROKEN, ["apply", "-f", "FILE", "--stack", "s"]),
    "apply-refused": (REFUSED, ["apply", "-f", "FILE", "--stack", "s"]),
    "apply-undone": (UNDONE, ["apply", "-f", "FILE", "--stack", "s", "--yes"]),
    "apply-unasked": (CHANGED, ["apply", "-f", "FILE", "--stack", "s"]),
    "apply-changed": (CHANGED, ["apply", "-f", "FILE", "--stack", "s", "--yes"]),
    "plan-replaced": (REPLACED, ["plan", "-f", "FILE", "--stack", "s"]),
    "plan-replaced-refused": (REPLACED, ["plan", "-f", "FILE"]),
    "plan-replaced-allowed": (
        REPLACED,
        ["plan", "-f", "FILE", "--org", "nobody", "--allow-replace", "--skip", "Check:x"],
    ),
    "plan-skip-nothing": (REPLACED, ["plan", "-f", "FILE", "--stack", "s", "--skip", "Bucket:"]),
    "stacks-show": ("", ["stacks", "show", "s"]),
    "stacks-show-json": ("", ["stacks", "show", "s", "-o", "json"]),
    "stacks-list": ("", ["stacks", "list"]),
    "stacks-list-json": ("", ["stacks", "list", "-o", "json"]),
    "uninstall": ("", ["stacks", "uninstall", "s", "--yes"]),
    "uninstall-again": ("", ["stacks", "uninstall", "s", "--yes"]),
    "stacks-show-uninstalled": ("", ["stacks", "show", "s"]),
    "plan-secret": (NEEDING, ["plan", "-f", "FILE", "--stack", "s", "--secret", "slack-token"]),
    "apply-secret": (NEEDING, ["apply", "-f", "FILE", "--stack", "s", "--secret", f"slack-token={CANARY}"]),
    "apply-secret-undone": (
        UNMADE,
        [
            *["apply", "-f", "FILE", "--stack", "s", "--yes"],
            *["--secret", f"slack-token={CANARY}", "--secret", f"new={CANARY}"],
        ],
    ),
    "plan-secret-saved": (RENEWED, ["plan", "-f", "FILE", "--stack", "s", "--save", "--secret", "slack-token"]),
    "apply-saved-without-secret": ("", ["apply", "--plan", "PLAN"]),
    "apply-saved-with-secret": ("", ["apply", "--plan", "PLAN", "--secret", f"slack-token={CANARY}"]),
    "delete": ("", ["stacks", "delete", "s", "--yes"]),
    "delete-again": ("", ["stacks", "delete", "s", "--yes"]),
    "uninstall-unknown": ("", ["stacks", "uninstall", "s", "--yes"]),
    "stacks-list-empty": ("", ["stacks", "list"]),
    "plan-saved": (STEPS[1], ["plan", "-f", "FILE", "--org", "elsewhere", "--stack", "t", "--save"]),
    "plans-show": ("", ["plans", "show", "PLAN"]),
    "apply-saved": ("", ["apply", "--plan", "PLAN"]),
    "apply-saved-again": ("", ["apply", "--plan", "PLAN"]),
    "plans-list": ("", ["plans", "list", "--stack", "t"]),
    "apply-saved-and-file": ("", ["apply", "--plan", "PLAN", "-f", "FILE"]),
    "apply-saved-and-target": ("", ["apply", "--plan", "PLAN", "--target", "embedded/other"]),
}
"""Commands in the order in which they run, on one store; FILE is the package, PLAN the last plan that was printed."""


async def test_the_text_of_commands(
    older_services: Cluster, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The package is named by a relative path, as the length of an error is limited."""
    monkeypatch.chdir(tmp_path)
    env, file, transcripts = environment(tmp_path, older_services.addresses), Path("package.json"), {}
    meant = {"FILE": str(file)}
    for name, (package, arguments) in CASES.items():
        file.write_text(package)
        ended = await pkger(*[meant.get(word, word) for word in arguments], env=env)
        if saved := re.search(r"--plan ([0-9a-f]{16})", ended.out):
            meant["PLAN"] = saved[1]
        assert CANARY not in ended.out + ended.err
        transcripts[name] = f"$ pkger {' '.join(arguments)}\n{ended.out}{ended.err}exit status {ended.code}\n"
    steady = _steady(transcripts, tmp_path)
    if request.config.getoption("--update-golden"):
        for name, printed in steady.items():
            (GOLDEN / f"{name}.txt").write_text(printed)
    assert steady == {name: (GOLDEN / f"{name}.txt").read_text() for name in CASES}


def _steady(transcripts: dict[str, str], folder: Path) -> dict[str, str]:
    """The same texts with ids numbered in the order of their first appearance, and fixed times."""
    ids: dict[str, str] = {}

    def number(found: re.Match[str]) -> str:
        return ids.setdefault(found.group(), f"{len(ids) + 1:016d}")

    steady = {}
    for name, printed in transcripts.items():
        timeless = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "2026-01-01T00:00:00Z", printed)
        steady[name] = re.sub(r"\b[0-9a-f]{16}\b", number, timeless.replace(str(folder), "."))
    return steady
