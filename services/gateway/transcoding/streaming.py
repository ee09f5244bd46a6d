"""Streams of RPCs over HTTP: as server-sent events or JSON lines, with a bounded buffer for each client."""

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, ClassVar

import orjson
from google.protobuf.message import Message

from services.gateway.answers import Code
from services.gateway.errors import Problem
from services.gateway.media_types import weights


@dataclass(frozen=True, slots=True)
class StreamLimits:
    """
    Limits of a client of a stream.

    Attributes:
        messages: Most messages in its buffer.
        bytes: Most bytes in its buffer; one more message may exceed them.
        stall_seconds: How long the buffer may stay full before the client is disconnected.
        last_seconds: How long the client may take for one message after the call has ended and the buffer cannot grow.
        ping_seconds: Time without a message after which a comment shows that the stream is alive.
        retry_seconds: Time after which a client should reconnect when the stream breaks off.
    """

    messages: int = 1000
    bytes: int = 8 * 1024 * 1024
    stall_seconds: float = 30
    last_seconds: float = 60
    ping_seconds: float = 15
    retry_seconds: float = 2


STREAM_LIMITS = StreamLimits()


class StreamForm(ABC):
    """
    A format for messages of a stream.

    Attributes:
        media_type: The media type of the stream.
        accepted_as: Another media type that accepts this form; empty: none.
    """

    media_type: ClassVar[str]
    accepted_as: ClassVar[str] = ""

    def start(self, limits: StreamLimits) -> bytes:
        """The bytes at the beginning of the stream; empty for none."""
        return b""

    @abstractmethod
    def message(self, document: Any, position: str) -> bytes:
        """A message; another stream can resume after *position*, which is empty if it cannot."""

    def ping(self) -> bytes:
        """The bytes that show that the stream is alive; empty if the form has none."""
        return b""

    @abstractmethod
    def error(self, body: Any) -> bytes:
        """The error that ended the stream; it is the last part of the stream."""


class EventStream(StreamForm):
    """Server-sent events (the HTML standard, 9.2)."""

    media_type = "text/event-stream"

    def start(self, limits: StreamLimits) -> bytes:
        """The time after which a client reconnects."""
        return b"retry: %d\n\n" % (limits.retry_seconds * 1000)

    def message(self, document: Any, position: str) -> bytes:
        """One event."""
        named = f"id: {position}\n".encode() if position else b""
        return named + b"data: " + orjson.dumps(document) + b"\n\n"

    def ping(self) -> bytes:
        """A comment."""
        return b":\n\n"

    def error(self, body: Any) -> bytes:
        """An event of type ``error``."""
        return b"event: error\ndata: " + orjson.dumps(body) + b"\n\n"


class JsonLines(StreamForm):
    """One JSON text on each line. It has no ping: not all readers skip empty lines."""

    media_type = "application/x-ndjson"
    # Clients send this for any JSON, such as curl --json does.
    accepted_as = "application/json"

    def message(self, document: Any, position: str) -> bytes:
        """One line."""
        return orjson.dumps(document) + b"\n"

    def error(self, body: Any) -> bytes:
        """A line whose only member is ``error``, which no message has."""
        return orjson.dumps({"error": body}) + b"\n"


FORMS: tuple[StreamForm, ...] = (JsonLines(), EventStream())
"""The forms; a client without a preference gets the first one."""


def form_for(accept: str) -> StreamForm:
    """
    The form that an ``Accept`` prefers.

    Raises:
        Problem: It accepts none.
    """
    if not accept.strip():
        return FORMS[0]
    preferences = [_weight(accept, form) for form in FORMS]
    if max(preferences)[0] > 0:
        return FORMS[preferences.index(max(preferences))]
    message = f"the answer is a stream: send Accept: {' or Accept: '.join(form.media_type for form in FORMS)}"
    raise Problem(Code.INVALID, message, status=406)


def _weight(accept: str, form: StreamForm) -> tuple[float, int]:
    """The weight of a form in an ``Accept``, and how exactly the header names it."""
    ranks = {"*/*": 1, f"{form.media_type.partition('/')[0]}/*": 2, form.accepted_as: 3, form.media_type: 4}
    named = [(ranks[kind], weight) for kind, weight in weights(accept) if kind and kind in ranks]
    exactness, weight = max(named, key=itemgetter(0), default=(0, 0.0))
    return weight, exactness


class NotRead(Exception):
    """The client does not read the messages in its buffer."""


class Feed:
    """
    The buffer between a call and a client.

    Attributes:
        taken: Number of messages that were taken for the client.
        is_over: Whether the call has ended, so that no message follows those in the buffer.
    """

    def __init__(self, limits: StreamLimits) -> None:
        self._limits = limits
        self._waiting: deque[Message] = deque()
        self._bytes = 0
        self.taken = 0
        self._changed = asyncio.Condition()
        self._error: Exception | None = None
        self.is_over = False

    async def take(self) -> Message | None:
        """
        Wait for the next message; None after the last one.

        Raises:
            Exception: The error that ended the call, after all its messages are taken.
        """
        async with self._changed:
            await self._changed.wait_for(lambda: self._waiting or self.is_over)
            if self._waiting:
                message = self._waiting.popleft()
                self._bytes -= message.ByteSize()
                self.taken += 1
                self._changed.notify_all()
                return message
        if self._error:
            raise self._error
        return None

    async def fill(self, messages: AsyncGenerator[Message, None]) -> None:
        """
        Add all messages of a call, which is cancelled when this task is cancelled.

        Raises:
            NotRead: The buffer stayed full for ``stall_seconds``.
        """
        try:
            async with aclosing(messages):
                async for message in messages:
                    await self._add(message)
        except NotRead:
            raise
        except Exception as error:
            # ``take`` raises it after the last message.
            self._error = error
        async with self._changed:
            self.is_over = True
            self._changed.notify_all()

    async def _add(self, message: Message) -> None:
        async with self._changed:
            try:
                async with asyncio.timeout(self._limits.stall_seconds):
                    await self._changed.wait_for(self._has_room)
            except TimeoutError:
                raise NotRead from None
            self._waiting.append(message)
            self._bytes += message.ByteSize()
            self._changed.notify_all()

    def _has_room(self) -> bool:
        return len(self._waiting) < self._limits.messages and self._bytes < self._limits.bytes


@asynccontextmanager
async def guarded(*guards: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """
    Run the block until it ends or one of *guards* raises; then cancel all others.

    Raises:
        Exception: The first error of the block or of a guard.
    """
    try:
        async with asyncio.TaskGroup() as group:
            works = [group.create_task(guard) for guard in guards]
            yield
            for work in works:
                work.cancel()
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None


class ClientGone(ConnectionError):
    """The client disconnected before the answer was complete."""
