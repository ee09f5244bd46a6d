"""The dispatcher around the calls of servicers, without a gRPC server."""

import asyncio
import logging
from collections.abc import AsyncIterator

import grpc
import pytest
from pkger.driver.v1 import driver_pb2
from pkger.stack.v1 import stack_pb2

from services.core.errors import Internal, PlatformUnknown, RequestInvalid, ServiceUnavailable, StackNotFound
from services.rpc.call import LONGEST_CALL_SECONDS, REQUEST_ID_KEY, deadline, loop_time, request_id
from services.rpc.client import Peer
from services.rpc.dispatcher import NO_RETRY, STOPPING, Dispatcher
from services.rpc.server import Register
from tests.rpc.in_memory import Aborted, Network, Numbered, ServedCall
from tests.rpc.plumbing import Context, answer, get, list_resources, registered

GET = "/pkger.stack.v1.StackService/GetStack"


def peer_of(register: list[Register]) -> tuple[Peer, Dispatcher]:
    """A dispatcher and a client of it; only bytes pass between them."""
    network, dispatcher = Network(), Dispatcher(register, ids=Numbered("b"))
    network.serve("here", dispatcher)
    return Peer("other", "here", connect=network.connect), dispatcher


async def hello(request: stack_pb2.GetStackRequest, context: Context) -> stack_pb2.GetStackResponse:
    return answer(f"hello {request.stack.id}")


async def test_handlers_have_the_names_of_their_methods() -> None:
    methods = Dispatcher(registered(hello)).handlers
    assert GET in methods
    assert methods["/pkger.driver.v1.DriverService/ListResources"].response_streaming
    assert not methods[GET].response_streaming


async def test_a_call_passes_as_bytes_and_back() -> None:
    peer, _ = peer_of(registered(hello))
    assert (await get(peer, "you")).name == "hello you"


async def test_an_error_of_the_core_is_a_status_that_the_client_reads() -> None:
    async def missing(request: stack_pb2.GetStackRequest, context: Context) -> stack_pb2.GetStackResponse:
        raise StackNotFound(request.stack.id)

    peer, _ = peer_of(registered(missing))
    with pytest.raises(StackNotFound) as raised:
        await get(peer, "gone")
    assert raised.value.metadata == {"stack": "gone"}


async def test_an_unreachable_service_is_not_retried_at_each_hop() -> None:
    async def away(request: object, context: Context) -> stack_pb2.GetStackResponse:
        raise ServiceUnavailable("stack", "there", "no connection")

    handler, call = Dispatcher(registered(away)).handlers[GET], ServedCall()
    with pytest.raises(Aborted) as raised:
        await served(handler, call)
    assert raised.value.code is grpc.StatusCode.UNAVAILABLE
    assert NO_RETRY in raised.value.trailing


async def test_a_defect_is_returned_without_details_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(request: object, context: Context) -> stack_pb2.GetStackResponse:
        raise KeyError("a secret")

    peer, _ = peer_of(registered(broken))
    with pytest.raises(Internal) as raised:
        await get(peer)
    assert "secret" not in f"{raised.value} {raised.value.metadata}"
    assert [record.message for record in caplog.records if record.exc_info] == ["call failed"]


async def test_the_request_id_is_that_of_the_caller_or_drawn() -> None:
    seen: list[str] = []

    async def note(request: object, context: Context) -> stack_pb2.GetStackResponse:
        seen.append(request_id.get())
        return answer("noted")

    handler = Dispatcher(registered(note), ids=Numbered("b")).handlers[GET]
    calls = [ServedCall([(REQUEST_ID_KEY, "r-1")]), ServedCall(), ServedCall()]
    for call in calls:
        await served(handler, call)
    assert seen == ["r-1", f"b{1:031x}", f"b{2:031x}"]
    assert [dict(call.trailing)[REQUEST_ID_KEY] for call in calls] == seen


@pytest.mark.parametrize("usable", ["r", "r" * 128, "Root=1-67891233:abc/def_0.9+x==", "0f" * 16])
async def test_a_usable_request_id_is_kept(usable: str) -> None:
    assert await request_id_of(usable) == usable


@pytest.mark.parametrize("sent", ["", "r" * 129, "r" * 5000, "a b", "a\n", 'a"', "a\x1b[31m", "é", "٣", "r;", b"raw"])
async def test_another_request_id_is_replaced(sent: str | bytes) -> None:
    """Each service that works for the call writes it into every line of its log."""
    assert await request_id_of(sent) == f"b{1:031x}"


async def request_id_of(sent: str | bytes) -> str:
    """The request id of a call whose caller *sent* one: as the servicer sees it, and as it is returned."""
    seen: list[str] = []

    async def note(request: object, context: Context) -> stack_pb2.GetStackResponse:
        seen.append(request_id.get())
        return answer("noted")

    call = ServedCall([(REQUEST_ID_KEY, sent)])
    await served(Dispatcher(registered(note), ids=Numbered("b")).handlers[GET], call)
    assert [dict(call.trailing)[REQUEST_ID_KEY]] == seen
    return seen[0]


@pytest.mark.parametrize("method", [GET, "/pkger.driver.v1.DriverService/ListResources"])
async def test_bytes_that_are_no_message_are_an_invalid_request(method: str, caplog: pytest.LogCaptureFixture) -> None:
    peer, dispatcher = peer_of(registered(hello))
    with caplog.at_level(logging.INFO), pytest.raises(RequestInvalid) as raised:
        await peer.call(peer.channel.unary_unary(method, request_serializer=bytes), b"\xff")
    assert str(raised.value) == (
        f"request: its bytes are no message of {method}; encode it by the protos of the service"
    )
    [line] = caplog.records
    assert (line.message, line.__dict__["code"], line.exc_info) == ("call", "REQUEST_INVALID", None)
    assert dispatcher.idle.is_set()


async def test_the_deadline_is_by_the_clock_of_the_loop() -> None:
    left: list[float] = []

    async def note(request: object, context: Context) -> stack_pb2.GetStackResponse:
        left.append(deadline.get() - loop_time())
        return answer("noted")

    handler = Dispatcher(registered(note)).handlers[GET]
    for call in (ServedCall(seconds=3600), ServedCall()):
        await served(handler, call)
    assert 3500 < left[0] <= 3600
    assert LONGEST_CALL_SECONDS - 10 < left[1] <= LONGEST_CALL_SECONDS


async def test_a_call_without_an_answer_ends_at_its_deadline(caplog: pytest.LogCaptureFixture) -> None:
    async def never(request: object, context: Context) -> stack_pb2.GetStackResponse:
        await asyncio.Event().wait()
        return answer("never")

    peer, dispatcher = peer_of(registered(never))
    with caplog.at_level(logging.INFO, "pkger.rpc"):
        with pytest.raises(ServiceUnavailable, match="no answer in time"):
            await get(peer, seconds=0.01)
        await dispatcher.idle.wait()
    assert [record.__dict__["code"] for record in caplog.records if record.message == "call"] == ["CANCELLED"]


async def test_a_dispatcher_that_stops_refuses_new_calls_and_is_idle_after_the_last() -> None:
    called, release = asyncio.Event(), asyncio.Event()

    async def slow(request: stack_pb2.GetStackRequest, context: Context) -> stack_pb2.GetStackResponse:
        called.set()
        await release.wait()
        return answer("done")

    peer, dispatcher = peer_of(registered(slow))
    assert dispatcher.idle.is_set()
    first = asyncio.create_task(get(peer))
    await called.wait()
    dispatcher.refuse_new = True
    assert not dispatcher.idle.is_set()
    with pytest.raises(Aborted, match=STOPPING):
        await served(dispatcher.handlers[GET], ServedCall())
    release.set()
    assert (await first).name == "done"
    await dispatcher.idle.wait()


async def test_a_stream_comes_message_by_message_up_to_its_error() -> None:
    sent: list[int] = []

    async def two(request: object, context: Context) -> AsyncIterator[driver_pb2.ListResourcesResponse]:
        for number in range(2):
            sent.append(number)
            yield driver_pb2.ListResourcesResponse()
        raise PlatformUnknown("moon", ["embedded"])

    peer, _ = peer_of(registered(resources=two))
    answers = list_resources(peer)
    for _ in range(2):
        await anext(answers)
    with pytest.raises(PlatformUnknown, match="moon"):
        await anext(answers)
    assert sent == [0, 1]


async def test_a_caller_that_leaves_a_stream_cancels_its_handler() -> None:
    async def endless(request: object, context: Context) -> AsyncIterator[driver_pb2.ListResourcesResponse]:
        while True:
            yield driver_pb2.ListResourcesResponse()
            await asyncio.sleep(0)

    peer, dispatcher = peer_of(registered(resources=endless))
    answers = list_resources(peer)
    await anext(answers)
    assert not dispatcher.idle.is_set()
    await answers.aclose()
    await dispatcher.idle.wait()


async def served(handler: "grpc.RpcMethodHandler[stack_pb2.GetStackRequest, object]", call: ServedCall) -> None:
    """Let a handler serve *call* in a task, as transports do."""
    behaviour: Context = handler.unary_unary
    await asyncio.create_task(behaviour(stack_pb2.GetStackRequest(), call))
