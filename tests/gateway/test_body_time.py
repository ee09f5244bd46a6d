"""The time that a body may take to arrive, on virtual time."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import StreamReader
from aiohttp.base_protocol import BaseProtocol

from services.gateway.bodies import BYTES_PER_SECOND, read_body
from services.gateway.errors import Problem
from services.gateway.settings import GatewaySettings
from services.rpc.call import loop_time
from tests.virtual_time import VirtualLoop

LIMITS = GatewaySettings(body_bytes=100 * BYTES_PER_SECOND, body_seconds=60)


def on_virtual_time(test: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(test)


@asynccontextmanager
async def arriving(pieces: Iterable[bytes], pause: float) -> AsyncIterator[StreamReader]:
    """A stream of *pieces*, each after a pause."""
    loop = asyncio.get_running_loop()
    protocol = BaseProtocol(loop)
    protocol.connection_made(asyncio.Transport())
    stream = StreamReader(protocol, 2**16, loop=loop)

    async def feed() -> None:
        for piece in pieces:
            await asyncio.sleep(pause)
            stream.feed_data(piece)
        stream.feed_eof()

    feeding = asyncio.create_task(feed())
    try:
        yield stream
    finally:
        feeding.cancel()


def test_a_body_of_single_bytes_has_no_more_time_than_one_that_does_not_arrive() -> None:
    async def test() -> None:
        for pause in (25.0, 0.1, 1000.0):
            began = loop_time()
            async with arriving([b"x"] * 10_000, pause) as stream:
                with pytest.raises(Problem, match="not complete after 60 seconds") as caught:
                    await read_body(stream, 10_000, "", LIMITS)
            assert caught.value.status == 408
            assert caught.value.headers == {"Connection": "close"}
            assert loop_time() - began == pytest.approx(60, abs=0.1)

    on_virtual_time(test())


def test_a_large_body_has_time_by_its_size() -> None:
    piece = b"x" * (BYTES_PER_SECOND // 2)

    async def test() -> None:
        began = loop_time()
        async with arriving([piece] * 180, 0.75) as stream:
            assert await read_body(stream, None, "", LIMITS) == piece * 180
        assert loop_time() - began > 130
        began = loop_time()
        async with arriving([piece] * 180, 1.5) as stream:
            with pytest.raises(Problem, match="not complete after 90 seconds"):
                await read_body(stream, None, "", LIMITS)
        assert loop_time() - began == pytest.approx(90, abs=2)

    on_virtual_time(test())
