"""Calls between services: the context that they pass on, their retries, their failures."""

import asyncio
import importlib
import math
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast

import grpc
import pytest
from google.protobuf.descriptor import FileDescriptor
from google.protobuf.descriptor_pb2 import MethodOptions
from pkger.driver.v1 import driver_pb2, driver_pb2_grpc
from pkger.model.v1 import object_pb2
from pkger.stack.v1 import stack_pb2, stack_pb2_grpc

from services.core.errors import ServiceUnavailable, SourceTooLarge, StackNotFound
from services.platforms import Platform
from services.rpc.call import MESSAGE_LIMIT, REQUEST_ID_KEY
from services.rpc.channel import PING_SECONDS, SAFE_METHODS, grpc_channel
from services.rpc.client import Peer, Platforms
from services.rpc.dispatcher import NO_RETRY
from services.rpc.server import SHORTEST_PING_MS
from services.times import Times
from tests.rpc.in_memory import InMemoryChannel, Network
from tests.rpc.plumbing import Context, answer, delete, get, list_resources, peer_of, served

MIB = 1024 * 1024

CALL = Times().call

ROUNDED = 1.01
"""gRPC sends the remaining time of a deadline with few digits, rounded up."""


PROTOS = Path(__file__).parents[2] / "protos"


def _files() -> Iterator[FileDescriptor]:
    for path in (PROTOS / "pkger").rglob("*.proto"):
        module = ".".join(path.relative_to(PROTOS).with_suffix("").parts)
        yield importlib.import_module(f"{module}_pb2").DESCRIPTOR


def test_safe_methods_are_idempotent_in_their_protos() -> None:
    safe = {
        service.full_name: {
            method.name
            for method in service.methods
            if method.GetOptions().idempotency_level in (MethodOptions.NO_SIDE_EFFECTS, MethodOptions.IDEMPOTENT)
        }
        for file in _files()
        for service in file.services_by_name.values()
    }

    assert len(safe) >= 6
    assert {service: set(methods) for service, methods in SAFE_METHODS.items()} == {
        service: methods for service, methods in safe.items() if methods
    }


async def test_a_safe_call_is_retried_until_the_server_answers() -> None:
    calls = 0

    async def away_twice(request: object, context: Context) -> stack_pb2.GetStackResponse:
        nonlocal calls
        calls += 1
        if calls < 3:
            await context.abort(grpc.StatusCode.UNAVAILABLE)
        return answer("here")

    async with peer_of(away_twice) as peer:
        assert (await get(peer)).name == "here"
    assert calls == 3


async def test_a_call_that_writes_is_sent_once() -> None:
    """It is unknown whether the first attempt took effect."""
    calls = 0

    async def away(request: object, context: Context) -> stack_pb2.DeleteStackResponse:
        nonlocal calls
        calls += 1
        await context.abort(grpc.StatusCode.UNAVAILABLE)
        return stack_pb2.DeleteStackResponse()

    async with peer_of(delete=away) as peer:
        with pytest.raises(ServiceUnavailable):
            await delete(peer)
    assert calls == 1


async def test_an_unreachable_server_is_named(tmp_path: Path) -> None:
    address = f"unix:{tmp_path}/nobody"
    peer = Peer("planner", address, times=Times(ready=0.1))

    with pytest.raises(ServiceUnavailable) as raised:
        await get(peer)

    assert raised.value.metadata == {"service": "planner", "address": address, "problem": "no connection"}
    await peer.close()


async def test_a_server_that_does_not_answer_in_time_is_named() -> None:
    async def never(request: object, context: Context) -> stack_pb2.GetStackResponse:
        await asyncio.Event().wait()
        return answer("never")

    async with peer_of(never) as peer:
        with pytest.raises(ServiceUnavailable) as raised:
            await get(peer, seconds=0.05)

        assert raised.value.metadata == {"service": "other", "address": peer.address, "problem": "no answer in time"}


async def test_a_platform_is_named_as_it_is_configured(tmp_path: Path) -> None:
    async with Platforms({"embedded": Platform("embedded", "", f"unix:{tmp_path}/nobody")}) as platforms:
        with pytest.raises(ServiceUnavailable, match="the platform 'embedded' at unix:") as raised:
            await get(platforms.driver("embedded"), seconds=0.1)

    assert (raised.value.metadata["service"], raised.value.metadata["platform"]) == ("platform", "embedded")


async def test_a_call_waits_for_a_server_that_restarts(tmp_path: Path) -> None:
    calls = 0

    async def count(request: object, context: Context) -> stack_pb2.DeleteStackResponse:
        nonlocal calls
        calls += 1
        return stack_pb2.DeleteStackResponse()

    address = f"unix:{tmp_path}/socket"
    async with Peer("other", address, times=Times(ready=30)) as peer:
        async with served(delete=count, listen=address):
            await delete(peer)
        async with asyncio.timeout(10):
            # A call on a connection of which the client does not yet know that it ended fails.
            await peer.channel.wait_for_state_change(grpc.ChannelConnectivity.READY)
            waiting = asyncio.create_task(delete(peer))
            while (state := peer.channel.get_state()) is not grpc.ChannelConnectivity.TRANSIENT_FAILURE:
                await peer.channel.wait_for_state_change(state)
        assert not waiting.done()
        async with served(delete=count, listen=address):
            await asyncio.wait_for(waiting, 10)

    assert calls == 2


@pytest.mark.parametrize(("ready", "seconds"), [(0.01, 3600.0), (0.01, math.inf), (3600.0, 0.01)])
async def test_the_wait_for_a_server_ends(ready: float, seconds: float) -> None:
    """It lasts at most *ready* seconds, and at most as long as the call may take."""
    peer = Peer("other", "nowhere", connect=Network().connect, times=Times(ready=ready))
    with pytest.raises(ServiceUnavailable, match="no connection"):
        await get(peer, seconds=seconds)


class ReadyAtOnce(InMemoryChannel):
    """A channel that connects as soon as it is asked."""

    async def channel_ready(self) -> None:
        pass


async def test_a_call_whose_time_passed_before_the_connection_is_not_sent() -> None:
    """A process that stood still finds both: the connection, and no time left."""
    peer = Peer("other", "somewhere", connect=partial(ReadyAtOnce, Network()))
    sent: list[object] = []

    async def method(*request: object, **more: object) -> Any:
        sent.append(request)

    with pytest.raises(ServiceUnavailable, match="no connection"):
        await peer.call(cast(Any, method), stack_pb2.GetStackRequest(), 0.0)
    assert sent == []


async def test_many_calls_can_wait_for_a_server(tmp_path: Path) -> None:
    """An abandoned wait leaves nothing behind that breaks the next one, or the end of the channel."""
    address = f"unix:{tmp_path}/socket"

    async def hello(request: object, context: Context) -> stack_pb2.GetStackResponse:
        return answer("hello")

    async with Peer("other", address, times=Times(ready=0.2)) as peer:
        ended = await asyncio.gather(*(get(peer) for _ in range(50)), return_exceptions=True)
        assert all(isinstance(error, ServiceUnavailable) for error in ended)
        async with served(hello, listen=address), asyncio.timeout(30):
            await peer.channel.channel_ready()
            assert (await get(peer)).name == "hello"


@asynccontextmanager
async def freezing(address: str) -> AsyncIterator[tuple[str, Callable[[], None]]]:
    """A proxy in front of *address*; returns its address, and a function after which it forwards nothing more."""
    pumps: list[asyncio.Task[None]] = []
    writers: list[asyncio.StreamWriter] = []

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while received := await reader.read(65536):
            writer.write(received)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        above, below = await asyncio.open_unix_connection(address.removeprefix("unix:"))
        writers.extend((writer, below))
        pumps.extend((asyncio.create_task(pump(reader, below)), asyncio.create_task(pump(above, writer))))

    def freeze() -> None:
        for task in pumps:
            task.cancel()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{listening.sockets[0].getsockname()[1]}", freeze
    finally:
        listening.close()
        freeze()
        for writer in writers:
            writer.close()
        await asyncio.gather(*pumps, return_exceptions=True)


async def test_a_server_that_hangs_ends_a_stream_without_deadline() -> None:
    """It neither answers nor disconnects, as if it were stopped by SIGSTOP or its network were gone."""

    async def endless(
        request: driver_pb2.ListResourcesRequest, context: Context
    ) -> AsyncIterator[driver_pb2.ListResourcesResponse]:
        yield driver_pb2.ListResourcesResponse()
        await asyncio.Event().wait()

    impatient = partial(grpc_channel, ping=0.1, pong=2.0)
    async with (
        served(resources=endless) as server,
        freezing(server) as (address, freeze),
        Peer("other", address, connect=impatient) as peer,
    ):
        stub = driver_pb2_grpc.DriverServiceStub(peer.channel)
        stream = peer.stream(stub.ListResources, driver_pb2.ListResourcesRequest(), math.inf)
        assert await anext(stream) == driver_pb2.ListResourcesResponse()
        freeze()
        with pytest.raises(ServiceUnavailable, match="other service") as raised:
            await anext(stream)
    cause = raised.value.__cause__
    assert isinstance(cause, grpc.aio.AioRpcError)
    assert cause.code() is grpc.StatusCode.UNAVAILABLE


def test_servers_accept_the_pings_of_clients() -> None:
    assert PING_SECONDS * 1000 >= 2 * SHORTEST_PING_MS


async def test_the_innermost_service_that_does_not_answer_is_named() -> None:
    """Through three hops, without retries of the outer ones."""
    calls = 0

    async def hangs(request: object, context: Context) -> stack_pb2.GetStackResponse:
        nonlocal calls
        calls += 1
        await asyncio.Event().wait()
        return answer("never")

    async with served(hangs) as third, Peer("third", third) as to_third:

        async def outer(request: object, context: Context) -> stack_pb2.GetStackResponse:
            return stack_pb2.GetStackResponse(stack=await get(to_third))

        async with served(outer) as second, Peer("second", second) as to_second:

            async def outermost(request: object, context: Context) -> stack_pb2.GetStackResponse:
                return stack_pb2.GetStackResponse(stack=await get(to_second))

            async with served(outermost) as first, Peer("first", first) as to_first:
                with pytest.raises(ServiceUnavailable) as raised:
                    await get(to_first, seconds=2)

    assert raised.value.metadata == {"service": "third", "address": third, "problem": "no answer in time"}
    assert calls == 1


async def test_a_downstream_call_has_the_deadline_of_its_caller() -> None:
    left: dict[str, float] = {}

    async def second(request: object, context: Context) -> stack_pb2.GetStackResponse:
        left["second"] = context.time_remaining()
        return answer("second")

    async with peer_of(second) as behind:

        async def first(request: object, context: Context) -> stack_pb2.GetStackResponse:
            left["first"] = context.time_remaining()
            return stack_pb2.GetStackResponse(stack=await get(behind))

        async with peer_of(first) as peer:
            await get(peer, seconds=7)
            assert 0 < left["second"] < left["first"] - 0.5

            await get(peer, seconds=CALL * 10)
            assert 0 < left["second"] <= CALL * ROUNDED < left["first"]

            await get(peer, seconds=math.inf)
            assert 0 < left["second"] <= CALL * ROUNDED


async def test_the_request_id_passes_from_service_to_service_and_back() -> None:
    seen: list[str] = []

    async def second(request: stack_pb2.GetStackRequest, context: Context) -> stack_pb2.GetStackResponse:
        seen.append(dict(context.invocation_metadata())[REQUEST_ID_KEY])
        raise StackNotFound(request.stack.id)

    async with peer_of(second) as behind:

        async def first(request: stack_pb2.GetStackRequest, context: Context) -> stack_pb2.GetStackResponse:
            return stack_pb2.GetStackResponse(stack=await get(behind, request.stack.id))

        async with peer_of(first) as peer:
            call = stack_pb2_grpc.StackServiceStub(peer.channel).GetStack(
                stack_pb2.GetStackRequest(stack=object_pb2.StackRef(id="gone")), metadata=((REQUEST_ID_KEY, "r-1"),)
            )
            with pytest.raises(grpc.aio.AioRpcError) as raised:
                await call

    assert seen == ["r-1"]
    assert raised.value.code() is grpc.StatusCode.NOT_FOUND
    assert dict(raised.value.trailing_metadata())[REQUEST_ID_KEY] == "r-1"


async def test_a_call_without_a_request_id_gets_one() -> None:
    async def hello(request: object, context: Context) -> stack_pb2.GetStackResponse:
        return answer("hello")

    async with peer_of(hello) as peer:
        stub = stack_pb2_grpc.StackServiceStub(peer.channel)
        calls = [stub.GetStack(stack_pb2.GetStackRequest()) for _ in range(2)]
        ids = {dict(await call.trailing_metadata())[REQUEST_ID_KEY] for call in calls}

    assert len(ids) == 2
    assert all(ids)


async def test_a_caller_that_leaves_a_stream_early_ends_it_at_the_server() -> None:
    ended = asyncio.Event()

    async def endless(request: object, context: Context) -> AsyncIterator[driver_pb2.ListResourcesResponse]:
        try:
            while True:
                yield driver_pb2.ListResourcesResponse()
                await asyncio.sleep(0)
        finally:
            ended.set()

    async with peer_of(resources=endless) as peer:
        answers = list_resources(peer)
        await anext(answers)
        await answers.aclose()
        await asyncio.wait_for(ended.wait(), 10)


FOREIGN = [code for code in grpc.StatusCode if code is not grpc.StatusCode.OK]


def check_foreign(error: ServiceUnavailable, code: grpc.StatusCode, address: str) -> None:
    """The error of a call that a server ended with a status without a reason."""
    named = {"service": "other", "address": address}
    if code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
        assert error.metadata == {**named, "problem": error.metadata["problem"]}
        assert str(error).startswith(f"the other service at {address} does not answer: no ")
    else:
        problem = f"the call ended with status {code.name}: not\nfound"
        assert error.metadata == {**named, "problem": problem, "answered": "true", "status": code.name}
        assert str(error) == f"the other service at {address} cannot serve the request: {problem}"


@pytest.mark.parametrize("code", FOREIGN)
async def test_any_status_of_a_call_names_the_service(code: grpc.StatusCode) -> None:
    async def end(request: object, context: Context) -> stack_pb2.DeleteStackResponse:
        await context.abort(code, "not\nfound")
        return stack_pb2.DeleteStackResponse()

    async with peer_of(delete=end) as peer:
        with pytest.raises(ServiceUnavailable) as raised:
            await delete(peer)
        check_foreign(raised.value, code, peer.address)


@pytest.mark.parametrize("messages", [0, 2])
@pytest.mark.parametrize("code", FOREIGN)
async def test_any_status_of_a_stream_names_the_service(code: grpc.StatusCode, messages: int) -> None:
    async def end(request: object, context: Context) -> AsyncIterator[driver_pb2.ListResourcesResponse]:
        for _ in range(messages):
            yield driver_pb2.ListResourcesResponse()
        await context.abort(code, "not\nfound", (NO_RETRY,))

    async with peer_of(resources=end) as peer:
        answers = list_resources(peer)
        for _ in range(messages):
            await anext(answers)
        with pytest.raises(ServiceUnavailable) as raised:
            await anext(answers)
        check_foreign(raised.value, code, peer.address)


@asynccontextmanager
async def hanging_call() -> AsyncIterator[tuple[Peer, asyncio.Task[stack_pb2.Stack]]]:
    """A peer, and a call to it that is being served and has no end."""
    called = asyncio.Event()

    async def hang(request: object, context: Context) -> stack_pb2.GetStackResponse:
        called.set()
        await asyncio.Event().wait()
        return answer("never")

    async with peer_of(hang) as peer:
        getting = asyncio.create_task(get(peer))
        await called.wait()
        yield peer, getting


async def test_the_end_of_a_channel_during_a_call_is_no_cancellation_of_its_caller() -> None:
    """A cancellation would pass as one of the caller, such as Ctrl-C."""
    async with hanging_call() as (peer, getting):
        await peer.close()
        with pytest.raises(ServiceUnavailable, match="the connection was closed"):
            await getting


async def test_a_cancelled_caller_is_cancelled() -> None:
    async with hanging_call() as (_, getting):
        getting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await getting


@pytest.mark.slow
async def test_a_message_of_30_mib_passes_both_ways() -> None:
    async def echo(request: stack_pb2.GetStackRequest, context: Context) -> stack_pb2.GetStackResponse:
        return answer(request.stack.id)

    text = "x" * (30 * MIB)
    async with peer_of(echo) as peer:
        assert (await get(peer, text)).name == text


@pytest.mark.slow
async def test_a_request_beyond_the_limit_is_refused() -> None:
    async def echo(request: stack_pb2.GetStackRequest, context: Context) -> stack_pb2.GetStackResponse:
        return answer("small")

    async with peer_of(echo) as peer:
        with pytest.raises(SourceTooLarge) as raised:
            await get(peer, "x" * (MESSAGE_LIMIT + 1))
        assert (await get(peer)).name == "small"

    assert raised.value.metadata["limit"] == str(MESSAGE_LIMIT)


@pytest.mark.slow
async def test_an_answer_beyond_the_limit_is_refused() -> None:
    async def huge(request: object, context: Context) -> stack_pb2.GetStackResponse:
        return answer("x" * (MESSAGE_LIMIT + 1))

    async with peer_of(huge) as peer:
        with pytest.raises(SourceTooLarge):
            await get(peer)


async def test_other_bounds_of_grpc_are_not_taken_for_the_size_of_a_message() -> None:
    """gRPC refuses large metadata with the code that it has for large messages."""

    async def large(request: object, context: Context) -> stack_pb2.GetStackResponse:
        await context.send_initial_metadata((("noise", "x" * 40_000),))
        return answer("here")

    async with peer_of(large) as peer:
        with pytest.raises(ServiceUnavailable, match="metadata"):
            await get(peer)
