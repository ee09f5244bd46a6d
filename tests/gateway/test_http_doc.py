"""Runs all commands of docs/http.md except those of ``influx``."""

import asyncio
import os
import re
import subprocess
from pathlib import Path

import orjson
import pytest

from tests import needs
from tests.cluster import Cluster
from tests.conftest import ROOT
from tests.gateway.gateway import gateway, settings

PAGE = (ROOT / "docs" / "http.md").read_text()

BLOCKS = re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)

CURL = 'curl() { command curl --fail-with-body "$@"; echo; }\n'
"""Ends the script when a request is refused."""


async def run(script: str, folder: Path, **environ: str) -> str:
    process = await asyncio.create_subprocess_exec(
        "bash", "-euo", "pipefail", "-c", script, cwd=folder, env={"PATH": os.environ["PATH"], **environ},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    out, _ = await process.communicate()
    assert process.returncode == 0, out.decode()
    return out.decode()


@pytest.mark.slow
@needs.program("curl")
async def test_the_commands_of_the_page_run(services: Cluster, tmp_path: Path) -> None:
    start, tokens, *curls = BLOCKS
    assert start == "pkger up --http\n"
    token = (await run(f"{tokens}echo $TOKEN", tmp_path)).strip()
    made = settings(tmp_path, PKGER_HTTP_ORGS="", PKGER_HTTP_TOKENS=str(tmp_path / "tokens"))
    # Replaces the file with the token of the tests by the one of the page.
    (tmp_path / "tokens").unlink()
    await run(tokens.replace("TOKEN=$(", ": $("), tmp_path, TOKEN=token)
    async with gateway(made, services) as address:
        script = CURL + "".join(curls).replace("http://localhost:8086", f"http://{address}")
        output = await run(script, tmp_path, TOKEN=token)
    documents = [orjson.loads(line) for line in output.splitlines() if line.startswith("{")]
    statuses = [document.get("status") for document in documents]
    assert "pass" in statuses
    assert [len(document["summary"]["labels"]) for document in documents if "summary" in document] == [1, 1]
    assert documents[-1]["eventType"] == "uninstall"
