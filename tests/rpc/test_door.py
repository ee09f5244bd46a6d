"""The door of a server: real calls over each kind of listener, with and without tokens."""

import asyncio
import gc
import logging
import weakref
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub
from grpc_reflection.v1alpha.reflection_pb2_grpc import ServerReflectionStub
from pkger.applier.v1 import applier_pb2
from pkger.driver.v1 import driver_pb2
from pkger.model.v1 import object_pb2
from pkger.stack.v1 import stack_pb2

from services.access.authentication import Caller, Refusal
from services.access.listeners import Listener, ListenerKind
from services.access.token_file import TokenFile, home_token, rotate_home_token
from services.access.tokens import new_token
from services.core.errors import RequestInvalid, ServiceUnavailable, TooManyCalls, Unauthenticated
from services.rpc import door
from services.rpc.call import ENDLESS, caller
from services.rpc.client import Peer
from services.rpc.entrances import Entrance
from services.rpc.errors import from_rpc
from services.rpc.sent_token import SentToken, no_token
from services.rpc.server import serving
from services.system import MachineIds
from tests.rpc.plumbing import SERVICES, Context, Get, List, answer, get, list_resources, registered

OTHER = new_token(MachineIds())

PORTS = (ListenerKind.LOOPBACK, ListenerKind.NETWORK)


async def hello(request: object, context: Context) -> stack_pb2.GetStackResponse:
    """Answer with the caller."""
    return answer(f"{caller.get().principal} {caller.get().token_id}")


@asynccontextmanager
async def listening(
    kind: ListenerKind, folder: Path, get: Get = hello, resources: List | None = None, message_bytes: int = 2**20
) -> AsyncIterator[tuple[str, TokenFile]]:
    """A server behind a door of that kind; its address, and the token that it accepts."""
    token = home_token(folder)
    at = f"unix:{folder}/socket" if kind is ListenerKind.SOCKET else "127.0.0.1:0"
    entrance = Entrance(Listener(at, kind), token, message_bytes)
    async with serving(registered(get, None, resources), SERVICES, [entrance], 0) as (address,):
        yield address, token


def peer(address: str, token: SentToken) -> Peer:
    return Peer("other", address, token=token)


@pytest.mark.parametrize(
    ("kind", "name"),
    [(ListenerKind.LOOPBACK, "local"), (ListenerKind.NETWORK, "operator")],
    ids=["loopback", "network"],
)
async def test_a_port_admits_its_token_and_knows_the_caller(tmp_path: Path, kind: ListenerKind, name: str) -> None:
    async with listening(kind, tmp_path) as (address, token), peer(address, token.token) as client:
        assert (await get(client)).name == f"{name} {token.token()[5:21]}"


async def test_a_socket_admits_everybody_who_can_open_it(tmp_path: Path) -> None:
    async with listening(ListenerKind.SOCKET, tmp_path) as (address, _), peer(address, no_token) as client:
        assert (await get(client)).name == "local "


@pytest.mark.parametrize("kind", PORTS)
@pytest.mark.parametrize("sent", [no_token, lambda: OTHER], ids=["none", "other"])
async def test_a_port_refuses_all_others_with_one_text(tmp_path: Path, kind: ListenerKind, sent: SentToken) -> None:
    async with listening(kind, tmp_path, resources=endless) as (address, _), peer(address, sent) as client:
        for call in (get(client), anext(list_resources(client)), reflected(client)):
            with pytest.raises(Unauthenticated, match="no valid token"):
                await call


async def endless(request: object, context: Context) -> AsyncIterator[driver_pb2.ListResourcesResponse]:
    while True:
        yield driver_pb2.ListResourcesResponse(resources=[object_pb2.Resource(id="x" * 100_000)])


async def reflected(client: Peer) -> None:
    """
    Call reflection as ``Peer`` would, for a refusal: nothing is written, as a write to a call that has just ended fails
    with a status of the client.
    """
    call = ServerReflectionStub(client.channel).ServerReflectionInfo(timeout=60, metadata=client._metadata())
    try:
        await call.read()
    except grpc.aio.AioRpcError as error:
        raise from_rpc(error, client.name, client.address) from error


async def test_a_rotated_token_is_refused_at_once(tmp_path: Path) -> None:
    async with listening(ListenerKind.LOOPBACK, tmp_path) as (address, token):
        before = token.token()
        rotate_home_token(tmp_path)
        async with peer(address, lambda: before) as client, peer(address, token.token) as other:
            with pytest.raises(Unauthenticated):
                await get(client)
            assert (await get(other)).name.startswith("local ")


async def test_without_its_file_a_port_admits_nobody(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with listening(ListenerKind.LOOPBACK, tmp_path) as (address, token):
        kept = token.token()
        token.path.chmod(0o644)
        async with peer(address, lambda: kept) as client:
            for _ in range(3):
                with pytest.raises(Unauthenticated):
                    await get(client)
            token.path.chmod(0o600)
            assert (await get(client)).name.startswith("local ")
    assert [each.getMessage() for each in caplog.records if "token is accepted" in each.getMessage()] == [
        f"no token is accepted: other users of this machine may read {token.path}; run chmod 600 on it, and replace the"
        " token in it, which somebody may have read",
        "the token is accepted again",
    ]


async def test_a_refused_message_is_not_read(tmp_path: Path) -> None:
    """Else the message would be refused for its size."""
    options = [("grpc.max_send_message_length", -1)]
    async with (
        listening(ListenerKind.LOOPBACK, tmp_path, message_bytes=1000) as (address, _),
        grpc.aio.insecure_channel(address, options=options) as channel,
    ):
        send: Any = channel.unary_unary("/pkger.stack.v1.StackService/GetStack", request_serializer=bytes)
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await send(b"x" * 60 * 2**20)
    assert raised.value.code() is grpc.StatusCode.UNAUTHENTICATED


async def test_bytes_above_the_limit_of_a_port_are_refused(tmp_path: Path) -> None:
    async with (
        listening(ListenerKind.LOOPBACK, tmp_path) as (address, token),
        grpc.aio.insecure_channel(address) as channel,
    ):
        send: Any = channel.unary_unary("/pkger.stack.v1.StackService/GetStack", request_serializer=bytes)
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await send(b"x" * 2**21, metadata=[("authorization", f"Bearer {token.token()}")])
    assert raised.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_a_call_without_a_message_is_refused(tmp_path: Path) -> None:
    async with listening(ListenerKind.SOCKET, tmp_path) as (address, _), grpc.aio.insecure_channel(address) as channel:
        call: Any = channel.stream_unary("/pkger.stack.v1.StackService/GetStack", request_serializer=bytes)(iter(()))
        with pytest.raises(grpc.aio.AioRpcError, match="the call has no message"):
            await call


@pytest.mark.parametrize("kind", PORTS)
async def test_health_is_open_and_watching_it_is_bounded(tmp_path: Path, kind: ListenerKind) -> None:
    async with listening(kind, tmp_path) as (address, token), grpc.aio.insecure_channel(address) as channel:
        stub = HealthStub(channel)
        assert (await stub.Check(HealthCheckRequest())).status == HealthCheckResponse.SERVING
        watches = [stub.Watch(HealthCheckRequest()) for _ in range(door.MOST_HEALTH_WATCHES)]
        for watch in watches:
            assert (await watch.read()).status == HealthCheckResponse.SERVING
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await stub.Watch(HealthCheckRequest()).read()
        assert raised.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        own = stub.Watch(HealthCheckRequest(), metadata=[("authorization", f"Bearer {token.token()}")])
        assert (await own.read()).status == HealthCheckResponse.SERVING
        assert (await stub.Check(HealthCheckRequest())).status == HealthCheckResponse.SERVING


async def test_health_checks_without_a_message_take_no_place_of_other_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody without a token could keep everybody else away."""
    monkeypatch.setattr(door, "MOST_HEALTH_CHECKS", 3)
    monkeypatch.setattr(door, "MOST_CALLS_OF_LISTENER", 3)
    async with (
        listening(ListenerKind.LOOPBACK, tmp_path) as (address, token),
        grpc.aio.insecure_channel(address) as channel,
        peer(address, token.token) as client,
    ):
        waiting = [open_check(channel) for _ in range(3)]
        for call in waiting:
            await call.wait_for_connection()
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await HealthStub(channel).Check(HealthCheckRequest())
        assert raised.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert (await get(client)).name.startswith("local ")
        for call in waiting:
            call.cancel()


async def test_a_health_check_without_a_token_has_little_time_for_its_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door, "HEALTH_MESSAGE_SECONDS", 0.1)
    async with (
        listening(ListenerKind.LOOPBACK, tmp_path) as (address, _),
        grpc.aio.insecure_channel(address) as channel,
    ):
        call = open_check(channel)
        with pytest.raises(grpc.aio.AioRpcError, match="no message arrived"):
            await asyncio.wait_for(call.read(), 30)


def open_check(channel: grpc.aio.Channel) -> Any:
    """A health check whose message does not arrive."""
    return channel.stream_stream("/grpc.health.v1.Health/Check")()


async def test_calls_of_one_principal_at_a_loopback_port_are_bounded(tmp_path: Path) -> None:
    begun, release = asyncio.Semaphore(0), asyncio.Event()

    async def wait(request: object, context: Context) -> stack_pb2.GetStackResponse:
        begun.release()
        await release.wait()
        return answer("done")

    async with (
        listening(ListenerKind.LOOPBACK, tmp_path, wait) as (address, token),
        peer(address, token.token) as client,
    ):
        calls = [asyncio.create_task(get(client)) for _ in range(door.MOST_CALLS_OF_PRINCIPAL)]
        for _ in calls:
            await begun.acquire()
        with pytest.raises(TooManyCalls, match="local has 100 calls in flight"):
            await get(client)
        release.set()
        assert {each.name for each in await asyncio.gather(*calls)} == {"done"}
        assert (await get(client)).name == "done"


async def test_equal_refusals_are_one_line_and_their_number_later(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, later = asyncio.get_running_loop(), list[Callable[[], None]]()
    monkeypatch.setattr(loop, "call_later", lambda _, end, refusal: later.append(lambda: end(refusal)))
    refusals = door.Refusals("127.0.0.1:1")
    for refusal in (*[Refusal.NO_TOKEN] * 5, Refusal.UNKNOWN):
        refusals.add(refusal)
    for end in later:
        end()
    refusals.add(Refusal.NO_TOKEN)
    logged = [(each.__dict__["problem"], each.__dict__["calls"]) for each in caplog.records]
    assert logged == [("no token", 1), ("unknown token", 1), ("no token", 4), ("no token", 1)]
    assert all(each.levelno == logging.WARNING for each in caplog.records)


async def test_a_refused_token_of_a_service_is_not_blamed_on_its_caller(tmp_path: Path) -> None:
    async with listening(ListenerKind.NETWORK, tmp_path) as (address, _), peer(address, lambda: OTHER) as client:
        marker = caller.set(Caller("operator", "1"))
        with pytest.raises(ServiceUnavailable, match="PKGER_OPERATOR_TOKEN_FILE"):
            await get(client)
        caller.reset(marker)


async def test_no_token_is_sent_to_a_socket(tmp_path: Path) -> None:
    sent = list[str]()

    async def note(request: object, context: Context) -> stack_pb2.GetStackResponse:
        sent.extend(key for key, _ in context.invocation_metadata())
        return answer("")

    async with listening(ListenerKind.SOCKET, tmp_path, note) as (address, token), peer(address, token.token) as client:
        await get(client)
    assert "authorization" not in sent


async def test_a_client_that_stops_to_read_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would keep the response in memory, and the call in flight, for as long as it is connected."""
    ended = asyncio.Event()

    async def noted(request: object, context: Context) -> AsyncIterator[driver_pb2.ListResourcesResponse]:
        try:
            async for response in endless(request, context):
                yield response
        finally:
            ended.set()

    monkeypatch.setattr("services.rpc.door.LONGEST_CALL_SECONDS", 0.2)
    async with (
        listening(ListenerKind.SOCKET, tmp_path, resources=noted) as (address, _),
        grpc.aio.insecure_channel(address) as channel,
    ):
        method = "/pkger.driver.v1.DriverService/ListResources"
        call: Any = channel.unary_stream(method, request_serializer=bytes)(b"")
        await call.read()
        await asyncio.wait_for(ended.wait(), 30)
        with suppress(grpc.aio.AioRpcError):
            while await call.read() is not grpc.aio.EOF:
                pass
        assert await call.code() is grpc.StatusCode.DEADLINE_EXCEEDED


@pytest.mark.parametrize("kind", [ListenerKind.LOOPBACK, ListenerKind.SOCKET])
async def test_a_caller_at_a_port_learns_no_address(
    tmp_path: Path, kind: ListenerKind, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(request: object, context: Context) -> stack_pb2.GetStackResponse:
        raise ServiceUnavailable("planner", "unix:/secret/planner.sock", "no connection")

    async with listening(kind, tmp_path, fail) as (address, token), peer(address, token.token) as client:
        with pytest.raises(ServiceUnavailable, match=r"the planner service .*does not answer: no connection") as raised:
            await get(client)
    is_told = "secret" in f"{raised.value} {raised.value.metadata}"
    assert is_told is (kind is ListenerKind.SOCKET)
    problems = [record.__dict__.get("problem", "") for record in caplog.records]
    assert any("/secret/planner.sock" in problem for problem in problems) is not is_told


async def test_calls_at_a_port_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "MOST_CALLS_OF_LISTENER", 0)
    async with listening(ListenerKind.NETWORK, tmp_path) as (address, token), peer(address, token.token) as client:
        with pytest.raises(TooManyCalls, match="this address has 0 calls in flight"):
            await get(client)


async def test_a_socket_that_others_may_have_made_is_not_called(tmp_path: Path) -> None:
    async with listening(ListenerKind.SOCKET, tmp_path) as (address, _), peer(address, no_token) as client:
        tmp_path.chmod(0o755)
        with pytest.raises(ServiceUnavailable, match="other users of this machine may enter the folder"):
            await get(client)
        async with Peer("platform", address, platform="far", is_of_others=True) as driver:
            assert (await get(driver)).name == "local "


@pytest.mark.parametrize("streams", [False, True])
async def test_a_refused_call_keeps_nothing(tmp_path: Path, streams: bool) -> None:
    """Without a collection of cyclic garbage: services run it seldom."""

    class Large:
        pass

    values = list[weakref.ref[Large]]()

    async def refuse(request: object, context: Context) -> stack_pb2.GetStackResponse:
        large = Large()
        values.append(weakref.ref(large))
        raise RequestInvalid("name", "is taken")

    async def refuse_later(request: object, context: Context) -> AsyncIterator[driver_pb2.ListResourcesResponse]:
        yield driver_pb2.ListResourcesResponse()
        await refuse(request, context)

    gc.collect()
    gc.disable()
    try:
        async with (
            listening(ListenerKind.SOCKET, tmp_path, refuse, refuse_later) as (address, _),
            peer(address, no_token) as client,
        ):
            for _ in range(3):
                with suppress(RequestInvalid):
                    if streams:
                        _ = [each async for each in list_resources(client)]
                    await get(client)
        assert [value() for value in values] == [None] * 3
    finally:
        gc.enable()


def test_only_watches_and_operations_have_no_longest_time() -> None:
    """The streams of ``OperationEvent``, of an import that runs, and of watches, as the contracts declare them."""
    methods = {
        f"/{service.full_name}/{method.name}"
        for file in (applier_pb2, stack_pb2)
        for service in file.DESCRIPTOR.services_by_name.values()
        for method in service.methods
        if method.output_type.name in ("OperationEvent", "ImportResourcesResponse") or method.name.startswith("Watch")
    }
    assert {each for each in ENDLESS if not each.startswith("/grpc.")} == methods
