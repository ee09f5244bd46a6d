"""History, policy and changes of the record of a stack, on the command line; as golden files."""

import re
from pathlib import Path

import pytest

from tests.cli.command import environment, pkger
from tests.cluster import cluster

GOLDEN = Path(__file__).with_name("golden") / "history"

LABEL = "apiVersion: influxdata.com/v2alpha1\nkind: Label\nmetadata: {name: l}\nspec: {name: sensors, color: '%s'}\n"
TASK = """---
apiVersion: influxdata.com/v2alpha1
kind: Task
metadata: {name: roll}
spec:
  name: roll
  every: 1h
  query: |
    from(bucket: "raw")
      |> range(start: -1h)
      |> filter(fn: (r) => r._measurement == "%s")
      |> mean()
  associations: [{kind: Label, name: l}]
"""
FILES = {
    "one.yml": LABEL % "#000001" + TASK % "cpu",
    "two.yml": LABEL % "#000002" + TASK % "mem",
    "three.yml": LABEL % "#000002",
    "policy.yml": "protect: true\nignore:\n  - {kind: Task, paths: [/description]}\n",
    "none.yml": "protcet: true\n",
    "policies.yml": "apiVersion: pkger/v1\nkind: Lifecycle\nmetadata: {name: p}\n"
    + "spec: {policy: {on_remove: orphan}}\n---\n"
    + LABEL.replace("sensors", "probes").replace(
        "{name: l}", "{name: l, lifecycle: {drift: ignore, ignore: [/description]}}"
    )
    % "#000001",
    "empty.yml": "",
    "twice.yml": "protect: true\nprotect: false\n",
    "list.yml": "- protect\n",
}

CASES: dict[str, list[str]] = {
    "apply-one": ["apply", "one.yml", "--stack", "s", "--author", "ann", "--yes"],
    "apply-two": ["apply", "two.yml", "--stack", "s", "--author", "ben", "--yes"],
    "apply-three": ["apply", "three.yml", "--stack", "s", "--author", "ann", "--yes"],
    "history": ["stacks", "history", "s"],
    "history-json": ["stacks", "history", "s", "--limit", "1", "-o", "json"],
    "diff": ["stacks", "diff", "s", "1", "2"],
    "diff-back": ["stacks", "diff", "s", "3", "1"],
    "diff-same": ["stacks", "diff", "s", "2", "2"],
    "diff-json": ["stacks", "diff", "s", "2", "3", "-o", "json"],
    "diff-gone": ["stacks", "diff", "s", "1", "9"],
    "diff-none": ["stacks", "diff", "s", "0", "1"],
    "rollback": ["stacks", "rollback", "s", "1", "--author", "cid", "--yes"],
    "rollback-none": ["stacks", "rollback", "s", "0", "--yes"],
    "rollback-no-number": ["stacks", "rollback", "s", "last", "--yes"],
    "rollback-gone": ["stacks", "rollback", "s", "9", "--yes"],
    "rollback-no-stack": ["stacks", "rollback", "x", "1", "--yes"],
    "policy-none": ["stacks", "policy", "s"],
    "policy-file": ["stacks", "policy", "s", "-f", "policy.yml"],
    "policy-set": ["stacks", "policy", "s", "--set", "protect=", "--set", "on_remove=orphan", "-o", "json"],
    "policy-wrong": ["stacks", "policy", "s", "-f", "none.yml"],
    "policy-list": ["stacks", "policy", "s", "-f", "list.yml"],
    "policy-empty": ["stacks", "policy", "s", "-f", "empty.yml"],
    "policy-twice": ["stacks", "policy", "s", "-f", "twice.yml"],
    "policy-both": ["stacks", "policy", "s", "-f", "policy.yml", "--set", "drift=ignore"],
    "policy-set-twice": ["stacks", "policy", "s", "--set", "drift=ignore", "--set", "drift=report"],
    "policy-missing": ["stacks", "policy", "s", "-f", "missing.yml"],
    "policy-no-value": ["stacks", "policy", "s", "--set", "protect"],
    "rename": ["stacks", "rename", "s", "Label:l", "tag"],
    "rename-taken": ["stacks", "rename", "s", "Label:tag", "tag"],
    "rename-mistyped": ["stacks", "rename", "s", "Lable:tag", "other"],
    "rename-wrong": ["stacks", "rename", "s", "Label", "tag"],
    "rename-json": ["stacks", "rename", "s", "Label:tag", "mark", "-o", "json"],
    "forget": ["stacks", "forget", "s", "Label:mark"],
    "forget-again": ["stacks", "forget", "s", "Label:mark"],
    "import": ["stacks", "import", "s", "Label", "ID", "--as", "l"],
    "import-again": ["stacks", "import", "s", "Label", "ID", "--as", "l"],
    "import-nowhere": ["stacks", "import", "s", "Label", "nowhere"],
    "forget-json": ["stacks", "forget", "s", "Label:l", "-o", "json"],
    "history-at-last": ["stacks", "history", "s"],
    "apply-policies": ["apply", "policies.yml", "--stack", "p", "--yes"],
    "policy-explain": ["stacks", "policy", "p", "--explain", "Label:l"],
    "policy-explain-json": ["stacks", "policy", "p", "--explain", "Label:l", "-o", "json"],
    "policy-explain-gone": ["stacks", "policy", "p", "--explain", "Label:m"],
    "policy-explain-no-key": ["stacks", "policy", "p", "--explain", "Label"],
    "policy-explain-and-set": ["stacks", "policy", "p", "--explain", "Label:l", "--set", "protect=true"],
}
"""Commands in the order in which they run, on one store; ID is the id of the label."""


def plain(text: str) -> str:
    """*text* without values that differ from run to run."""
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME", text)
    text = re.sub(r"sha256:[0-9a-f]{64}", "DIGEST", text)
    text = re.sub(r'"operation_id": "[0-9a-f]{16}"', '"operation_id": "OPERATION"', text)
    text = re.sub(r"\b[0-9a-f]{16}\b", "RESOURCE", text)
    # The last column is as wide as the longest path.
    return re.sub(r" +$", "", text, flags=re.MULTILINE)


async def test_the_history_of_a_stack(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, "utf-8")
    transcripts: dict[str, str] = {}
    async with cluster(tmp_path) as services:
        env = environment(tmp_path, services.addresses)
        for case, arguments in CASES.items():
            meant = {name: str(tmp_path / name) for name in (*FILES, "missing.yml")}
            meant["ID"] = next((each.id for each in await services.resources(kinds=["Label"])), "")
            found = await pkger(*(meant.get(word, word) for word in arguments), env=env)
            printed = plain(f"{found.out}{found.err}").replace(f"{tmp_path}/", "")
            transcripts[case] = f"$ pkger {' '.join(arguments)}\n{printed}exit status {found.code}\n"
    if request.config.getoption("--update-golden"):
        GOLDEN.mkdir(exist_ok=True)
        for case, text in transcripts.items():
            (GOLDEN / f"{case}.txt").write_text(text, "utf-8")
    assert transcripts == {case: (GOLDEN / f"{case}.txt").read_text("utf-8") for case in CASES}
