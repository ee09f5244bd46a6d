"""Random calls and frames at the port of a service, with and without a token: it refuses, and serves on."""

import asyncio
import logging
import random
import resource
import struct
from collections import Counter
from pathlib import Path
from typing import Any

import grpc
import pytest

from services.access.listeners import Listener, ListenerKind
from services.access.token_file import TokenFile, home_token
from services.rpc import door
from services.rpc.entrances import Entrance
from services.rpc.server import serving
from services.settings import Settings
from tests import needs
from tests.cluster import OPENED
from tests.rpc.test_every_method import methods_of

pytestmark = [pytest.mark.slow, needs.path("/proc/self/statm")]

CALLS = 20_000
AT_A_TIME = 50

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 2, 3, 4, 6, 7, 8, 9


def resident() -> int:
    """Bytes of memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def a_message(draw: random.Random) -> bytes:
    """Random bytes, or a message with random bytes in its first field."""
    value = draw.randbytes(draw.choice((0, 1, 5, 100, 3000)))
    return value if draw.random() < 0.5 or len(value) > 127 else bytes([0x0A, len(value)]) + value


def some_headers(draw: random.Random, token: str) -> list[tuple[str, str | bytes]]:
    """Random metadata, with the token or with what is nearly one."""
    near = (token[:-1], token[:22] + token[22:][::-1], f"{token} ", f"{token}\t", token.upper(), "", "x" * 4000)
    headers: list[tuple[str, str | bytes]] = [("x-request-id", draw.choice(("r", " ", "x" * 200, "a;b", token[:8])))]
    headers += [(f"x-{draw.randrange(9)}-bin", draw.randbytes(draw.randrange(40))) for _ in range(draw.randrange(3))]
    if draw.random() < 0.8:
        headers.append(
            ("authorization", f"{draw.choice(('Bearer', 'Basic', 'token', ''))} {draw.choice(near)}".strip())
        )
    return headers


@pytest.mark.parametrize("has_token", [False, True])
async def test_random_calls_are_answered_and_leave_nothing(
    tmp_path: Path, has_token: bool, caplog: pytest.LogCaptureFixture
) -> None:
    # Lines of calls would be kept for the whole test.
    caplog.set_level(logging.WARNING)
    draw, token, codes = random.Random(7), home_token(tmp_path), Counter[grpc.StatusCode]()
    async with OPENED["stack"](Settings({}, tmp_path, tmp_path, tmp_path)) as service:
        entrance = Entrance(Listener("127.0.0.1:0", ListenerKind.LOOPBACK), token, 2**20)
        methods = [method for method in methods_of(service.names) if "Watch" not in method]
        async with (
            serving(service.register, service.names, [entrance], 0) as (address,),
            grpc.aio.insecure_channel(address) as channel,
        ):
            await many(channel, methods, draw, token, has_token, codes, CALLS // 10)
            early = resident()
            await many(channel, methods, draw, token, has_token, codes, CALLS)
            late = resident()
    assert late - early < 20 * 2**20
    assert not {grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN} & set(codes), codes
    assert not [record for record in caplog.records if record.exc_info]
    if not has_token:
        assert set(codes) <= {grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.OK, *PROBED}


PROBED = {grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND, grpc.StatusCode.UNIMPLEMENTED}
"""The statuses of health checks, which need no token, for random bytes and unknown services."""


async def many(
    channel: grpc.aio.Channel,
    methods: list[str],
    draw: random.Random,
    token: TokenFile,
    has_token: bool,
    codes: Counter[grpc.StatusCode],
    count: int,
) -> None:
    """Make *count* calls, some at a time, and count their statuses."""
    right: list[tuple[str, str | bytes]] = [("authorization", f"Bearer {token.token()}")]
    for _ in range(count // AT_A_TIME):
        calls = []
        for _ in range(AT_A_TIME):
            call: Any = channel.unary_stream(draw.choice(methods), request_serializer=bytes)
            metadata = some_headers(draw, token.token())
            if has_token:
                metadata = [each for each in metadata if each[0] != "authorization"] + right
            calls.append(call(a_message(draw), metadata=metadata, timeout=60))
        codes.update(await asyncio.gather(*(ended(call) for call in calls)))


async def ended(call: Any) -> grpc.StatusCode:
    try:
        while await call.read() is not grpc.aio.EOF:
            pass
    except grpc.aio.AioRpcError as error:
        return error.code()
    code: grpc.StatusCode = await call.code()
    return code


def frame(kind: int, payload: bytes = b"", flags: int = 0, stream: int = 0) -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


FLOODS = {
    "pings": [frame(PING, b"12345678")] * 5000,
    "settings": [frame(SETTINGS, struct.pack(">HI", 4, 65_535))] * 5000,
    "resets": [
        frame(HEADERS, b"\x82", 4, 2 * n + 1) + frame(RST_STREAM, b"\0\0\0\x08", 0, 2 * n + 1) for n in range(5000)
    ],
    "continuations": [frame(HEADERS, b"", 0, 1)] + [frame(CONTINUATION, b"", 0, 1)] * 5000,
    "headers": [frame(HEADERS, b"\x40\x01a" + b"\x7f\x80\x7f" + b"x" * 16000, 4, 1)],
    "windows": [frame(WINDOW_UPDATE, b"\x7f\xff\xff\xff")] * 1000,
    "goaways": [frame(GOAWAY, b"\0" * 8)] * 1000,
    "data": [frame(DATA, b"x" * 16_000, 0, 1)] * 1000,
    "unknown": [frame(200, b"x" * 100)] * 5000,
}


@pytest.mark.parametrize("name", FLOODS)
async def test_a_flood_of_frames_disturbs_nobody(tmp_path: Path, name: str) -> None:
    async with OPENED["stack"](Settings({}, tmp_path, tmp_path, tmp_path)) as service:
        token = home_token(tmp_path)
        entrance = Entrance(Listener("127.0.0.1:0", ListenerKind.LOOPBACK), token, 2**20)
        async with (
            serving(service.register, service.names, [entrance], 0) as (address,),
            grpc.aio.insecure_channel(address) as channel,
        ):
            host, _, port = address.rpartition(":")
            flooding = [asyncio.create_task(flood(host, int(port), FLOODS[name])) for _ in range(5)]
            call: Any = channel.unary_unary("/pkger.stack.v1.StackService/ListStacks", request_serializer=bytes)
            for _ in range(50):
                assert isinstance(await call(b"", metadata=[("authorization", f"Bearer {token.token()}")]), bytes)
            await asyncio.gather(*flooding)
            await call(b"", metadata=[("authorization", f"Bearer {token.token()}")])


async def flood(host: str, port: int, frames: list[bytes]) -> None:
    """Send frames until they are sent, or the server closes the connection."""
    _, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(PREFACE + frame(SETTINGS))
        for each in frames:
            writer.write(each)
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.transport.abort()


def a_check(stream: int) -> bytes:
    """A health check of the whole server, in two frames."""
    names = {
        ":path": "/grpc.health.v1.Health/Check",
        ":authority": "a",
        "te": "trailers",
        "content-type": "application/grpc",
    }
    pairs = (b"\0" + b"".join(bytes([len(each)]) + each.encode() for each in pair) for pair in names.items())
    return frame(HEADERS, b"\x83\x86" + b"".join(pairs), 4, stream) + frame(DATA, b"\0" * 5, 1, stream)


async def test_checks_of_a_client_that_accepts_no_bytes_count_until_it_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """gRPC keeps each of them, and has room for so many calls of all clients."""
    monkeypatch.setattr(door, "MOST_HEALTH_CHECKS", 5)
    async with OPENED["stack"](Settings({}, tmp_path, tmp_path, tmp_path)) as service:
        entrance = Entrance(Listener("127.0.0.1:0", ListenerKind.LOOPBACK), home_token(tmp_path))
        async with (
            serving(service.register, service.names, [entrance], 0) as (address,),
            grpc.aio.insecure_channel(address) as channel,
            asyncio.timeout(60),
        ):
            host, _, port = address.rpartition(":")
            _, writer = await asyncio.open_connection(host, int(port))
            writer.write(PREFACE + frame(SETTINGS, struct.pack(">HI", 4, 0)))
            writer.writelines(a_check(2 * number + 1) for number in range(5))
            await until(channel, grpc.StatusCode.RESOURCE_EXHAUSTED)
            writer.transport.abort()
            await until(channel, grpc.StatusCode.OK)


async def until(channel: grpc.aio.Channel, code: grpc.StatusCode) -> None:
    """Check the health of a server until that is the status."""
    check: Any = channel.unary_stream("/grpc.health.v1.Health/Check", request_serializer=bytes)
    while await ended(check(b"")) is not code:
        pass
