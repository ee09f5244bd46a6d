"""How services serve: health, reflection, stopping, defects, one log line per call."""

import asyncio
import io
import logging
import struct
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import orjson
import pytest
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub
from grpc_reflection.v1alpha.reflection_pb2 import ServerReflectionRequest
from grpc_reflection.v1alpha.reflection_pb2_grpc import ServerReflectionStub
from pkger.driver.v1 import driver_pb2
from pkger.driver.v1.driver_pb2_grpc import DriverServiceStub
from pkger.stack.v1 import stack_pb2

from services.access.listeners import Listener, ListenerKind
from services.access.token_file import home_token
from services.core.errors import Internal, RequestInvalid, ServiceUnavailable, StackNotFound
from services.rpc import server
from services.rpc.client import Peer
from services.rpc.entrances import Entrance
from services.rpc.errors import from_rpc
from services.rpc.log import JsonFormatter
from tests.rpc.plumbing import SERVICES, Context, answer, get, list_resources, peer_of, served
from tests.samples import slow


async def hello(request: object, context: Context) -> stack_pb2.GetStackResponse:
    return answer("hello")


@pytest.mark.parametrize("service", ["", *SERVICES])
async def test_every_service_and_the_server_are_healthy(service: str) -> None:
    async with peer_of(hello) as peer:
        answered = await HealthStub(peer.channel).Check(HealthCheckRequest(service=service))

    assert answered.status == HealthCheckResponse.SERVING


SERVER_WITH_A_LONG_STOP = """
import asyncio, sys
from services.rpc.server import serving
from tests.transport import socket_entrance

async def drain():
    await asyncio.to_thread(sys.stdin.readline)

async def serve():
    async with serving([], [], [socket_entrance(sys.argv[1])], drain=drain) as addresses:
        print(*addresses, flush=True)

asyncio.run(serve())
"""


async def test_a_stopping_server_says_nothing_of_late_calls(tmp_path: Path) -> None:
    arguments = ("-c", SERVER_WITH_A_LONG_STOP, f"unix:{tmp_path}/socket")
    process = await asyncio.create_subprocess_exec(sys.executable, *arguments, stdin=PIPE, stdout=PIPE, stderr=PIPE)
    assert process.stdout
    address = (await process.stdout.readline()).decode().strip()
    async with grpc.aio.insecure_channel(address) as channel:
        watches = [HealthStub(channel).Watch(HealthCheckRequest()) for _ in range(200)]
        states = [(await watch.read()).status for watch in watches]
        ended = await process.communicate(b"stop\n")
    assert states == [HealthCheckResponse.NOT_SERVING] * 200
    assert (process.returncode, ended) == (0, (b"", b""))


async def test_a_stopping_server_refuses_new_calls_and_finishes_those_in_flight() -> None:
    called, stop, release = asyncio.Event(), asyncio.Event(), asyncio.Event()
    address: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def slow(request: object, context: Context) -> stack_pb2.GetStackResponse:
        called.set()
        await release.wait()
        return answer("done")

    async def serve() -> None:
        async with served(slow, grace=30) as bound:
            address.set_result(bound)
            await stop.wait()

    server = asyncio.create_task(serve())
    peer = Peer("other", await address)
    watch = HealthStub(peer.channel).Watch(HealthCheckRequest())
    assert (await watch.read()).status == HealthCheckResponse.SERVING
    call = asyncio.create_task(get(peer))
    await called.wait()

    stop.set()
    assert (await watch.read()).status == HealthCheckResponse.NOT_SERVING
    assert not server.done()
    with pytest.raises(grpc.aio.AioRpcError, match="the server is stopping"):
        await DriverServiceStub(peer.channel).Describe(driver_pb2.DescribeRequest())
    # The open watch must not delay the stop.
    release.set()

    assert (await call).name == "done"
    await server
    await peer.close()


@pytest.mark.parametrize(("shortest_ms", "stays"), [slow(50, True), slow(10_000, False)])
async def test_a_client_may_ping_without_calls_but_not_too_often(
    shortest_ms: int, stays: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client pings once a second, the most that gRPC allows; the server accepts it, or ends the connection."""
    monkeypatch.setattr(server, "SHORTEST_PING_MS", shortest_ms)
    options = [
        ("grpc.keepalive_time_ms", 100),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.use_local_subchannel_pool", 1),
    ]
    async with served(hello) as address, grpc.aio.insecure_channel(address, options=options) as channel:
        await channel.channel_ready()
        left = asyncio.create_task(channel.wait_for_state_change(grpc.ChannelConnectivity.READY))
        await asyncio.wait([left], timeout=5 if stays else 30)
        assert left.done() is not stays
        left.cancel()


@pytest.mark.parametrize("sent", [b"", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"], ids=["silent", "idle"])
async def test_a_connection_without_calls_is_closed(
    sent: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is an open file, and anybody can open many."""
    monkeypatch.setattr(server, "HANDSHAKE_MS" if sent == b"" else "LONGEST_IDLE_MS", 100)
    entrance = Entrance(Listener("127.0.0.1:0", ListenerKind.LOOPBACK), home_token(tmp_path))
    async with server.serving([], [], [entrance], 0) as (address,), asyncio.timeout(30):
        host, _, port = address.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(sent)
        # Returns when the server closes the connection.
        received = await reader.read()
        assert (b"idle" if sent else b"Did not receive") in received
        # SETTINGS_MAX_CONCURRENT_STREAMS, in the first frame.
        assert struct.pack(">HI", 3, server.MOST_CALLS_OF_CONNECTION) in received
        writer.close()


def test_a_ping_every_ten_seconds_is_allowed() -> None:
    assert server.SHORTEST_PING_MS <= 9_000


async def test_a_stopped_server_does_not_answer() -> None:
    async with peer_of(hello) as peer:
        address = peer.address
    async with grpc.aio.insecure_channel(address) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await HealthStub(channel).Check(HealthCheckRequest())

    assert raised.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_reflection_lists_the_services() -> None:
    async with peer_of(hello) as peer:
        call = ServerReflectionStub(peer.channel).ServerReflectionInfo(
            iter([ServerReflectionRequest(list_services="")])
        )
        listed = {service.name for service in (await call.read()).list_services_response.service}
        call.cancel()

    assert listed == {*SERVICES, "grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection"}


async def test_a_server_listens_on_a_unix_socket(tmp_path: Path) -> None:
    async with peer_of(hello, listen=f"unix:{tmp_path}/socket") as peer:
        assert peer.address == f"unix:{tmp_path}/socket"
        assert (await get(peer)).name == "hello"


async def test_a_defect_is_returned_without_details_and_logged_with_its_trace() -> None:
    async def broken(request: object, context: Context) -> stack_pb2.GetStackResponse:
        raise KeyError("a secret")

    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(JsonFormatter())
    logging.getLogger("pkger.rpc").addHandler(handler)
    try:
        async with peer_of(broken) as peer:
            with pytest.raises(Internal) as raised:
                await get(peer)
    finally:
        logging.getLogger("pkger.rpc").removeHandler(handler)

    assert "secret" not in f"{raised.value} {raised.value.metadata}"
    (trace,) = [line["trace"] for line in map(orjson.loads, written.getvalue().splitlines()) if "trace" in line]
    assert "a secret" in trace
    assert "test_server.py" in trace


async def test_a_defect_in_the_middle_of_a_stream_is_returned_too(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(request: object, context: Context) -> AsyncIterator[driver_pb2.ListResourcesResponse]:
        yield driver_pb2.ListResourcesResponse()
        raise KeyError("a secret")

    async with peer_of(resources=broken) as peer:
        answers = list_resources(peer)
        await anext(answers)
        with pytest.raises(Internal):
            await anext(answers)

    assert any(record.exc_info for record in caplog.records)


METHODS = [
    "/pkger.stack.v1.StackService/GetStack",
    "/pkger.driver.v1.DriverService/ListResources",
    "/grpc.health.v1.Health/Check",
    "/grpc.health.v1.Health/Watch",
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
]


@pytest.mark.parametrize("method", METHODS)
async def test_bytes_that_are_no_message_are_an_invalid_request_and_one_log_line(
    method: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Otherwise anybody who can connect fills the log with tracebacks."""
    async with peer_of(hello) as peer:
        caplog.set_level(logging.INFO)
        send: Any = peer.channel.stream_stream(method)
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await send(iter([b"\xff"])).read()
    assert raised.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    error = from_rpc(raised.value, "other", peer.address)
    assert isinstance(error, RequestInvalid)
    assert error.metadata["problem"].startswith(f"its bytes are no message of {method}")
    [line] = [record for record in caplog.records if record.name != "asyncio"]
    assert (line.message, line.__dict__["method"], line.__dict__["code"]) == ("call", method, "REQUEST_INVALID")
    assert len(JsonFormatter().format(line)) < 400


async def test_every_call_is_one_log_line_with_method_outcome_and_duration(caplog: pytest.LogCaptureFixture) -> None:
    async def missing(request: stack_pb2.GetStackRequest, context: Context) -> stack_pb2.GetStackResponse:
        raise StackNotFound(request.stack.id)

    async def nothing(request: object, context: Context) -> AsyncIterator[driver_pb2.ListResourcesResponse]:
        for _ in ():
            yield driver_pb2.ListResourcesResponse()

    with caplog.at_level(logging.INFO, "pkger.rpc"):
        async with peer_of(missing, resources=nothing) as peer:
            with pytest.raises(StackNotFound):
                await get(peer, "gone")
            assert [response async for response in list_resources(peer)] == []

    lines = [orjson.loads(JsonFormatter().format(record)) for record in caplog.records if record.message == "call"]
    assert [(line["method"], line["code"]) for line in lines] == [
        ("/pkger.stack.v1.StackService/GetStack", "STACK_NOT_FOUND"),
        ("/pkger.driver.v1.DriverService/ListResources", "OK"),
    ]
    assert all(line["duration_ms"] >= 0 and line["peer"] and line["level"] == "info" for line in lines)


async def test_a_caller_that_gave_up_is_logged_as_cancelled(caplog: pytest.LogCaptureFixture) -> None:
    ended = asyncio.Event()

    async def never(request: object, context: Context) -> stack_pb2.GetStackResponse:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return answer("never")

    with caplog.at_level(logging.INFO, "pkger.rpc"):
        async with peer_of(never) as peer:
            with pytest.raises(ServiceUnavailable):
                await get(peer, seconds=0.05)
            await asyncio.wait_for(ended.wait(), 10)

    assert [record.__dict__["code"] for record in caplog.records if record.message == "call"] == ["CANCELLED"]
