"""Makes responses of aiohttp from answers."""

import asyncio
import zlib
from collections.abc import Mapping

from aiohttp import hdrs, web

from services.gateway.answers import Answer
from services.gateway.bodies import GZIP
from services.gateway.media_types import weights
from services.gateway.threads import OFF_LOOP_FROM

COMPRESSED_FROM = 1024
"""Bytes from which on an answer is compressed for clients that accept gzip."""

_GZIP = ("gzip", "x-gzip")

COMPRESSION = 1
"""
Level of zlib: it makes documents 14 times smaller.

The best level makes them another quarter smaller, in three times the time.
"""


async def response_of(answer: Answer, accepted: str, own_headers: Mapping[str, str]) -> web.Response:
    """
    The response with an answer.

    Args:
        answer: The answer.
        accepted: The Accept-Encoding of the request.
        own_headers: Headers of every response to the request.
    """
    body, headers = answer.body, {**own_headers, **answer.headers}
    if len(body) >= COMPRESSED_FROM and any(weight for coding, weight in weights(accepted) if coding in _GZIP):
        body, headers[hdrs.CONTENT_ENCODING] = await _compressed(body), "gzip"
    if body or answer.status not in (204, 304):
        headers[hdrs.CONTENT_TYPE] = answer.media_type
    response = web.Response(status=answer.status, body=body or None, headers=headers)
    if headers.get(hdrs.CONNECTION) == "close":
        response.force_close()
    return response


async def _compressed(body: bytes) -> bytes:
    """*body* as gzip; zlib releases the lock of Python, so a thread does not delay the event loop."""
    if len(body) < OFF_LOOP_FROM:
        return zlib.compress(body, COMPRESSION, GZIP)
    return await asyncio.to_thread(zlib.compress, body, COMPRESSION, GZIP)
