"""The commands of docs/http-api.md run and call every public RPC, and its table has every route."""

import json
import re
from pathlib import Path

import pytest

from services.access.token_file import home_token
from services.gateway.settings import load_gateway
from services.gateway.transcoding.bindings import PUBLIC_SERVICES, bindings
from services.gateway.transcoding.problems import PROBLEM_SCHEMA
from tests import needs
from tests.cli.command import environment
from tests.cluster import Calls, Cluster
from tests.conftest import ROOT
from tests.docs.test_docs import blocks, run
from tests.gateway.gateway import gateway

PAGE = ROOT / "docs" / "http-api.md"

BY_ID = "/stacks/{stack_id}"
BY_NAME = "/platforms/{stack_target_platform}/orgs/{stack_target_org}/stacks/{stack_name}"


@pytest.mark.slow
@needs.program("curl")
async def test_the_commands_of_the_page_run_and_call_every_rpc(services: Cluster, tmp_path: Path, calls: Calls) -> None:
    settings = load_gateway({"PKGER_HTTP_ADDRESS": "127.0.0.1:0"})
    async with gateway(settings, services, home_token(tmp_path)) as address:
        script = "\n".join(blocks(PAGE, "sh")).replace("127.0.0.1:8086", address)
        output = await run(f"cd {tmp_path}\ncp -r {ROOT}/examples .\n{script}", environment(tmp_path))
    assert output.count("OPERATION_STATE_SUCCEEDED") >= 4
    assert "id: 3\ndata: " in output
    assert "nmes: there is no such parameter of this query" in output
    assert '"violations":[{"kind":' in output
    assert set(calls.methods) >= {rpc.name for service in PUBLIC_SERVICES for rpc in service.methods}


def test_the_table_of_the_page_has_every_route() -> None:
    wanted = set()
    for each in bindings():
        path = each.path.removeprefix("/api/pkger/v1").replace(BY_NAME, "STACK").replace(BY_ID, "STACK")
        wanted.add((f"{each.method} {path}", f"{each.rpc.containing_service.name}.{each.rpc.name}"))
    assert set(re.findall(r"^\| `([A-Z]+ [^`]*)` \| (\w+\.\w+) \|$", PAGE.read_text(), re.MULTILINE)) == wanted


def test_the_error_of_the_page_has_the_members_that_errors_have() -> None:
    [shown] = blocks(PAGE, "json")
    assert list(json.loads(shown)) == PROBLEM_SCHEMA["required"]
