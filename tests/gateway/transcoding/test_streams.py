"""Streams over HTTP: both forms, resumption, comments, errors, and clients that disconnect or do not read."""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import aiohttp
import grpc
import pytest
from pkger.model.v1 import operation_pb2

from services.core.errors import DeletesExceeded, ServiceUnavailable, StackLeased
from services.gateway.errors import Problem
from services.gateway.transcoding.streaming import Feed, NotRead, StreamLimits, form_for
from tests.cluster import Cluster
from tests.gateway.transcoding.api import BASE, Api, a_source, events_of
from tests.gateway.transcoding.scripted import APPLY, WATCH, a_change, an_event, scripted

EVENTS = {"Accept": "text/event-stream"}
LINES = {"Accept": "application/x-ndjson"}


@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        ("", "application/x-ndjson"),
        ("*/*", "application/x-ndjson"),
        ("application/*", "application/x-ndjson"),
        ("text/event-stream", "text/event-stream"),
        ("Text/Event-Stream; charset=utf-8", "text/event-stream"),
        ("text/*", "text/event-stream"),
        ("text/event-stream, */*", "text/event-stream"),
        ("application/x-ndjson, text/event-stream", "application/x-ndjson"),
        ("application/x-ndjson;q=0.5, text/event-stream", "text/event-stream"),
        ("application/x-ndjson;q=0, */*", "text/event-stream"),
        ("text/event-stream;q=x", "text/event-stream"),
        # What curl --json sends.
        ("application/json", "application/x-ndjson"),
        ("application/json, text/event-stream", "text/event-stream"),
        (",;", None),
        ("text/html, image/*;q=0.5", None),
        ("text/event-stream;q=0", None),
    ],
)
def test_the_form_is_what_the_client_accepts(accept: str, media_type: str | None) -> None:
    if media_type is not None:
        assert form_for(accept).media_type == media_type
        return
    with pytest.raises(Problem, match="application/x-ndjson or Accept: text/event-stream") as caught:
        form_for(accept)
    assert caught.value.status == 406


async def test_the_events_of_an_operation_are_resumed_in_both_forms(api: Api, services: Cluster) -> None:
    applied = await api.call("ApplierService_Apply", body={"package": a_source()}, headers=EVENTS)
    assert applied.headers["X-Accel-Buffering"] == "no"
    begun, *events = applied.documents
    assert ("begun" in begun, begun["seq"]) == (True, 0)
    name = begun["operation_id"]
    for headers, query in (
        (EVENTS, [("after_seq", "2")]),
        (LINES, [("after_seq", "2")]),
        ({**LINES, "Last-Event-ID": "2"}, []),
        # A browser repeats the first request, with the header in addition.
        ({**EVENTS, "Last-Event-ID": "2"}, [("after_seq", "1")]),
    ):
        resumed = await api.call("ApplierService_WatchOperation", name, query=query, headers=headers)
        assert resumed.documents == events[2:]
    target = f"{BASE}/operations/{name}/events"
    async with api.session.get(target, headers=EVENTS) as response:
        text = await response.read()
    assert text.startswith(b"retry: 2000\n\nid: 1\ndata: {")
    assert [(number, json.loads(data)) for number, data in events_of(text)] == [
        (str(each["seq"]), each) for each in events
    ]
    refused = await api.call("ApplierService_WatchOperation", name, headers={**EVENTS, "Last-Event-ID": "x"})
    assert (refused.status, refused.document["metadata"]["field"]) == (400, "Last-Event-ID")


async def test_a_browser_that_has_all_events_does_not_reconnect(api: Api) -> None:
    applied = await api.call("ApplierService_Apply", body={"package": a_source()})
    last = applied.documents[-1]
    headers = {**EVENTS, "Last-Event-ID": str(last["seq"])}
    assert (await api.call("ApplierService_WatchOperation", last["operation_id"], headers=headers)).status == 204


async def test_an_operation_continues_without_its_client(api: Api) -> None:
    async with api.session.post(f"{BASE}/packages:apply", json={"package": a_source()}, headers=EVENTS) as response:
        [(_, accepted), *_] = await received(response, 1)
        response.close()
    name = json.loads(accepted)["operation_id"]
    watched = await api.call("ApplierService_WatchOperation", name, headers=EVENTS)
    assert watched.documents[-1]["finished"]["state"] == "OPERATION_STATE_SUCCEEDED"


async def test_a_watch_of_a_stack_resumes_after_its_last_position(api: Api) -> None:
    made = (await api.call("StackService_CreateStack", body={"name": "fleet"})).document["stack"]
    target = f"{BASE}/stacks/{made['id']}:watch"
    async with api.session.get(target, headers=EVENTS) as response:
        [(position, first)] = await received(response, 1)
    assert json.loads(first)["stack"]["description"] == ""
    await api.call("StackService_UpdateStack", made["id"], body={"description": "new"})
    async with api.session.get(target, headers={**EVENTS, "Last-Event-ID": position}) as response:
        [(_, second)] = await received(response, 1)
    assert json.loads(second)["stack"]["description"] == "new"


async def received(response: aiohttp.ClientResponse, number: int) -> list[tuple[str, str]]:
    """The first events of a stream."""
    text = b""
    while len(events_of(text)) < number or not text.endswith(b"\n\n"):
        text += await response.content.readany()
    return events_of(text)


async def test_a_failure_before_the_first_message_is_an_ordinary_error() -> None:
    async def fails(request: Any, context: Any) -> AsyncIterator[Any]:
        raise StackLeased("fleet", "applier-2", "operation-1", "2026-01-01T00:00:00Z")
        yield

    async with scripted(watch=fails, apply=fails) as client:
        for answering in (client.get(WATCH, headers=EVENTS), client.post(APPLY, json={}, headers=LINES)):
            async with answering as response:
                body = await response.json()
                assert (response.status, body["code"], body["reason"]) == (422, "conflict", "STACK_LEASED")
                assert body["metadata"]["operation"] == "operation-1"
                assert "Retry-After" in response.headers


async def test_a_failure_before_the_plan_is_an_ordinary_error() -> None:
    async def refused(request: Any, context: Any) -> AsyncIterator[Any]:
        yield operation_pb2.OperationEvent(operation_id="operation-0", begun=operation_pb2.Begun())
        raise DeletesExceeded(2, 0, 1)

    async with scripted(apply=refused) as client, client.post(APPLY, json={}, headers=EVENTS) as response:
        assert (response.status, (await response.json())["reason"]) == (422, "DELETES_EXCEEDED")


@pytest.mark.parametrize("count", [1, 2])
async def test_the_first_event_is_sent_with_the_one_that_follows_it(count: int) -> None:
    events = [operation_pb2.OperationEvent(operation_id="operation-0", begun=operation_pb2.Begun()), an_event(1)]

    async def applies(request: Any, context: Any) -> AsyncIterator[Any]:
        for event in events[:count]:
            yield event

    async with scripted(apply=applies) as client, client.post(APPLY, json={}, headers=EVENTS) as response:
        received_events = events_of(await response.read())
    assert [position for position, _ in received_events] == ["", "1"][:count]


@pytest.mark.parametrize("is_known", [True, False])
async def test_an_error_in_the_middle_is_the_end_of_the_stream(is_known: bool) -> None:
    async def breaks(request: Any, context: Any) -> AsyncIterator[Any]:
        yield a_change("p1")
        if is_known:
            raise ServiceUnavailable("store", "s:1", "no connection")
        raise RuntimeError("canary")

    async with scripted(watch=breaks) as client:
        async with client.get(WATCH, headers=EVENTS) as response:
            text = await response.text()
            request_id = response.headers["X-Request-Id"]
        async with client.get(WATCH, headers=LINES) as response:
            lines = [json.loads(line) for line in (await response.text()).splitlines()]
    *_, last = text.removesuffix("\n\n").split("\n\n")
    assert last.startswith("event: error\ndata: ")
    error = json.loads(last.partition("data: ")[2])
    assert error["request_id"] == request_id
    assert error["reason"] == ("SERVICE_UNAVAILABLE" if is_known else "INTERNAL")
    assert "canary" not in text
    assert [list(line) for line in lines] == [["position", "stack"], ["error"]]
    assert lines[-1]["error"]["code"] == error["code"]


async def test_a_comment_shows_that_a_stream_is_alive() -> None:
    over = asyncio.Event()

    async def waits(request: Any, context: Any) -> AsyncIterator[Any]:
        await over.wait()
        yield a_change("p1")

    async with scripted(watch=waits, limits=StreamLimits(ping_seconds=0.02)) as client:
        async with client.get(WATCH, headers=EVENTS) as response:
            text = b""
            while text.count(b":\n\n") < 2:
                text += await response.content.readany()
            assert text.startswith(b"retry: 2000\n\n:\n\n")
            over.set()
            text += await response.read()
        assert events_of(text)[0][0] == "p1"


async def test_an_apply_answers_nothing_before_it_is_accepted() -> None:
    accepts = asyncio.Event()

    async def accepted_later(request: Any, context: Any) -> AsyncIterator[Any]:
        await accepts.wait()
        yield an_event(1)

    async with scripted(apply=accepted_later, limits=StreamLimits(ping_seconds=0.01)) as client:
        answering = asyncio.create_task(client.post(APPLY, json={}, headers=EVENTS))
        done, _ = await asyncio.wait({answering}, timeout=0.2)
        assert not done
        accepts.set()
        async with await answering as response:
            assert events_of(await response.read())[0][0] == "1"


async def test_a_client_that_disconnects_ends_the_call() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def watched(request: Any, context: Any) -> AsyncIterator[Any]:
        try:
            yield a_change("p1")
            begun.set()
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with scripted(watch=watched) as client:
        response = await client.get(WATCH, headers=EVENTS)
        await begun.wait()
        response.close()
        async with asyncio.timeout(10):
            await ended.wait()


async def test_a_client_that_disconnects_before_the_first_message_ends_the_call() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def plans(request: Any, context: Any) -> AsyncIterator[Any]:
        try:
            begun.set()
            await asyncio.Event().wait()
            yield an_event(1)
        finally:
            ended.set()

    async with scripted(apply=plans) as client:
        answering = asyncio.create_task(client.post(APPLY, json={}))
        await begun.wait()
        answering.cancel()
        async with asyncio.timeout(10):
            await ended.wait()


async def test_a_client_that_does_not_read_is_disconnected() -> None:
    """It gets the messages that fit into its connection and the buffer, and the call ends."""
    sent, ended = 0, asyncio.Event()

    async def endless(request: Any, context: Any) -> AsyncIterator[Any]:
        nonlocal sent
        try:
            while True:
                sent += 1
                yield a_change(f"p{sent}", "x" * 4000)
        finally:
            ended.set()

    limits = StreamLimits(stall_seconds=0.3)
    async with scripted(watch=endless, limits=limits) as client, client.get(WATCH, headers=EVENTS) as response:
        async with asyncio.timeout(60):
            await ended.wait()
        with pytest.raises(aiohttp.ClientError):
            await response.read()
    assert sent > 1000


class Ended(logging.Handler):
    """Waits for the log line at the end of a request."""

    def __init__(self) -> None:
        super().__init__()
        self.event = asyncio.Event()

    def emit(self, record: logging.LogRecord) -> None:
        if record.getMessage() == "request":
            self.event.set()


async def test_a_client_that_does_not_read_the_last_messages_is_disconnected() -> None:
    """The call has ended, so the buffer does not grow any more."""

    async def much(request: Any, context: Any) -> AsyncIterator[Any]:
        for number in range(40):
            yield a_change(f"p{number}", "x" * 1_000_000)

    ended, log = Ended(), logging.getLogger("pkger.http")
    log.addHandler(ended)
    log.setLevel(logging.INFO)
    try:
        limits = StreamLimits(bytes=50_000_000, last_seconds=0.5)
        async with scripted(watch=much, limits=limits) as client, client.get(WATCH, headers=EVENTS) as response:
            async with asyncio.timeout(60):
                await ended.event.wait()
            with pytest.raises(aiohttp.ClientError):
                await response.read()
    finally:
        log.removeHandler(ended)
        log.setLevel(logging.NOTSET)


async def test_a_buffer_has_no_more_than_its_bytes() -> None:
    made = 0

    async def messages() -> AsyncGenerator[Any, None]:
        nonlocal made
        for _ in range(9):
            made += 1
            yield a_change("p", "x" * 600)

    with pytest.raises(NotRead):
        await Feed(StreamLimits(bytes=1000, stall_seconds=0.05)).fill(messages())
    # The buffer had no room for the third message.
    assert made == 3


@pytest.mark.slow
async def test_a_client_that_reads_slowly_gets_all_of_a_stream_that_is_larger_than_the_buffer() -> None:
    async def many(request: Any, context: Any) -> AsyncIterator[Any]:
        for number in range(3000):
            yield a_change(f"p{number}", "x" * 2000)

    limits = StreamLimits(messages=10)
    async with scripted(watch=many, limits=limits) as client, client.get(WATCH, headers=LINES) as response:
        lines = [json.loads(line)["position"] async for line in response.content]
    assert lines == [f"p{number}" for number in range(3000)]


async def test_streams_do_not_count_as_requests() -> None:
    async def watched(request: Any, context: Any) -> AsyncIterator[Any]:
        yield a_change("p1")
        await asyncio.Event().wait()

    async with scripted(watch=watched, requests=1) as client:
        first = await client.get(WATCH, headers=EVENTS)
        second = await client.get(WATCH, headers=EVENTS)
        assert (first.status, second.status) == (200, 200)
        first.close()
        second.close()


async def test_streams_have_a_limit_of_their_own() -> None:
    async def watched(request: Any, context: Any) -> AsyncIterator[Any]:
        yield a_change("p1")
        await asyncio.Event().wait()

    left = asyncio.Event()

    async def applies(request: Any, context: Any) -> AsyncIterator[Any]:
        yield an_event(1)
        await left.wait()

    async with scripted(watch=watched, apply=applies, requests=2, streams=2) as client:
        streams = [await client.get(WATCH, headers=EVENTS) for _ in range(2)]
        async with client.get(WATCH, headers=EVENTS) as refused:
            assert (refused.status, refused.headers["Retry-After"]) == (503, "10")
            assert "PKGER_HTTP_MAX_STREAMS" in (await refused.json())["message"]
        # An apply does not count as a stream; it counts as a request to its end.
        applying = [await client.post(APPLY, json={}) for _ in range(2)]
        assert [answer.status for answer in applying] == [200, 200]
        async with client.post(APPLY, json={}) as refused:
            assert (refused.status, refused.headers["Retry-After"]) == (503, "1")
            assert "PKGER_HTTP_MAX_REQUESTS" in (await refused.json())["message"]
        left.set()
        for answer in applying:
            await answer.read()
        # A client that disconnects frees a place at once.
        streams.pop().close()
        while (again := await client.get(WATCH, headers=EVENTS)).status == 503:
            again.close()
        assert again.status == 200
        for stream in (*streams, again):
            stream.close()


async def test_a_service_that_goes_away_during_a_stream_is_an_error() -> None:
    async def aborts(request: Any, context: Any) -> AsyncIterator[Any]:
        yield a_change("p1")
        await context.abort(grpc.StatusCode.UNAVAILABLE, "going")

    async with scripted(watch=aborts) as client, client.get(WATCH) as response:
        lines = [json.loads(line) for line in (await response.text()).splitlines()]
    assert lines[-1]["error"]["code"] == "unavailable"


async def test_a_gateway_that_stops_ends_its_streams_at_once() -> None:
    async def watched(request: Any, context: Any) -> AsyncIterator[Any]:
        yield a_change("p1")
        await asyncio.Event().wait()

    async def quiet(request: Any, context: Any) -> AsyncIterator[Any]:
        begun.set()
        await asyncio.Event().wait()
        yield

    begun = asyncio.Event()
    async with asyncio.timeout(20):
        async with scripted(watch=watched) as client:
            response = await client.get(WATCH, headers=LINES)
            first = await response.content.readline()
            rest = asyncio.create_task(response.read())
        last = json.loads(await rest)
        async with scripted(watch=quiet) as client:
            answering = asyncio.create_task(client.get(WATCH, headers=LINES))
            await begun.wait()
        refused = await answering
    assert json.loads(first)["position"] == "p1"
    assert last["error"]["code"] == "unavailable"
    assert (refused.status, "Retry-After" in refused.headers) == (503, True)


async def test_a_client_that_disconnects_is_not_a_malformed_request(caplog: pytest.LogCaptureFixture) -> None:
    begun, ended = asyncio.Event(), Ended()

    async def plans(request: Any, context: Any) -> AsyncIterator[Any]:
        begun.set()
        await asyncio.Event().wait()
        yield

    with caplog.at_level(logging.INFO):
        logging.getLogger("pkger.http").addHandler(ended)
        async with scripted(apply=plans) as client:
            answering = asyncio.create_task(client.post(APPLY, json={}))
            await begun.wait()
            answering.cancel()
            async with asyncio.timeout(10):
                await ended.event.wait()
        logging.getLogger("pkger.http").removeHandler(ended)
    [line] = [record for record in caplog.records if record.getMessage() == "request"]
    assert line.__dict__["status"] == 499
    assert not [record for record in caplog.records if record.getMessage() == "malformed request"]
