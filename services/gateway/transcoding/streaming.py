"""Streams of RPCs over HTTP: server-sent events or a JSON text a line, and the buffer in front of a client."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Protocol

import orjson
from google.protobuf.message import Message

from services.gateway.answers import Code
from services.gateway.errors import Problem


@dataclass(frozen=True, slots=True)
class StreamLimits:
    """
    What a client of a stream may take.

    Attributes:
        messages: Messages that wait for it at most.
        bytes: Their bytes, about.
        patience_seconds: How long the stream waits for a client that has so many and takes none, before it is cut off.
        last_seconds: How long it may take for a message once the call has ended, so that the queue cannot grow.
        ping_seconds: Time after which a comment says that the stream is alive.
        retry_seconds: Time after which a client should come back when the stream breaks off.
    """

    messages: int = 1000
    bytes: int = 8 * 1024 * 1024
    patience_seconds: float = 30
    last_seconds: float = 60
    ping_seconds: float = 15
    retry_seconds: float = 2


STREAM_LIMITS = StreamLimits()


class StreamForm(Protocol):
    """How messages are written."""

    @property
    def media_type(self) -> str:
        """The media type of the stream."""

    @property
    def accepted_as(self) -> str:
        """Another media type for which the form will do; empty: none."""

    def start(self, limits: StreamLimits) -> bytes:
        """What comes first."""

    def message(self, document: Any, position: str) -> bytes:
        """A message; *position* is where another stream goes on behind it, empty for nowhere."""

    def ping(self) -> bytes:
        """That the stream is alive; empty where that cannot be said."""

    def error(self, body: Any) -> bytes:
        """What ended the stream early; nothing comes behind it."""


class EventStream:
    """Server-sent events (the HTML standard, 9.2)."""

    media_type = "text/event-stream"
    accepted_as = ""

    def start(self, limits: StreamLimits) -> bytes:
        """The time after which a client comes back."""
        return b"retry: %d\n\n" % (limits.retry_seconds * 1000)

    def message(self, document: Any, position: str) -> bytes:
        """One event."""
        named = f"id: {position}\n".encode() if position else b""
        return named + b"data: " + orjson.dumps(document) + b"\n\n"

    def ping(self) -> bytes:
        """A comment."""
        return b":\n\n"

    def error(self, body: Any) -> bytes:
        """An event of a type of its own."""
        return b"event: error\ndata: " + orjson.dumps(body) + b"\n\n"


class JsonLines:
    """One JSON text a line."""

    media_type = "application/x-ndjson"
    # What clients of JSON send without thinking of streams, such as curl --json.
    accepted_as = "application/json"

    def start(self, limits: StreamLimits) -> bytes:
        """Nothing."""
        return b""

    def message(self, document: Any, position: str) -> bytes:
        """One line."""
        return orjson.dumps(document) + b"\n"

    def ping(self) -> bytes:
        """Nothing: not all readers pass over empty lines."""
        return b""

    def error(self, body: Any) -> bytes:
        """A line with the one member ``error``, which no message has."""
        return orjson.dumps({"error": body}) + b"\n"


FORMS: tuple[StreamForm, ...] = (JsonLines(), EventStream())
"""The forms; a client that does not care gets the first one."""


def form_for(accept: str) -> StreamForm:
    """
    The form that an ``Accept`` likes best.

    Raises:
        Problem: It likes none.
    """
    if not accept.strip():
        return FORMS[0]
    weights = [_weight(accept, form) for form in FORMS]
    if max(weights)[0] > 0:
        return FORMS[weights.index(max(weights))]
    told = f"the answer is a stream: write Accept: {' or Accept: '.join(form.media_type for form in FORMS)}"
    raise Problem(Code.INVALID, told, status=406)


def _weight(accept: str, form: StreamForm) -> tuple[float, int]:
    """How much a client likes a form, and how exactly it names it."""
    wanted = {"*/*": 1, f"{form.media_type.partition('/')[0]}/*": 2, form.accepted_as: 3, form.media_type: 4}
    best = (0, 0.0)
    for each in accept.lower().split(","):
        named, *parameters = (part.strip() for part in each.split(";"))
        exactness = wanted.get(named, 0) if named else 0
        if exactness > best[0]:
            best = exactness, _quality(parameters)
    return best[1], best[0]


def _quality(parameters: list[str]) -> float:
    for parameter in parameters:
        if parameter.startswith("q="):
            with suppress(ValueError):
                return float(parameter[2:])
    return 1.0


class NotRead(Exception):
    """The client does not read what waits for it."""


class Feed:
    """
    The messages of a call that wait for a client.

    Attributes:
        taken: How many of them the client has got.
    """

    def __init__(self, limits: StreamLimits) -> None:
        self._limits = limits
        self._waiting: deque[Message] = deque()
        self._bytes = 0
        self.taken = 0
        self._changed = asyncio.Condition()
        self._error: Exception | None = None
        self._is_over = False

    async def take(self) -> Message | None:
        """
        The next message, as soon as it is there; None behind the last one.

        Raises:
            Exception: What ended the call, once all messages before are taken.
        """
        async with self._changed:
            await self._changed.wait_for(lambda: self._waiting or self._is_over)
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
        Take all messages of a call, which is cancelled when this is.

        Raises:
            NotRead: The client does not take them.
        """
        try:
            async with aclosing(messages):
                async for message in messages:
                    await self._add(message)
        except NotRead:
            raise
        except Exception as error:
            # Whoever takes the messages gets it behind them.
            self._error = error
        async with self._changed:
            self._is_over = True
            self._changed.notify_all()

    async def _add(self, message: Message) -> None:
        async with self._changed:
            try:
                async with asyncio.timeout(self._limits.patience_seconds):
                    await self._changed.wait_for(self._has_room)
            except TimeoutError:
                raise NotRead from None
            self._waiting.append(message)
            self._bytes += message.ByteSize()
            self._changed.notify_all()

    def _has_room(self) -> bool:
        return len(self._waiting) < self._limits.messages and self._bytes < self._limits.bytes


@asynccontextmanager
async def running(*works: "asyncio.Task[Any]") -> AsyncIterator[None]:
    """Cancel *works*, and wait for them, when the block is left."""
    try:
        yield
    finally:
        for work in works:
            work.cancel()
        await asyncio.gather(*works, return_exceptions=True)


class ClientGone(ConnectionError):
    """Nobody waits for the answer any more."""
