"""
Answers recorded cases, one JSON line each, through a real parser service that it starts.

Run by the comparison of ``../shared/golden/parse``: ``compare.py -- python tests/parser/golden_adapter.py``.
"""

import asyncio
import json
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any

from google.protobuf.json_format import ParseDict

sys.path.insert(0, str(Path(__file__).parents[2]))

from pkger.parser.v1 import parser_pb2

from parser_svc.__main__ import opened
from services.core.errors import SourceTooLarge, SourceUndecodable
from services.rpc.client import Peer
from services.rpc.parsing import parse_package
from services.rpc.server import serving
from services.settings import load

_ENCODINGS = {"yaml": parser_pb2.ENCODING_YAML, "json": parser_pb2.ENCODING_JSON}
"""The encoding "source" is left to the service."""

_LATER_LISTS: Collection[str] = ()
"""Lists of the summary for kinds that the parser of InfluxDB lacks; the recorded answers do not have them."""


async def _answer_all() -> None:
    async with opened(load({})) as service, serving(service.register, service.names, "127.0.0.1:0") as address:
        peer = Peer("parser", address)
        for line in iter(sys.stdin.readline, ""):
            print(json.dumps(await _answer(peer, json.loads(line))), flush=True)
        await peer.close()


async def _answer(peer: Peer, case: dict[str, Any]) -> dict[str, Any]:
    source = parser_pb2.Source(
        text=case["source"], encoding=_ENCODINGS.get(case["encoding"], parser_pb2.ENCODING_UNSPECIFIED)
    )
    request = parser_pb2.ParsePackageRequest(sources=[source], view=[parser_pb2.PACKAGE_VIEW_SUMMARY])
    for key, value in case["env"].items():
        ParseDict(value, request.env[key])
    try:
        answer = await parse_package(peer, request)
    except (SourceUndecodable, SourceTooLarge):
        return {"decode_error": True, "errors": [], "summary": None}
    errors = [{"kind": violation.kind, "path": violation.path} for violation in answer.violations]
    summary = _as_recorded(json.loads(answer.summary)) if answer.summary else None
    return {"decode_error": False, "errors": errors, "summary": summary}


def _as_recorded(summary: dict[str, Any]) -> dict[str, Any]:
    return {name: entries for name, entries in summary.items() if name not in _LATER_LISTS}


if __name__ == "__main__":
    asyncio.run(_answer_all())
