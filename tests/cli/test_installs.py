"""``pkger install``, ``update``, ``uninstall`` and ``packages``: what they print, as golden files."""

import re
from pathlib import Path

import pytest
from pkger.stack.v1 import repository_pb2
from pkger.stack.v1.repository_pb2_grpc import RepositoryServiceStub

from tests.cli.command import environment, pkger
from tests.cluster import Cluster
from tests.conftest import ROOT
from tests.packages.folders import write_repository

pytestmark = pytest.mark.asyncio(loop_scope="module")

GOLDEN = Path(__file__).with_name("golden") / "installs"

LAB = ("tool 1.0.0 [base-labels ^1.3] | 0.9.0 [base-labels ^1.2]", "keen 1.0.0 [base-labels ^2]")

TEAM = """\
apiVersion: pkger/v1
kind: Package
metadata: {name: team}
spec: {version: 0.1.0, requires: [{name: base-labels}]}
---
apiVersion: influxdata.com/v2alpha1
kind: Variable
metadata: {name: hosts}
spec: {type: constant, values: [a], associations: [{kind: Label, name: base-labels.env}]}
"""

CASES: dict[str, list[str]] = {
    "list-no-stack": ["packages", "list"],
    "install-dry": ["install", "web-buckets", "base-labels@1.2", "--dry-run"],
    "install-dry-exit": ["install", "web-buckets", "base-labels@1.2", "--dry-run", "--detailed-exitcode", "--quiet"],
    "install": ["install", "web-buckets", "base-labels@1.2"],
    "install-again": ["install", "web-buckets"],
    "install-conflict": ["install", "team-dashboards"],
    "install-conflict-json": ["install", "keen", "-o", "json"],
    "install-unsolvable": ["install", "keen", "tool@0.9.0"],
    "install-other": ["install", "tool"],
    "install-dependencies": ["install", "team-dashboards", "--update-dependencies"],
    "list": ["packages", "list"],
    "list-json": ["packages", "list", "-o", "json"],
    "update": ["update"],
    "update-nothing-installed": ["update", "tool"],
    "update-repository": ["update", "main/tool"],
    "pin": ["packages", "pin", "base-labels"],
    "mark": ["packages", "mark", "dependency", "web-buckets"],
    "suspend": ["packages", "suspend", "web-buckets"],
    "update-pinned": ["update", "base-labels", "--dry-run"],
    "uninstall-pinned-stack": ["stacks", "uninstall", "packages", "--yes"],
    "unpin": ["packages", "unpin", "base-labels"],
    "resume": ["packages", "resume", "web-buckets"],
    "uninstall-required": ["uninstall", "base-labels"],
    "uninstall-asks": ["uninstall", "team-dashboards"],
    "uninstall": ["uninstall", "team-dashboards", "--yes"],
    "history": ["stacks", "history", "packages"],
    "folder": ["install", "TEAM"],
    "folder-again": ["install", "TEAM"],
    "folder-none": ["install", "TEAM/labels"],
    "yes-dry": ["install", "tool", "--yes", "--dry-run"],
    "twice": ["install", "tool", "tool@1"],
    "repository-in-use": ["repo", "remove", "main"],
    "apply-on-packages": ["apply", "-f", "EXAMPLE", "--stack", "packages"],
    "uninstall-all": ["uninstall", "web-buckets", "base-labels", "team", "--yes"],
    "list-empty": ["packages", "list"],
    "repository-unused": ["repo", "remove", "main"],
}
"""Commands in the order in which they run, on one store; words in capitals stand for paths."""


async def configure(services: Cluster, folder: Path) -> None:
    stack = services.peers["stack"]
    for name, path in (("main", ROOT / "examples" / "repository"), ("lab", write_repository(folder / "lab", LAB))):
        repository = repository_pb2.CreateRepositoryRequest(name=name, address=path.as_uri())
        await stack.call(RepositoryServiceStub(stack.channel).CreateRepository, repository)


def without_ids(text: str) -> str:
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "2026-01-01T00:00:00Z", text)
    return re.sub(r"\b[0-9a-f]{16}\b", "ID", text)


async def test_the_output_of_commands_that_change_packages(
    module_services: Cluster, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    await configure(module_services, tmp_path)
    words = {"TEAM": f"{tmp_path / 'team'}/", "EXAMPLE": str(ROOT / "examples" / "labels.json")}
    words["TEAM/labels"] = f"{tmp_path / 'team' / 'labels'}/"
    (tmp_path / "team").mkdir()
    (tmp_path / "team" / "package.yaml").write_text(TEAM)
    env = environment(tmp_path, module_services.addresses) | {"USER": "ann", "LOGNAME": "ann"}
    transcripts: dict[str, str] = {}
    for name, arguments in CASES.items():
        answer = await pkger(
            *(words.get(word, word) for word in arguments), env=env | {"USER": "ann", "LOGNAME": "ann"}
        )
        printed = f"$ pkger {' '.join(arguments)}\n{answer.out}{answer.err}exit status {answer.code}\n"
        transcripts[name] = without_ids(printed).replace(str(tmp_path), "FOLDER")
    if request.config.getoption("--update-golden"):
        GOLDEN.mkdir(exist_ok=True)
        for name, printed in transcripts.items():
            (GOLDEN / f"{name}.txt").write_text(printed)
    assert transcripts == {name: (GOLDEN / f"{name}.txt").read_text() for name in CASES}
