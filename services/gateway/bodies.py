"""Bodies of requests: counted while they arrive and while they are inflated, never held beyond their limit."""

import asyncio
import zlib
from dataclasses import dataclass

from aiohttp import StreamReader
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web import RequestPayloadError

from services.gateway.answers import Code
from services.gateway.errors import Problem

GZIP = 16 + zlib.MAX_WBITS
"""Tells zlib that there is a header of gzip."""


@dataclass(frozen=True, slots=True)
class BodyLimits:
    """
    What a body may take.

    Attributes:
        bytes: Its bytes, as they come and inflated.
        seconds: The time between two pieces of it.
    """

    bytes: int
    seconds: float


async def read_body(stream: StreamReader, length: int | None, encoding: str, limits: BodyLimits) -> bytes:
    """
    The body of a request, inflated.

    Args:
        stream: Where it comes from.
        length: Its length, if the client says one.
        encoding: Its Content-Encoding.
        limits: What it may take.

    Raises:
        Problem: It is too large, too slow, cut off or not what its headers say.
    """
    if length is not None and length > limits.bytes:
        raise _too_large(limits)
    inflated = _Inflated(encoding, limits)
    pieces: list[bytes] = []
    received = 0
    while piece := await _next_piece(stream, limits.seconds):
        received += len(piece)
        if received > limits.bytes:
            raise _too_large(limits)
        pieces.append(inflated.add(piece))
    inflated.end()
    return b"".join(pieces)


async def _next_piece(stream: StreamReader, seconds: float) -> bytes:
    try:
        async with asyncio.timeout(seconds):
            return await stream.readany()
    except TimeoutError:
        told = f"nothing of the body came for {seconds:g} seconds; send it without pauses"
        raise Problem(Code.INVALID, told, status=408, headers={"Connection": "close"}) from None
    except (RequestPayloadError, HttpProcessingError) as error:
        told = "the body ends before its end, or its chunks are not as long as they say"
        raise Problem(Code.INVALID, told, headers={"Connection": "close"}) from error


class _Inflated:
    """Inflates a body piece by piece, as far as its limit."""

    def __init__(self, encoding: str, limits: BodyLimits) -> None:
        coding = encoding.strip().lower()
        if coding not in ("", "identity", "gzip", "x-gzip"):
            told = f"Content-Encoding: {coding[:40]!r} is not read here; send the body as it is, or with gzip"
            raise Problem(Code.UNSUPPORTED_MEDIA_TYPE, told, headers={"Accept-Encoding": "gzip"})
        self._zlib = zlib.decompressobj(GZIP) if coding.endswith("gzip") else None
        self._limits, self._left = limits, limits.bytes

    def add(self, piece: bytes) -> bytes:
        """What *piece* comes to."""
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
            raise Problem(Code.INVALID, "something follows the gzip of the body")
        return out

    def end(self) -> None:
        """Refuse a body that is not over."""
        if self._zlib is not None and not self._zlib.eof:
            raise Problem(Code.INVALID, "the gzip of the body ends before its end")


def _too_large(limits: BodyLimits) -> Problem:
    told = f"the body has more than {limits.bytes:,} bytes (PKGER_MAX_BYTES and a tenth); split the package"
    return Problem(Code.REQUEST_TOO_LARGE, told, headers={"Connection": "close"})
