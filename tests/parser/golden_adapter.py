"""
Answers cases of the parser through a real parser service: a package, and the summary or the mistakes that it has.

The recorded cases can also be compared by the program beside them:
``../shared/golden/parse/compare.py -- python tests/parser/golden_adapter.py``.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from pkger.parser.v1 import parser_pb2

from parser_svc.__main__ import opened
from services.core.errors import PkgerError
from services.rpc.client import Peer
from services.rpc.parsed_package import parse_package
from services.settings import load
from tests.transport import serving_at_socket

_ENCODINGS = {
    "yaml": parser_pb2.ENCODING_YAML,
    "json": parser_pb2.ENCODING_JSON,
    "jsonnet": parser_pb2.ENCODING_JSONNET,
    "source": parser_pb2.ENCODING_UNSPECIFIED,
}
"""The encoding "source" is left to the service."""


@asynccontextmanager
async def parser() -> AsyncIterator[Peer]:
    """A parser service with its default settings."""
    async with opened(load({})) as service, serving_at_socket(service) as address:
        peer = Peer("parser", address)
        try:
            yield peer
        finally:
            await peer.close()


async def answer(peer: Peer, case: Mapping[str, Any]) -> dict[str, Any]:
    """
    The answer to a case.

    Args:
        peer: The parser.
        case: ``source`` or ``address``; ``encoding``; ``env``, the supplied values.

    Returns:
        ``decode_error``: whether the request is refused, and ``refused``: the code of the error; ``errors``: the
        violations, as kind and path; ``findings``: violations and warnings, as texts; ``summary``: None if there is
        none.
    """
    source = parser_pb2.Source(encoding=_ENCODINGS[case["encoding"]])
    if "address" in case:
        source.url = case["address"]
    else:
        source.text = case["source"]
    request = parser_pb2.ParsePackageRequest(
        sources=[source], view=[parser_pb2.PACKAGE_VIEW_SUMMARY, parser_pb2.PACKAGE_VIEW_WARNINGS]
    )
    request.env_json.update({key: json.dumps(value) for key, value in case["env"].items()})
    try:
        parsed = await parse_package(peer, request)
    except PkgerError as error:
        code = error.reason.lower().replace("_", "-")
        return {"decode_error": True, "refused": code, "errors": [], "findings": [], "summary": None}
    found = [*parsed.violations, *parsed.warnings]
    return {
        "decode_error": False,
        "refused": "",
        "errors": [{"kind": each.kind, "path": each.path} for each in parsed.violations],
        "findings": [f"{each.code} {each.kind} {each.path}" for each in found],
        "summary": json.loads(parsed.summary) if parsed.summary else None,
    }


async def _answer_all() -> None:
    async with parser() as peer:
        for line in iter(sys.stdin.readline, ""):
            print(json.dumps(await answer(peer, json.loads(line))), flush=True)


if __name__ == "__main__":
    asyncio.run(_answer_all())
