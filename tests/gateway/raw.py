"""Sends raw bytes, for requests that no HTTP library sends."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import orjson

SECONDS = 20.0
"""Timeout of an answer."""


@dataclass(frozen=True)
class RawAnswer:
    """
    An answer.

    Attributes:
        status: Status; 0 when the connection was closed without an answer.
        headers: Headers, with names in lower case.
        body: The body.
    """

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def document(self) -> Any:
        """The body as JSON."""
        return orjson.loads(self.body)


async def send(address: str, *pieces: bytes, leaves: bool = False) -> RawAnswer:
    """
    Send bytes and read one answer.

    Args:
        address: The gateway.
        pieces: The bytes to send, piece by piece.
        leaves: Whether the client disconnects without waiting for an answer.
    """
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        if leaves:
            return RawAnswer(0, {}, b"")
        async with asyncio.timeout(SECONDS):
            return await _answer(reader)
    except ConnectionError:
        return RawAnswer(0, {}, b"")
    finally:
        writer.close()


async def _answer(reader: asyncio.StreamReader) -> RawAnswer:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.strip().split("\r\n")
    headers = {name.strip().lower(): text.strip() for name, _, text in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return RawAnswer(int(first.split()[1]), headers, body)


def request(
    method: str, path: str, body: bytes = b"", headers: Iterable[str] = (), *, token: str, length: bool = True
) -> bytes:
    """The bytes of a request; *length* is whether it has a Content-Length."""
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", f"Authorization: Token {token}", *headers]
    if length:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body
