"""Uses the gateway with the JavaScript client of InfluxDB."""

import json
import re
import shutil
import subprocess
from asyncio import to_thread
from pathlib import Path

import pytest

from tests import needs
from tests.clients.page import UNAVAILABLE
from tests.cluster import Cluster
from tests.conftest import ROOT
from tests.gateway.gateway import TOKEN, gateway, settings
from tests.gateway.packages import EVERY_KIND, EXAMPLES

PROGRAM = Path(__file__).parent / "javascript"


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [shutil.which(command[0], path=needs.PATH) or command[0], *command[1:]],
        cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300,
        check=False,
    )  # fmt: skip


def install(folder: Path) -> None:
    """Install the packages; skip the test if their registry cannot be reached."""
    shutil.copytree(PROGRAM, folder, ignore=shutil.ignore_patterns("node_modules"), dirs_exist_ok=True)
    done = run(folder, "npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts")
    if done.returncode != 0 and (problem := UNAVAILABLE.search(done.stdout)):
        needs.outside(f"the registry of npm, which cannot be reached: {done.stdout[: problem.end()].splitlines()[-1]}")
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
@needs.node(20)
@needs.program("npm")
@pytest.mark.timeout(600)  # the first run downloads the packages
async def test_the_javascript_client_manages_packages_and_stacks(services: Cluster, tmp_path: Path) -> None:
    folder = tmp_path / "program"
    await to_thread(install, folder)
    (folder / "packages.json").write_text(json.dumps([EVERY_KIND, EXAMPLES]))
    (shown,) = re.findall(r"^```js\n(.*?)^```", (ROOT / "docs" / "http.md").read_text(), re.MULTILINE | re.DOTALL)

    async with gateway(settings(tmp_path, PKGER_HTTP_ORGS=""), services) as address:
        given = f"const token = {json.dumps(TOKEN)}, contents = {json.dumps(EXAMPLES)};\n"
        (folder / "shown.mjs").write_text(given + shown.replace("http://127.0.0.1:8086", f"http://{address}"))
        printed = await to_thread(run, folder, "node", "shown.mjs")
    async with gateway(settings(tmp_path), services) as address:
        done = await to_thread(run, folder, "node", "round.mjs", f"http://{address}", TOKEN, "packages.json")

    assert printed.returncode == 0, printed.stdout
    assert "fleet" in printed.stdout
    assert (done.returncode, done.stdout) == (0, "")
