"""Reads bodies of requests. A body is counted as it arrives and as it is inflated, and refused at its limit."""

import asyncio
import zlib

from aiohttp import StreamReader

from services.gateway.answers import Code
from services.gateway.errors import Problem
from services.gateway.settings import GatewaySettings
from services.rpc.call import loop_time

BYTES_PER_SECOND = 100_000
"""
A body has another second for as many bytes that have arrived. So slow clients can send large bodies, but a client that
sends single bytes keeps its place among the requests no longer than one that sends nothing.
"""

GZIP = 16 + zlib.MAX_WBITS
"""``wbits`` of zlib for data with a gzip header."""


async def read_body(stream: StreamReader, length: int | None, encoding: str, limits: GatewaySettings) -> bytes:
    """
    Read and inflate the body of a request.

    Args:
        stream: The stream to read from.
        length: Its Content-Length; None without one.
        encoding: Its Content-Encoding.
        limits: The settings, which limit a body.

    Raises:
        Problem: The body is too large, too slow, truncated, or contradicts its headers.
    """
    if length is not None and length > limits.body_bytes:
        raise _too_large(limits)
    inflated = _Inflated(encoding, limits)
    pieces: list[bytes] = []
    began, received = loop_time(), 0
    while piece := await _next_piece(stream, began, limits.body_seconds + received / BYTES_PER_SECOND):
        received += len(piece)
        if received > limits.body_bytes:
            raise _too_large(limits)
        pieces.append(inflated.add(piece))
    inflated.end()
    return b"".join(pieces)


async def _next_piece(stream: StreamReader, began: float, seconds: float) -> bytes:
    """The next bytes of a body, whose first bytes were expected from *began* on, and which has *seconds* up to now."""
    try:
        async with asyncio.timeout_at(began + seconds):
            return await stream.readany()
    except TimeoutError:
        message = (
            f"the body is not complete after {seconds:.0f} seconds; send it without pauses,"
            f" at {BYTES_PER_SECOND // 1000} KB per second or faster"
        )
        raise Problem(Code.INVALID, message, status=408, headers={"Connection": "close"}) from None
    except ConnectionError:
        raise
    except Exception as error:
        # aiohttp raises classes of private modules here.
        message = "the body is truncated, or the length of a chunk is wrong; send the body again"
        raise Problem(Code.INVALID, message, headers={"Connection": "close"}) from error


class _Inflated:
    """Inflates a body piece by piece, up to its limit."""

    def __init__(self, encoding: str, limits: GatewaySettings) -> None:
        coding = encoding.strip().lower()
        if coding not in ("", "identity", "gzip", "x-gzip"):
            message = f"Content-Encoding: {coding[:40]!r} is not supported; send the body uncompressed, or with gzip"
            raise Problem(Code.UNSUPPORTED_MEDIA_TYPE, message, headers={"Accept-Encoding": "gzip"})
        self._zlib = zlib.decompressobj(GZIP) if coding.endswith("gzip") else None
        self._limits, self._left = limits, limits.body_bytes

    def add(self, piece: bytes) -> bytes:
        """The inflated bytes of *piece*."""
        if self._zlib is None:
            return piece
        try:
            out = self._zlib.decompress(piece, self._left + 1)
        except zlib.error:
            raise Problem(Code.INVALID, "the body is not gzip, though Content-Encoding says so") from None
        self._left -= len(out)
        if self._left < 0:
            raise _too_large(self._limits)
        if self._zlib.unused_data:
            raise Problem(Code.INVALID, "the body has bytes after its gzip stream; send one gzip stream")
        return out

    def end(self) -> None:
        """Refuse a truncated gzip stream."""
        if self._zlib is not None and not self._zlib.eof:
            raise Problem(Code.INVALID, "the gzip stream of the body is truncated; send the body again")


def _too_large(limits: GatewaySettings) -> Problem:
    message = f"the body has more than {limits.body_bytes:,} bytes (110 % of PKGER_MAX_BYTES); split the package"
    return Problem(Code.REQUEST_TOO_LARGE, message, headers={"Connection": "close"})
