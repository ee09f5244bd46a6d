"""Runs all commands of docs/http.md except those of ``influx``."""

import asyncio
import re
import subprocess
from pathlib import Path

import orjson
import pytest

from services.access.token_file import home_token
from services.gateway.settings import load_gateway
from tests import needs
from tests.cluster import Cluster
from tests.conftest import ROOT
from tests.gateway.gateway import client, gateway

PAGE = (ROOT / "docs" / "http.md").read_text()

BLOCKS = re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)

CURL = 'curl() { command curl --fail-with-body "$@"; echo; }\n'
"""Ends the script when a request is refused."""


async def run(script: str, folder: Path) -> str:
    """The output of a script in *folder*, which is ``PKGER_HOME``, too."""
    process = await asyncio.create_subprocess_exec(
        "bash", "-euo", "pipefail", "-c", script, cwd=folder, env={"PATH": needs.PATH, "PKGER_HOME": str(folder)},
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
    served = load_gateway({"PKGER_HTTP_TOKENS": str(tmp_path / "tokens")})
    async with gateway(served, services, home_token(tmp_path)) as address:
        script = CURL + "".join(curls).replace("http://127.0.0.1:8086", f"http://{address}")
        output = await run(script, tmp_path)
        async with client(address, {"Authorization": f"Token {token}"}) as http, http.get("/api/v2/me") as me:
            assert (me.status, (await me.json())["name"]) == (200, "ci")
    documents = [orjson.loads(line) for line in output.splitlines() if line.startswith("{")]
    statuses = [document.get("status") for document in documents]
    assert "pass" in statuses
    assert [len(document["summary"]["labels"]) for document in documents if "summary" in document] == [1, 1]
    assert documents[-1]["eventType"] == "uninstall"
