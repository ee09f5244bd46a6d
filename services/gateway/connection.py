"""A connection of a client: cuts off slow headers, and answers bytes that are no request of HTTP."""

import asyncio
import logging
from email.utils import formatdate
from typing import Any, cast

import orjson

from services.gateway.answers import JSON_TYPE, Code

log = logging.getLogger("pkger.http")

_MALFORMED = orjson.dumps(
    {"code": Code.INVALID, "message": "this is not a request of HTTP, or one of its headers is larger than 8 KiB"}
)


class Connection(asyncio.Protocol):
    """
    Stands between the transport and the protocol of aiohttp: a protocol for the one, a transport for the other.

    A request is in progress from ``begin_request`` to ``end_request``. aiohttp itself answers only what it cannot
    parse, and quotes it. Whatever it writes outside of requests is therefore replaced by an error in our form.

    Attributes:
        gone: Event that is set when the client has disconnected.
    """

    def __init__(self, protocol: asyncio.Protocol, header_seconds: float) -> None:
        """
        Args:
            protocol: The protocol of aiohttp.
            header_seconds: Longest time for the headers of a request.
        """
        self._protocol, self._header_seconds = protocol, header_seconds
        self._transport = asyncio.Transport()
        self._deadline: asyncio.TimerHandle | None = None
        self._in_request = self._is_refused = False
        self.gone = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the timeout for the first headers."""
        self._transport = cast("asyncio.Transport", transport)
        self._protocol.connection_made(cast("asyncio.BaseTransport", self))
        self._expect_headers()

    def data_received(self, data: bytes) -> None:
        """Receive bytes; the first bytes of a request start the timeout for its headers."""
        if not self._in_request:
            self._expect_headers()
        self._protocol.data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """End the timeout, and the work for the client."""
        self.gone.set()
        self._cancel_deadline()
        self._protocol.connection_lost(exc)

    def pause_writing(self) -> None:
        """Let aiohttp wait until the client has read more."""
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        """Let aiohttp write on."""
        self._protocol.resume_writing()

    def begin_request(self) -> None:
        """End the timeout: the headers of a request are complete."""
        self._in_request = True
        self._cancel_deadline()

    def end_request(self) -> None:
        """Let the next bytes start another request."""
        self._in_request = False

    def write(self, data: bytes) -> None:
        """Send a part of a response."""
        if self._in_request:
            self._transport.write(data)
        elif not self._is_refused:
            self._is_refused = True
            self._cancel_deadline()
            log.info("malformed request", extra={"status": 400})
            self._transport.write(_refusal())

    def writelines(self, pieces: list[bytes]) -> None:
        """Send several parts of a response."""
        self.write(b"".join(pieces))

    def __getattr__(self, name: str) -> Any:
        """All else is done by the transport."""
        return getattr(self._transport, name)

    def _expect_headers(self) -> None:
        if self._deadline is None:
            self._deadline = asyncio.get_running_loop().call_later(self._header_seconds, self._close_late)

    def _cancel_deadline(self) -> None:
        if self._deadline:
            self._deadline.cancel()
            self._deadline = None

    def _close_late(self) -> None:
        self._deadline = None
        log.info("no request in time", extra={"seconds": self._header_seconds})
        self._transport.close()


def _refusal() -> bytes:
    """The response to bytes that are no request; the connection is closed after it."""
    lines = (
        "HTTP/1.0 400 Bad Request",
        f"X-Platform-Error-Code: {Code.INVALID}",
        f"Content-Type: {JSON_TYPE}",
        f"Content-Length: {len(_MALFORMED)}",
        f"Date: {formatdate(usegmt=True)}",
        "Server: pkger",
    )
    return "\r\n".join((*lines, "", "")).encode() + _MALFORMED


def hides_requests(record: logging.LogRecord) -> bool:
    """Filter of the log of aiohttp: its errors about malformed requests quote them, and may quote a token."""
    error = record.exc_info[1] if record.exc_info else None
    return not type(error).__module__.startswith("aiohttp")
