"""The parser as a process."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import orjson
import pytest
from pkger.parser.v1 import parser_pb2
from pkger.parser.v1.parser_pb2_grpc import ParserServiceStub

from services.kinds.registry import KINDS
from services.rpc.client import Peer


@pytest.mark.slow
async def test_the_process_serves_until_it_is_stopped(tmp_path: Path) -> None:
    server = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "parser_svc",
        env={**os.environ, "PKGER_LISTEN": f"unix:{tmp_path}/socket"},
        stderr=asyncio.subprocess.PIPE,
    )
    assert server.stderr
    peer = Peer("parser", orjson.loads(await server.stderr.readline())["addresses"][0])
    kinds = await peer.call(ParserServiceStub(peer.channel).ListKinds, parser_pb2.ListKindsRequest())
    assert {kind.name for kind in kinds.kinds} == set(KINDS)
    await peer.close()
    server.send_signal(signal.SIGTERM)
    await server.communicate()
    assert server.returncode == 0
