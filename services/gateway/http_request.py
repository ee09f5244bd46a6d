"""The HTTP request that the gateway passes to handlers."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from aiohttp import web
from multidict import CIMultiDictProxy, MultiMapping

from services.gateway.answers import Code
from services.gateway.bodies import read_body
from services.gateway.errors import Problem
from services.gateway.settings import GatewaySettings


@dataclass(slots=True)
class HttpRequest:
    """
    An HTTP request with its context.

    Attributes:
        http: The request of aiohttp; handlers need it to stream a response.
        id: The request id; the gateway also sends it to the services.
        limits: The settings, which limit the body.
        own_headers: Headers of every response to the request.
        principal: Name of the client; empty if no token is needed.
        parameters: Parameters of the path.
        count_as_stream: Counts the request as a stream, as its response may take hours, and no longer as a request.
            It raises a Problem if too many streams are open.
        gone: Event that is set when the client has disconnected; no response is needed then.
        stopping: Event that is set when the server stops; endless streams must end then.
    """

    http: web.BaseRequest
    id: str
    limits: GatewaySettings
    own_headers: Mapping[str, str]
    principal: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    count_as_stream: Callable[[], None] = lambda: None
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    stopping: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def query(self) -> MultiMapping[str]:
        """The parameters of the query."""
        return self.http.rel_url.query

    @property
    def headers(self) -> CIMultiDictProxy[str]:
        """The headers of the request."""
        return self.http.headers

    @property
    def media_type(self) -> str:
        """The media type of the body in lower case, without parameters; empty without a Content-Type."""
        return self.headers.get("Content-Type", "").partition(";")[0].strip().lower()

    @property
    def charset(self) -> str:
        """The charset of the body in lower case; empty without one."""
        return (self.http.charset or "").lower()

    async def body(self) -> bytes:
        """
        Read and inflate the body.

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
