"""A request as handlers see it."""

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
        http: What the server knows of it; to stream an answer.
        id: Its id, which the services get, too.
        limits: What its body may take.
        own_headers: Headers that every answer to it has.
        principal: Name of who asks; empty where nobody needs a token.
        parameters: Those of its path.
        follow: Takes a place among the streams that follow what happens, and lets another request begin.
        gone: Set when the client has left, so that nobody waits for the answer.
        stopping: Set when the server stops: a stream without an end has to end.
    """

    http: web.BaseRequest
    id: str
    limits: BodyLimits
    own_headers: Mapping[str, str]
    principal: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    follow: Callable[[], None] = lambda: None
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    stopping: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def query(self) -> MultiMapping[str]:
        """The parameters behind the question mark."""
        return self.http.rel_url.query

    @property
    def headers(self) -> CIMultiDictProxy[str]:
        """Its headers."""
        return self.http.headers

    @property
    def media_type(self) -> str:
        """The media type of its body in lower case, without parameters; empty when it says none."""
        return self.headers.get("Content-Type", "").partition(";")[0].strip().lower()

    @property
    def charset(self) -> str:
        """The charset of its body in lower case; empty when it says none."""
        return (self.http.charset or "").lower()

    async def body(self) -> bytes:
        """
        Its body, inflated.

        Raises:
            Problem: It cannot be read.
        """
        if self.charset not in ("", "utf-8", "utf8", "us-ascii"):
            raise Problem(Code.UNSUPPORTED_MEDIA_TYPE, f"charset {self.charset[:40]!r} is not read here; send UTF-8")
        if self.headers.get("Expect", "").lower() == "100-continue" and not self.http.content.at_eof():
            await self.http.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            self.http.writer.output_size = 0
        encoding = self.headers.get("Content-Encoding", "")
        return await read_body(self.http.content, self.http.content_length, encoding, self.limits)

    def common_headers(self) -> dict[str, str]:
        """Headers of every answer, for a handler that prepares its response itself."""
        return dict(self.own_headers)

    def is_following(self) -> None:
        """
        Go over to the streams, as the answer may take hours.

        Raises:
            Problem: There are too many of them.
        """
        self.follow()
