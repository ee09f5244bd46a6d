"""A request as handlers get it."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from aiohttp import web
from multidict import CIMultiDictProxy, MultiMapping

from services.gateway.answers import Code
from services.gateway.bodies import BodyLimits, read_body
from services.gateway.errors import Problem


@dataclass(slots=True)
class HttpRequest:
    """
    One request.

    Attributes:
        http: The request of aiohttp; handlers need it to stream an answer.
        id: Its request id, which the gateway sends to the services, too.
        limits: Limits of its body.
        own_headers: Headers that every answer to it has.
        principal: Name of the client; empty if no token is needed.
        parameters: Parameters of its path.
        take_stream_place: Counts the request as a stream that watches events, and no longer as a request.
        gone: Set when the client has disconnected, so that the answer is not needed.
        stopping: Set when the server stops, so that a stream without an end has to end.
    """

    http: web.BaseRequest
    id: str
    limits: BodyLimits
    own_headers: Mapping[str, str]
    principal: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    take_stream_place: Callable[[], None] = lambda: None
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    stopping: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def query(self) -> MultiMapping[str]:
        """The parameters of its query."""
        return self.http.rel_url.query

    @property
    def headers(self) -> CIMultiDictProxy[str]:
        """Its headers."""
        return self.http.headers

    @property
    def media_type(self) -> str:
        """The media type of its body in lower case, without parameters; empty without a Content-Type."""
        return self.headers.get("Content-Type", "").partition(";")[0].strip().lower()

    @property
    def charset(self) -> str:
        """The charset of its body in lower case; empty without one."""
        return (self.http.charset or "").lower()

    async def body(self) -> bytes:
        """
        Read and inflate its body.

        Raises:
            Problem: The body cannot be read.
        """
        if self.charset not in ("", "utf-8", "utf8", "us-ascii"):
            raise Problem(Code.UNSUPPORTED_MEDIA_TYPE, f"charset {self.charset[:40]!r} is not supported; send UTF-8")
        if self.headers.get("Expect", "").lower() == "100-continue" and not self.http.content.at_eof():
            await self.http.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            self.http.writer.output_size = 0
        encoding = self.headers.get("Content-Encoding", "")
        return await read_body(self.http.content, self.http.content_length, encoding, self.limits)

    def common_headers(self) -> dict[str, str]:
        """Headers of every answer, for a handler that prepares its response itself."""
        return dict(self.own_headers)

    def count_as_stream(self) -> None:
        """
        Count the request as a stream, as its answer may take hours.

        Raises:
            Problem: Too many streams are open.
        """
        self.take_stream_place()
