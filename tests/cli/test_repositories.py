"""``pkger repo``: repositories added, listed, changed and removed, with every wrong input; as golden files."""

import re
from pathlib import Path

import pytest

from tests.cli.command import environment, pkger
from tests.cluster import Cluster

pytestmark = pytest.mark.asyncio(loop_scope="module")

GOLDEN = Path(__file__).with_name("golden") / "repositories"

CASES: dict[str, list[str]] = {
    "list-empty": ["list"],
    "add": ["add", "main", "https://packages.example.com"],
    "add-all": ["add", "lab", "file:///srv/lab", "--priority", "10", "--only", "lab-*", "--only", "base"],
    "add-http": ["add", "near", "http://127.0.0.1:8000/packages", "--priority", "-5"],
    "add-json": ["add", "spare", "https://spare.example.com", "-o", "json"],
    "add-taken": ["add", "main", "https://other.example.com"],
    "add-no-name": ["add", "Main", "https://packages.example.com"],
    "add-escape": ["add", "a\x1b[31m", "https://packages.example.com"],
    "add-user": ["add", "other", "https://me:hunter2@packages.example.com"],
    "add-query": ["add", "other", "https://packages.example.com/?token=hunter2"],
    "add-folder": ["add", "other", "/srv/packages"],
    "add-scheme": ["add", "other", "ftp://packages.example.com"],
    "add-no-pattern": ["add", "other", "https://packages.example.com", "--only", "*-dashboards"],
    "add-no-priority": ["add", "other", "https://packages.example.com", "--priority", "high"],
    "list": ["list"],
    "list-limit": ["list", "--limit", "2"],
    "list-json": ["list", "-o", "json"],
    "update": ["update", "lab", "--priority", "0", "--no-only"],
    "update-all": ["update", "near", "--address", "https://near.example.com", "--only", "web-*"],
    "update-user": ["update", "near", "--address", "https://hunter2@near.example.com"],
    "update-nothing": ["update", "near"],
    "update-contradiction": ["update", "near", "--only", "web-*", "--no-only"],
    "update-unknown": ["update", "mian", "--priority", "1"],
    "disable": ["disable", "near"],
    "list-disabled": ["list"],
    "enable": ["enable", "near"],
    "enable-unknown": ["enable", "mian"],
    "remove": ["remove", "near"],
    "remove-again": ["remove", "near"],
    "remove-json": ["remove", "spare", "-o", "json"],
}
"""Commands in the order in which they run, on one store."""


async def test_the_output_of_repository_commands(
    module_services: Cluster, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    env = environment(tmp_path, module_services.addresses)
    transcripts: dict[str, str] = {}
    for name, arguments in CASES.items():
        answer = await pkger("repo", *arguments, env=env)
        command = " ".join(arguments).replace("\x1b", "\\x1b")
        printed = f"$ pkger repo {command}\n{answer.out}{answer.err}exit status {answer.code}\n"
        transcripts[name] = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "2026-01-01T00:00:00Z", printed)
        assert "hunter2" not in answer.out + answer.err
        assert "\x1b" not in answer.out + answer.err
    if request.config.getoption("--update-golden"):
        GOLDEN.mkdir(exist_ok=True)
        for name, printed in transcripts.items():
            (GOLDEN / f"{name}.txt").write_text(printed)
    assert transcripts == {name: (GOLDEN / f"{name}.txt").read_text() for name in CASES}


@pytest.mark.parametrize(
    "arguments",
    [
        ("repo", "add", "\udcff", "https://packages.example.com"),
        ("repo", "add", "main", "https://packages.example.com/\udcff"),
        ("repo", "add", "main", "https://packages.example.com", "--only=\udcff"),
        ("repo", "remove", "\udcff"),
        ("stacks", "init", "\udcff"),
    ],
)
async def test_bytes_that_are_no_text_are_wrong_usage(
    module_services: Cluster, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    """Python passes such bytes of a command line as surrogates."""
    answer = await pkger(*arguments, env=environment(tmp_path, module_services.addresses))
    assert (answer.code, answer.out) == (2, "")
    assert answer.err == "Error: an argument is no UTF-8 text; type it in UTF-8\n"


async def test_refused_credentials_are_in_no_file(tmp_path: Path) -> None:
    """Services that run for a command write their logs and databases below its home."""
    env = environment(tmp_path)
    refused = await pkger("repo", "add", "main", "https://me:hunter2@packages.example.com", env=env)
    assert refused.code == 1
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    assert [path for path in files if b"hunter2" in path.read_bytes()] == []
