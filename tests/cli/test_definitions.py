"""``pkger blueprints``, ``configmaps`` and ``functions``, as golden files."""

import re
from pathlib import Path

import pytest

from tests.cli.command import environment, pkger
from tests.cluster import Cluster

pytestmark = pytest.mark.asyncio(loop_scope="module")

GOLDEN = Path(__file__).with_name("golden") / "definitions"

HEAD = "apiVersion: pkger/v1\nkind: {}\nmetadata: {{name: {}}}\nspec:\n"
BLUEPRINT = (
    HEAD.format("Blueprint", "backup")
    + "  description: Backs a stack up\n  actions:\n    backup:\n      phases:\n"
    + "      - {name: export, func: ExportStack}\n"
)
FILES = {
    "backup.yml": BLUEPRINT,
    "both.yml": f"{BLUEPRINT}---\n" + HEAD.format("ConfigMap", "db") + "  data: {host: db1}\n",
    "faulty.yml": BLUEPRINT.replace("ExportStack", "KubeTask"),
    "set.yml": HEAD.format("ActionSet", "nightly")
    + "  actions:\n  - {name: backup, blueprint: backup, object: {kind: Stack, name: prod}}\n",
    "package.yml": "apiVersion: influxdata.com/v2alpha1\nkind: Bucket\nmetadata: {name: b1}\n",
}
CASES: dict[str, list[str]] = {
    "functions": ["functions"],
    "functions-one": ["functions", "Sleep", "-o", "yaml"],
    "functions-unknown": ["functions", "ExportStak"],
    "list-empty": ["blueprints", "list"],
    "apply": ["blueprints", "apply", "-f", "backup.yml"],
    "apply-both-json": ["configmaps", "apply", "both.yml", "-o", "json"],
    "apply-faulty": ["blueprints", "apply", "-f", "faulty.yml"],
    "apply-package": ["blueprints", "apply", "-f", "package.yml"],
    "apply-action-set": ["blueprints", "apply", "backup.yml", "set.yml"],
    "apply-no-file": ["blueprints", "apply"],
    "apply-missing": ["blueprints", "apply", "-f", "none.yml"],
    "list": ["blueprints", "list"],
    "list-json": ["configmaps", "list", "-o", "json"],
    "show": ["blueprints", "show", "backup"],
    "show-json": ["configmaps", "show", "db", "-o", "json"],
    "show-unknown": ["blueprints", "show", "bakcup"],
    "delete": ["blueprints", "delete", "backup"],
    "delete-again": ["blueprints", "delete", "backup"],
}
"""Commands in the order in which they run, on one store."""


async def test_the_output_of_commands_for_definitions(
    module_services: Cluster, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    env = environment(tmp_path, module_services.addresses)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    transcripts: dict[str, str] = {}
    for name, arguments in CASES.items():
        words = [str(tmp_path / word) if word.endswith(".yml") else word for word in arguments]
        answer = await pkger(*words, env=env)
        printed = f"$ pkger {' '.join(arguments)}\n{answer.out}{answer.err}exit status {answer.code}\n"
        printed = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "2026-01-01T00:00:00Z", printed)
        transcripts[name] = printed.replace(f"{tmp_path}/", "")
    if request.config.getoption("--update-golden"):
        GOLDEN.mkdir(exist_ok=True)
        for name, printed in transcripts.items():
            (GOLDEN / f"{name}.txt").write_text(printed)
    assert transcripts == {name: (GOLDEN / f"{name}.txt").read_text() for name in CASES}
