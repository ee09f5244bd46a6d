"""``pkger packages``: packages of the example repository searched, shown and resolved; as golden files."""

import json
from pathlib import Path

import pytest
from pkger.stack.v1 import repository_pb2
from pkger.stack.v1.repository_pb2_grpc import RepositoryServiceStub

from tests.cli.command import environment, pkger
from tests.cluster import Cluster
from tests.conftest import ROOT
from tests.packages.folders import write_repository

pytestmark = pytest.mark.asyncio(loop_scope="module")

GOLDEN = Path(__file__).with_name("golden") / "published_packages"

LAB = (
    "a 1.0.0 [b ^2] | 0.9.0",
    "b 1.0.0 | 2.0.0 yanked | 3.0.0-rc.1",
    "esc 1.0.0",
    *(f"chain-{number:02} 1.0.0 [chain-{number + 1:02} ^1]" for number in range(12)),
    "chain-12 1.0.0 [b ^1, chain-13 ^1]",
    "chain-13 1.0.0 [b >=1.0.1]",
)

CASES: dict[str, list[str]] = {
    "search": ["search"],
    "search-text": ["search", "LABELS"],
    "search-limit": ["search", "--limit", "2"],
    "search-json": ["search", "labels", "-o", "json"],
    "search-nothing": ["search", "nothing"],
    "versions": ["versions", "base-labels"],
    "versions-yanked": ["versions", "lab/b", "--limit", "2"],
    "versions-json": ["versions", "base-labels", "-o", "json"],
    "versions-unknown": ["versions", "base-lables"],
    "versions-repository": ["versions", "mian/base-labels"],
    "versions-version": ["versions", "base-labels@1.2.0"],
    "show": ["show", "team-dashboards"],
    "show-range": ["show", "main/base-labels@~1.2"],
    "show-yaml": ["show", "base-labels@1.2.0", "-o", "yaml"],
    "show-no-range": ["show", "base-labels@latest"],
    "show-empty-range": ["show", "base-labels@"],
    "show-no-version": ["show", "base-labels@^7"],
    "show-invalid": ["show", "esc"],
    "resolve": ["resolve", "team-dashboards"],
    "resolve-several": ["resolve", "web-buckets", "main/base-labels@1.2"],
    "resolve-prerelease": ["resolve", "b@>=3.0.0-rc.1"],
    "resolve-pre": ["resolve", "b@>1.0.0", "--pre", "b"],
    "resolve-yanked": ["resolve", "a"],
    "resolve-chain": ["resolve", "chain-00"],
    "resolve-nowhere": ["resolve", "missing"],
    "resolve-ranges": ["resolve", "web-buckets", "base-labels@<1"],
    "resolve-json": ["resolve", "team-dashboards", "-o", "json"],
    "resolve-conflict-json": ["resolve", "base-labels@^2", "-o", "json"],
    "resolve-no-range": ["resolve", "base-labels@~>1"],
    "resolve-twice": ["resolve", "base-labels", "base-labels@1"],
    "resolve-no-name": ["resolve", "@1"],
    "resolve-escape": ["resolve", "a\x1b[31m"],
    "resolve-nothing": ["resolve"],
}
"""Commands on two repositories: that of the examples, and one of strange packages."""


async def test_the_output_of_commands_about_published_packages(
    module_services: Cluster, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    lab = write_repository(tmp_path / "lab", LAB, "apiVersion: influxdata.com/v2alpha1\nkind: Label\n")
    stack = module_services.peers["stack"]
    for name, folder in (("main", ROOT / "examples" / "repository"), ("lab", lab)):
        repository = repository_pb2.CreateRepositoryRequest(name=name, address=folder.as_uri())
        await stack.call(RepositoryServiceStub(stack.channel).CreateRepository, repository)
    env = environment(tmp_path, module_services.addresses)
    transcripts: dict[str, str] = {}
    for name, arguments in CASES.items():
        answer = await pkger("packages", *arguments, env=env)
        command = " ".join(arguments).replace("\x1b", "\\x1b")
        transcripts[name] = f"$ pkger packages {command}\n{answer.out}{answer.err}exit status {answer.code}\n"
        assert "\x1b" not in answer.out + answer.err
    if request.config.getoption("--update-golden"):
        GOLDEN.mkdir(exist_ok=True)
        for name, printed in transcripts.items():
            (GOLDEN / f"{name}.txt").write_text(printed)
    assert transcripts == {name: (GOLDEN / f"{name}.txt").read_text() for name in CASES}


async def test_resolve_prints_the_message_of_the_contract(module_services: Cluster, tmp_path: Path) -> None:
    env = environment(tmp_path, module_services.addresses)
    answer = await pkger("packages", "resolve", "nobody-has-this", "-o", "json", env=env)
    assert answer.code == 7
    assert json.loads(answer.out)["conflict"]["code"] == "CONFLICT_CODE_PACKAGE_NOT_FOUND"
    assert answer.err == ""


async def test_a_command_without_services_reads_folders(tmp_path: Path) -> None:
    """The services of one command may read any folder that its user may."""
    env = environment(tmp_path / "home")
    address = write_repository(tmp_path / "repository", ["base 1.0.0"]).as_uri()
    assert (await pkger("repo", "add", "own", address, env=env)).code == 0
    answer = await pkger("packages", "resolve", "base", env=env)
    assert answer.out == "+ base 1.0.0 from own\n1 package\n"
