"""Answers one route: decodes the request, calls the RPC, and encodes its response."""

import asyncio
import math
from collections.abc import AsyncGenerator, Awaitable, Iterable, Sequence
from contextlib import suppress
from typing import Any, TypeVar, cast
from urllib.parse import unquote, unquote_to_bytes

import orjson
from aiohttp import hdrs, web
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from pkger.applier.v1 import action_pb2, applier_pb2
from pkger.model.v1 import object_pb2, operation_pb2
from pkger.planner.v1 import package_pb2, planner_pb2

from services.core.errors import RequestInvalid
from services.gateway.answers import Answer, Code
from services.gateway.errors import SECONDS_UNTIL_RETRY, Problem, problem_of, retry_after
from services.gateway.http_request import HttpRequest
from services.gateway.transcoding.bindings import Binding
from services.gateway.transcoding.caching import (
    EVENTS,
    FIXED_BY_FIRST,
    content_of,
    headers_of,
    is_ended,
    is_known,
    tag_of,
)
from services.gateway.transcoding.decoding import decode
from services.gateway.transcoding.problems import PackageInvalid, PackagesConflict, pkger_form
from services.gateway.transcoding.streaming import (
    STREAM_LIMITS,
    ClientGone,
    Feed,
    NotRead,
    StreamForm,
    StreamLimits,
    form_for,
    guarded,
)
from services.rpc.client import Peer
from services.rpc.message_json import document_of
from services.rpc.request_bounds import refuse_beyond_bounds

LARGE = 64 * 1024
"""Bytes of a body or message from which on a thread decodes or encodes it, so that other requests do not wait."""

STOP_SECONDS = 1.0
"""Timeout to write the last message of a stream when the server stops."""

Result = TypeVar("Result")


class Caller:
    """Answers the requests of one binding."""

    def __init__(self, binding: Binding, peer: Peer, limits: StreamLimits = STREAM_LIMITS) -> None:
        """
        Args:
            binding: The RPC, and its route.
            peer: The service of the RPC.
            limits: Limits of clients of streams.
        """
        self._binding, self._peer, self._limits = binding, peer, limits
        self._call = _callable(peer, binding.rpc)

    async def answer(self, request: HttpRequest) -> Answer | web.StreamResponse:
        """Answer one request."""
        if self._binding.rpc.server_streaming:
            return await self._stream(request, form_for(request.headers.get(hdrs.ACCEPT, "")))
        message = await self._decoded(request)
        answer = await _while_connected(request, self._peer.call(self._call, message))
        _refuse_conflict(answer)
        _refuse_invalid_action_set(answer)
        body = await _encoded(answer)
        if not self._binding.is_safe:
            return Answer(200, body)
        tag = tag_of(body)
        if is_known(tag, request.headers.get(hdrs.IF_NONE_MATCH)):
            return Answer(304, headers=headers_of(tag))
        return Answer(200, body, headers_of(tag))

    async def _decoded(self, request: HttpRequest) -> Message:
        """The request message of the RPC, with the values of headers and token."""
        _check_escapes(request)
        body = await request.body()
        if body and self._binding.has_body:
            _check_media_type(request)
        arguments = self._binding, request.parameters, list(request.query.items()), body
        message = await asyncio.to_thread(decode, *arguments) if len(body) >= LARGE else decode(*arguments)
        _set_request_id(message, _header(request, "Idempotency-Key"))
        _set_position(message, _header(request, "Last-Event-ID"))
        _set_author(message, request.principal)
        refuse_beyond_bounds(message)
        return message

    async def _stream(self, request: HttpRequest, form: StreamForm) -> Answer | web.StreamResponse:
        """The answer of an RPC that streams responses."""
        message = await self._decoded(request)
        tag = await self._tag_of_events(request, message, form)
        if tag and is_known(tag, request.headers.get(hdrs.IF_NONE_MATCH)):
            return Answer(304, headers=headers_of(tag))
        feed = Feed(self._limits)
        messages = cast("AsyncGenerator[Message, None]", self._peer.stream(self._call, message, seconds=math.inf))
        try:
            async with guarded(feed.fill(messages), self._until_unread(feed), _until_gone(request)):
                # A browser that watches gets headers soon, even without a message. Other clients get them after the
                # first message, so that the status shows an error.
                is_watch = self._binding.is_safe and bool(form.ping())
                async with guarded(*([_until_stopping(request)] if self._binding.is_safe else [])):
                    taken = await self._first_messages(feed, is_watch)
                if taken is None:
                    # After a 204, a browser does not reconnect.
                    return Answer(204)
                if taken and self._binding.rpc.full_name in FIXED_BY_FIRST:
                    tag = tag_of(form.media_type.encode(), content_of(message), content_of(taken[-1]))
                    if is_known(tag, request.headers.get(hdrs.IF_NONE_MATCH)):
                        return Answer(304, headers=headers_of(tag))
                return await self._sent(request, form, tag, taken, feed)
        except NotRead:
            if request.http.transport is not None:
                request.http.transport.abort()
            raise ClientGone from None

    async def _until_unread(self, feed: Feed) -> None:
        """
        Wait until the client stops reading although the call has ended.

        Raises:
            NotRead: It took no message for ``last_seconds``.
        """
        taken = -1
        while not feed.is_over or feed.taken != taken:
            taken = feed.taken if feed.is_over else -1
            await asyncio.sleep(self._limits.last_seconds)
        raise NotRead

    async def _first_messages(self, feed: Feed, is_watch: bool) -> list[Message] | None:
        """The messages that decide the status; None if a browser watches a stream that has no more events."""
        try:
            async with asyncio.timeout(self._limits.ping_seconds if is_watch else None):
                first = await feed.take()
        except TimeoutError:
            return []
        taken: list[Message] = []
        if isinstance(first, operation_pb2.OperationEvent) and first.HasField("begun"):
            # The request may still be refused, which the status shows: the next message decides it.
            taken.append(first)
            first = await feed.take()
        if first is not None:
            _refuse_conflict(first)
            await _refuse_violations(first, feed)
            taken.append(first)
        return None if first is None and is_watch else taken

    async def _sent(
        self, request: HttpRequest, form: StreamForm, tag: str, taken: Iterable[Message], feed: Feed
    ) -> web.StreamResponse:
        """The response, with all messages written to it; if the server stops, the last part says so."""
        headers = {**request.own_headers, "X-Accel-Buffering": "no", **(headers_of(tag) if tag else {})}
        response = web.StreamResponse(headers={**headers, hdrs.CONTENT_TYPE: form.media_type})
        if self._binding.follows:
            request.count_as_stream()
        await response.prepare(request.http)
        if request.http.method != hdrs.METH_HEAD:
            try:
                async with guarded(_until_stopping(request)):
                    await self._write(response, form, taken, feed, request)
            except Problem as stopping:
                with suppress(TimeoutError):
                    async with asyncio.timeout(STOP_SECONDS):
                        await response.write(form.error(pkger_form(stopping, request.id)))
        return response

    async def _write(
        self,
        response: web.StreamResponse,
        form: StreamForm,
        taken: Iterable[Message],
        feed: Feed,
        request: HttpRequest,
    ) -> None:
        """Write the messages that are *taken* from the feed, and all others; and comments while it waits for one."""
        if start := form.start(self._limits):
            await response.write(start)
        try:
            for message in taken:
                await response.write(await _written(message, form))
            while next_message := await self._next(response, form, feed):
                await response.write(await _written(next_message, form))
        except ConnectionError:
            raise
        except Exception as error:
            # The status is already sent, so the error is part of the stream.
            await response.write(form.error(pkger_form(problem_of(error, request.id), request.id)))

    async def _next(self, response: web.StreamResponse, form: StreamForm, feed: Feed) -> Message | None:
        """The next message of a stream; writes comments while it waits."""
        while True:
            try:
                async with asyncio.timeout(self._limits.ping_seconds):
                    return await feed.take()
            except TimeoutError:
                if ping := form.ping():
                    await response.write(ping)

    async def _tag_of_events(self, request: HttpRequest, message: Message, form: StreamForm) -> str:
        """The ETag of the events of an operation that has ended; empty for all other streams."""
        if self._binding.rpc.full_name != EVENTS:
            return ""
        assert isinstance(message, applier_pb2.WatchOperationRequest)  # noqa: S101 - the request of the RPC
        get = self._binding.rpc.containing_service.methods_by_name["GetOperation"]
        get_request = applier_pb2.GetOperationRequest(operation_id=message.operation_id)
        answer = await _while_connected(request, self._peer.call(_callable(self._peer, get), get_request))
        if not is_ended(answer.operation):
            return ""
        return tag_of(form.media_type.encode(), content_of(message), content_of(answer))


def _callable(peer: Peer, rpc: MethodDescriptor) -> Any:
    """The gRPC callable of an RPC."""
    path = f"/{rpc.containing_service.full_name}/{rpc.name}"
    make = peer.channel.unary_stream if rpc.server_streaming else peer.channel.unary_unary
    answer = GetMessageClass(rpc.output_type)
    return make(path, request_serializer=_bytes_of, response_deserializer=answer.FromString)


def _bytes_of(message: Message) -> bytes:
    return message.SerializeToString()


async def _while_connected(request: HttpRequest, work: Awaitable[Result]) -> Result:
    """
    The result of *work*, which is cancelled when the client disconnects.

    Raises:
        ClientGone: The client disconnected.
    """
    async with guarded(_until_gone(request)):
        return await work


async def _until_gone(request: HttpRequest) -> None:
    await request.gone.wait()
    raise ClientGone


async def _until_stopping(request: HttpRequest) -> None:
    await request.stopping.wait()
    message = "the gateway stops: send the request again to get the messages after the last one"
    raise Problem(Code.UNAVAILABLE, message, headers=retry_after(SECONDS_UNTIL_RETRY))


async def _refuse_violations(first: Message, feed: Feed) -> None:
    """
    Turn a response that consists of violations into an error, as the request had no effect.

    Raises:
        PackageInvalid: The response consists of violations.
    """
    violations: list[object_pb2.Violation] = []
    message: Message | None = first
    while message is not None and (more := _violations_in(message)):
        violations += more
        message = await feed.take()
    if violations:
        raise PackageInvalid(violations)


def _refuse_conflict(answer: Message) -> None:
    """
    Turn an answer that says why packages conflict into an error.

    Raises:
        PackagesConflict: It does.
    """
    match answer:
        case package_pb2.ResolvePackagesResponse() | planner_pb2.CreatePlanResponse() if answer.HasField("conflict"):
            raise PackagesConflict(answer.conflict)


def _refuse_invalid_action_set(answer: Message) -> None:
    """
    Turn an answer that consists of the violations of an action set into an error.

    Raises:
        PackageInvalid: It does.
    """
    if isinstance(answer, action_pb2.CreateActionSetResponse) and answer.HasField("violations"):
        raise PackageInvalid(answer.violations.violations, "the action set")


def _violations_in(message: Message) -> Sequence[object_pb2.Violation]:
    """The violations in a message of CreatePlan or Apply, which then consists of them."""
    match message:
        case planner_pb2.CreatePlanResponse():
            return message.violations.violations
        case operation_pb2.OperationEvent():
            return message.package_invalid.violations
        case _:
            return ()


async def _written(message: Message, form: StreamForm) -> bytes:
    return form.message(await _document(message), _position_of(message))


async def _document(message: Message) -> dict[str, Any]:
    large = message.ByteSize() >= LARGE
    return await asyncio.to_thread(document_of, message) if large else document_of(message)


async def _encoded(message: Message) -> bytes:
    return orjson.dumps(await _document(message))


def _position_of(message: Any) -> str:
    """The position from which another stream resumes: the number of an event, or the position of a change."""
    if isinstance(message, operation_pb2.OperationEvent):
        return str(message.seq or "")
    return str(getattr(message, "position", ""))


def _check_media_type(request: HttpRequest) -> None:
    """
    Refuse a body of another media type than JSON: a page of another site can send some types without a preflight.

    Raises:
        Problem: Content-Type is not application/json.
    """
    if request.media_type != "application/json":
        message = "the body has to be JSON: send it with Content-Type: application/json"
        raise Problem(Code.UNSUPPORTED_MEDIA_TYPE, message)


def _check_escapes(request: HttpRequest) -> None:
    """
    Refuse percent escapes that are not UTF-8, as they would be decoded to other text.

    Raises:
        RequestInvalid: Path or query has such an escape.
    """
    address = request.http.rel_url
    # The percent signs of the path are encoded once more (as_received).
    for name, escaped in (("path", unquote(address.raw_path)), ("query", address.raw_query_string)):
        try:
            unquote_to_bytes(escaped).decode()
        except UnicodeDecodeError:
            raise RequestInvalid(name, "its percent escapes are no UTF-8") from None


def _header(request: HttpRequest, name: str) -> str:
    """
    The text of a header for the request message; empty without the header.

    Raises:
        RequestInvalid: The header is not UTF-8.
    """
    text = request.headers.get(name, "")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise RequestInvalid(name, "is no UTF-8") from None
    return text


def _set_request_id(message: Any, key: str) -> None:
    """Use the Idempotency-Key as request id, if the RPC has one."""
    if not key or "request_id" not in message.DESCRIPTOR.fields_by_name:
        return
    if message.request_id not in ("", key):
        raise RequestInvalid("request_id", "differs from Idempotency-Key: send one of them, or both alike")
    message.request_id = key


def _set_position(message: Any, last: str) -> None:
    """
    Resume after the last event that a client has, if the RPC supports that.

    The header replaces the position in the query, which a browser repeats unchanged when it reconnects.
    """
    if not last:
        return
    if "after_seq" in message.DESCRIPTOR.fields_by_name:
        if not last.isascii() or not last.isdigit() or len(last) > 18:
            raise RequestInvalid("Last-Event-ID", "is no number of an event of this stream")
        message.after_seq = int(last)
    elif "position" in message.DESCRIPTOR.fields_by_name:
        message.position = last


def _set_author(message: Any, principal: str) -> None:
    """Set the author to the name of the token, if the client has one."""
    fields = message.DESCRIPTOR.fields_by_name
    if not principal or not ("run_options" in fields or "author" in fields):
        return
    place, holder = ("author", message) if "author" in fields else ("run_options.author", message.run_options)
    if holder.author not in ("", principal):
        problem = f"differs from the name of the token, {principal!r}: leave the author out"
        raise RequestInvalid(place, problem)
    holder.author = principal
