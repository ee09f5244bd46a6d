"""The memory of the parser, as a process, while it reads the largest packages."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from pkger.parser.v1 import parser_pb2

from services.core.errors import PkgerError
from services.core.limits import MAX_PACKAGE_BYTES
from services.rpc.client import Peer
from tests import needs
from tests.parser.conftest import Parser
from tests.peak_memory import GIGABYTE, measured

pytestmark = [needs.path("/proc/self/status"), pytest.mark.slow]

PACKAGES = 10

BUCKET = """\
apiVersion: influxdata.com/v2alpha1
kind: Bucket
metadata:
  name: bucket-{number}
spec:
  description: {text}
---
"""

EMPTY = "---\n" * (MAX_PACKAGE_BYTES // 4)
BUCKETS = "".join(BUCKET.format(number=number, text="d" * 60) for number in range(49_000))


@pytest.mark.parametrize("text", [EMPTY, BUCKETS], ids=["documents without content", "buckets"])
async def test_ten_of_the_largest_packages_take_less_than_a_gigabyte(text: str, tmp_path: Path) -> None:
    async with measured("parser_svc", tmp_path) as (address, peak), AsyncExitStack() as clients:
        peers = [await clients.enter_async_context(Peer("parser", address)) for _ in range(PACKAGES)]
        source = parser_pb2.Source(text=text)
        answers = await asyncio.gather(*(Parser(peer).parse(source) for peer in peers), return_exceptions=True)
        assert [
            type(answer)
            for answer in answers
            if isinstance(answer, BaseException) and not isinstance(answer, PkgerError)
        ] == []
        assert peak() < GIGABYTE
