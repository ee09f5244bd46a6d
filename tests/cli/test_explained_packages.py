"""``pkger packages list --outdated``, ``tree`` and ``why``: what they print, as golden files."""

from pathlib import Path

import pytest

from services.cli.output.package_tree import tree_lines
from services.rpc.convert.packages import installed_to_pb
from tests.cli.command import environment, pkger
from tests.cluster import Cluster
from tests.packages.folders import write_repository
from tests.packages.resolving import installed
from tests.packages.rows import case

pytestmark = pytest.mark.asyncio(loop_scope="module")

GOLDEN = Path(__file__).with_name("golden") / "explained_packages"

BEFORE = (
    "team 1.4.0 [labels ^1.2, buckets >=2 <4]",
    "buckets 2.0.0 [labels ^1 || ^3]",
    "labels 1.2.0",
    "tool 0.9.0",
    "fixed 1.0.0",
    "chart 1.0.0",
    "lonely 1.0.0 [labels]",
    "helper 1.0.0 [lonely]",
)
AFTER = (
    *("team 1.4.0 [labels ^1.2, buckets >=2 <4]", "buckets 2.0.0 [labels ^1 || ^3]", "lonely 1.0.0 [labels]"),
    *(
        "labels 1.2.0 | 1.3.0 | 2.0.0",
        "tool 0.9.0 | 0.9.5 | 1.0.0",
        "fixed 1.0.0 | 2.0.0",
        "chart 1.0.0 | 2.0.0 for >=9",
    ),
)
"""What the repository has while packages are installed, and afterwards."""

INSTALLATION = (
    ("install", "team", "tool@^0.9", "fixed", "chart", "helper"),
    ("packages", "pin", "fixed", "lonely"),
    ("uninstall", "helper", "--yes"),
)

CASES: dict[str, list[str]] = {
    "outdated": ["list", "--outdated", "--refresh"],
    "outdated-json": ["list", "--outdated", "-o", "json"],
    "refresh": ["list", "--refresh"],
    "tree": ["tree"],
    "tree-yaml": ["tree", "-o", "yaml"],
    "tree-no-stack": ["tree", "--stack", "other"],
    "why": ["why", "labels"],
    "why-manual": ["why", "team"],
    "why-lonely": ["why", "lonely"],
    "why-pinned": ["why", "fixed"],
    "why-requested": ["why", "tool"],
    "why-yaml": ["why", "labels", "-o", "yaml"],
    "why-not-installed": ["why", "helper"],
    "why-no-name": ["why", "Labels"],
    "why-no-stack": ["why", "labels", "--stack", "other"],
}
"""Commands on a stack whose packages have newer versions."""

AWAY: dict[str, list[str]] = {
    "outdated-away": ["list", "--outdated", "--refresh"],
    "why-away": ["why", "labels", "--refresh"],
}
"""Commands while the repository cannot be read."""


async def test_the_output_of_commands_that_explain_packages(
    module_services: Cluster, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    env = environment(tmp_path, module_services.addresses)
    root = write_repository(tmp_path / "main", BEFORE)
    assert (await pkger("repo", "add", "main", root.as_uri(), env=env)).code == 0
    for arguments in INSTALLATION:
        answer = await pkger(*arguments, env=env)
        assert answer.code == 0, answer
    write_repository(root, AFTER)
    transcripts = {name: await transcript(arguments, env, tmp_path) for name, arguments in CASES.items()}
    (root / "index.yaml").unlink()
    transcripts |= {name: await transcript(arguments, env, tmp_path) for name, arguments in AWAY.items()}
    if request.config.getoption("--update-golden"):
        GOLDEN.mkdir(exist_ok=True)
        for name, printed in transcripts.items():
            (GOLDEN / f"{name}.txt").write_text(printed)
    assert transcripts == {name: (GOLDEN / f"{name}.txt").read_text() for name in (*CASES, *AWAY)}


async def transcript(arguments: list[str], env: dict[str, str], folder: Path) -> str:
    answer = await pkger("packages", *arguments, env=env)
    printed = f"$ pkger packages {' '.join(arguments)}\n{answer.out}{answer.err}exit status {answer.code}\n"
    return printed.replace(str(folder), "FOLDER")


TREES: dict[str, tuple[list[str], list[str]]] = {
    "nothing": ([], []),
    "a manual package below another one": (
        ["a 1.0.0 [b ^1]", "b 1.0.0 [c]", "c 1.0.0 auto"],
        ["a 1.0.0", "  b 1.0.0 (^1)", "    c 1.0.0", "b 1.0.0, shown above"],
    ),
    "a requirement that is not there": (["a 1.0.0 [b ^1]"], ["a 1.0.0", "  b (^1), not installed"]),
    "dependencies that none leads to": (
        ["a 1.0.0 [b] auto", "b 1.0.0 auto", "c 1.0.0"],
        ["c 1.0.0", "a 1.0.0, no manual package leads to it", "  b 1.0.0"],
    ),
    "packages that require each other": (
        ["a 1.0.0 [b] auto", "b 1.0.0 [a] auto"],
        ["a 1.0.0, no manual package leads to it", "  b 1.0.0", "    a 1.0.0, shown above"],
    ),
}


@pytest.mark.parametrize("tree", TREES)
async def test_trees(tree: str) -> None:
    packages, lines = TREES[tree]
    messages = [installed_to_pb(installed(each)) for each in case((), packages, "update x")["installed"]]
    assert [line.plain for line in tree_lines(messages[::-1])] == lines


async def test_a_deep_tree_has_a_line_for_each_package() -> None:
    chain = [f"c{at:04} 1.0.0 [c{at + 1:04}]{' auto' if at else ''}" for at in range(1500)]
    messages = [installed_to_pb(installed(each)) for each in case((), chain, "update x")["installed"]]
    assert len(tree_lines(messages)) == 1501
