"""The HTTP server: handles every request from its first byte to its log line."""

import asyncio
import logging
import re
import zlib
from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from aiohttp import hdrs, web
from aiohttp.web_protocol import RequestHandler

from services.core.errors import PkgerError
from services.gateway.answers import Answer, Code
from services.gateway.bodies import GZIP, BodyLimits
from services.gateway.credentials import Tokens
from services.gateway.errors import Problem, error_answer, influx_form, problem_of, retry_after
from services.gateway.http_request import HttpRequest
from services.gateway.off_loop import OFF_LOOP_FROM
from services.gateway.origins import OriginRules
from services.gateway.routes import Access, ErrorForm, Found, Routes
from services.rpc.call import loop_time, new_request_id, request_id
from services.rpc.listening import can_listen
from services.system import Ids, MachineIds

log = logging.getLogger("pkger.http")

COMPRESSED_FROM = 1024
"""Bytes from which on an answer is compressed for clients that accept gzip."""

COMPRESSION = 1
"""
Level of zlib: it makes documents 14 times smaller.

The best level makes them another quarter smaller, in three times the time.
"""

KEEP_ALIVE_SECONDS = 75.0
"""How long an idle connection stays open: longer than reverse proxies keep theirs."""

_REQUEST_ID = re.compile(r"[\w.:/+=-]{1,128}", re.ASCII)

_TRACES = ("Zap-Trace-Span", "influx-debug-id")
"""Headers with which a client asks for the id of its request in the logs."""


@dataclass(frozen=True, slots=True)
class Limits:
    """
    Limits of the requests of clients.

    Attributes:
        body: Limits of a body.
        header_seconds: Longest time for the headers of a request.
        requests: Most requests at a time.
        streams: Most streams at a time that watch events; they do not count as requests.
    """

    body: BodyLimits
    header_seconds: float = 10
    requests: int = 100
    streams: int = 100


@dataclass(frozen=True, slots=True)
class Site:
    """
    The routes of a server, and the clients that may use them.

    Attributes:
        routes: The table of routes.
        tokens: Tokens of the clients.
        origins: Origins that requests may come from.
        limits: Limits of requests.
        base_path: Prefix of all paths, for a proxy that does not strip it; empty for none.
        version: Version of pkger.
    """

    routes: Routes
    tokens: Tokens
    origins: OriginRules
    limits: Limits
    base_path: str
    version: str


@asynccontextmanager
async def serving_http(site: Site, listen: str, grace: float = 30.0, ids: Ids = MachineIds()) -> AsyncIterator[str]:
    """
    Serve until the block is left, then let requests in flight end.

    Args:
        site: The routes, and who may use them.
        listen: ``host:port`` (port 0: the kernel picks one) or ``unix:/path``.
        grace: Seconds that requests in flight have to end when the block is left.
        ids: Draws request ids.

    Yields:
        The address to connect to.

    Raises:
        OSError: *listen* is in use or not an address of this machine.
    """
    loop = asyncio.get_running_loop()
    chain = _Chain(site, ids)
    factory = _Server(chain, site.limits)
    if listen.startswith("unix:"):
        listening = await loop.create_unix_server(factory, listen.removeprefix("unix:"))
        address = listen
    else:
        host, _, port = listen.rpartition(":")
        if not can_listen(listen):
            raise OSError(f"cannot listen on {listen}: it is in use or not an address of this machine")
        listening = await loop.create_server(factory, host.strip("[]") or None, int(port))
        address = f"{host}:{listening.sockets[0].getsockname()[1]}"
    try:
        yield address
    finally:
        listening.close()
        chain.stopping.set()
        factory.pre_shutdown()
        await factory.shutdown(grace)


class _Connection(RequestHandler):
    """One connection of aiohttp, with a timeout for headers, and with errors in the form of pkger."""

    def __init__(self, server: "_Server", header_seconds: float, **arguments: Any) -> None:
        super().__init__(server, **arguments)
        self._header_seconds = header_seconds
        self._late: asyncio.TimerHandle | None = None
        self.gone = asyncio.Event()
        self._is_busy = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the timeout for the first headers."""
        super().connection_made(transport)
        self._wait_for_headers()

    def data_received(self, data: bytes) -> None:
        """Receive bytes; the first bytes of a request start the timeout for its headers."""
        if not self._is_busy:
            self._wait_for_headers()
        super().data_received(data)

    def connection_lost(self, exc: BaseException | None) -> None:
        """End the timeout, and the work for the client."""
        self.gone.set()
        self.headers_received()
        super().connection_lost(exc)

    def headers_received(self) -> None:
        """End the timeout: the headers of a request are complete."""
        self._is_busy = True
        if self._late:
            self._late.cancel()
            self._late = None

    def request_ended(self) -> None:
        """Let the next bytes start another request."""
        self._is_busy = False

    def handle_error(
        self, request: web.BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> web.StreamResponse:
        """Answer bytes that are not a request of HTTP; the log leaves them out, as they may contain a token."""
        if request.writer.output_size > 0 or isinstance(exc, ConnectionError):
            raise ConnectionError("the answer is partly sent, or the client is gone")
        self.headers_received()
        message = "this is not a request of HTTP, or one of its headers is larger than 8 KiB"
        problem = Problem(Code.INVALID, message) if status < 500 else Problem(Code.INTERNAL_ERROR, "a defect of pkger")
        log.info("malformed request", extra={"status": problem.status, "cause": type(exc).__name__})
        response = _response(error_answer(problem, influx_form(problem, "")), {})
        response.force_close()
        return response

    def _wait_for_headers(self) -> None:
        if self._late is None:
            self._late = asyncio.get_running_loop().call_later(self._header_seconds, self._give_up)

    def _give_up(self) -> None:
        self._late = None
        log.info("no request in time", extra={"seconds": self._header_seconds})
        self.force_close()


class _Server(web.Server):
    """Makes connections."""

    def __init__(self, chain: "_Chain", limits: Limits) -> None:
        super().__init__(chain)
        self._limits = limits

    def __call__(self) -> RequestHandler:
        """A new connection."""
        return _Connection(
            self,
            self._limits.header_seconds,
            loop=asyncio.get_running_loop(),
            keepalive_timeout=KEEP_ALIVE_SECONDS,
            access_log=None,
            auto_decompress=False,
            logger=logging.getLogger("aiohttp.server"),
        )


class _Places:
    """A limited number of places for requests or streams."""

    def __init__(self, most: int, seconds: int, users: str) -> None:
        """
        Args:
            most: Number of places.
            seconds: Retry-After of a request that gets no place.
            users: The users of the places, for the message; it follows their number.
        """
        self._most, self._seconds, self._users = most, seconds, users
        self._taken = 0

    def take(self) -> None:
        """
        Take a place.

        Raises:
            Problem: No place is free.
        """
        if self._taken >= self._most:
            message = f"{self._taken} {self._users}"
            raise Problem(Code.UNAVAILABLE, message, headers=retry_after(self._seconds))
        self._taken += 1

    def release(self) -> None:
        """Release a place that was taken."""
        self._taken -= 1


class _Chain:
    """Handles a request: checks it, calls its handler, sends the answer, and writes the log line."""

    def __init__(self, site: Site, ids: Ids) -> None:
        self._site, self._ids = site, ids
        self._requests = _Places(
            site.limits.requests, 1, "requests are in flight, which is the limit (PKGER_HTTP_MAX_REQUESTS); retry later"
        )
        self._streams = _Places(
            site.limits.streams, 10, "streams are open, which is the limit (PKGER_HTTP_MAX_STREAMS); retry later"
        )
        self.stopping = asyncio.Event()

    async def __call__(self, http: web.BaseRequest) -> web.StreamResponse:
        """Answer one request."""
        connection = http.protocol
        if isinstance(connection, _Connection):
            connection.headers_received()
        began, current = loop_time(), self._request_id(http)
        request_id.set(current)
        request = HttpRequest(http, current, self._site.limits.body, self._own_headers(http, current))
        request.stopping = self.stopping
        if isinstance(connection, _Connection):
            request.gone = connection.gone
        found, response = None, None
        try:
            found, answer = await self._answer(request)
            response = answer if isinstance(answer, web.StreamResponse) else await _answered(answer, request)
            if not response.prepared:
                await response.prepare(http)
            await response.write_eof()
        finally:
            if isinstance(connection, _Connection):
                connection.request_ended()
            log.info(
                "request",
                extra={
                    "method": http.method[:20],
                    "route": found.route.path if found else "",
                    "status": response.status if response else 499,
                    "bytes": response.body_length if response and response.prepared else 0,
                    "duration_ms": round((loop_time() - began) * 1000, 3),
                    "principal": request.principal,
                    "user_agent": http.headers.get(hdrs.USER_AGENT, "")[:200],
                },
            )
        return response

    async def _answer(self, request: HttpRequest) -> tuple[Found | None, Answer | web.StreamResponse]:
        """The row of a request, if there is one, and the answer."""
        method, path = request.http.method, self._path(request.http)
        form = self._site.routes.form_of(path)
        if problem := self._site.origins.problem(method, request.headers):
            return None, _problem_answer(problem, request, form)
        if method == hdrs.METH_OPTIONS and hdrs.ACCESS_CONTROL_REQUEST_METHOD in request.headers:
            return None, self._preflight(request)
        found = self._site.routes.find(method, path)
        if method == hdrs.METH_HEAD and isinstance(found, Problem) and "GET" in found.headers.get("Allow", ""):
            found = self._site.routes.find(hdrs.METH_GET, path)
        if isinstance(found, Problem) or found.route.access is not Access.OPEN:
            principal = self._site.tokens.principal(request.headers.get(hdrs.AUTHORIZATION))
            if isinstance(principal, Problem):
                return None, _problem_answer(principal, request, form)
            request.principal = principal
        if isinstance(found, Problem):
            return None, _problem_answer(found, request, form)
        request.parameters = found.parameters
        return found, await self._handled(found, request)

    async def _handled(self, found: Found, request: HttpRequest) -> Answer | web.StreamResponse:
        """The answer of a handler, which has a place among the requests or the streams."""
        with ExitStack() as held:

            def take_stream_place() -> None:
                self._streams.take()
                # Releases the place among the requests.
                held.close()
                held.callback(self._streams.release)

            request.take_stream_place = take_stream_place
            try:
                if found.route.access is not Access.OPEN:
                    self._requests.take()
                    held.callback(self._requests.release)
                return await found.route.handle(request)
            except ConnectionError:
                # The client is gone.
                raise
            except Exception as error:
                problem = problem_of(error, request.id)
                if problem.code is Code.INTERNAL_ERROR and not isinstance(error, Problem | PkgerError):
                    log.exception("request failed", extra={"route": found.route.path})
                return _problem_answer(problem, request, found.route.form)

    def _preflight(self, request: HttpRequest) -> Answer:
        headers = self._site.origins.preflight_headers(
            request.headers.get(hdrs.ORIGIN), request.headers.get(hdrs.ACCESS_CONTROL_REQUEST_HEADERS, "")[:1000]
        )
        if headers is None:
            message = "pages of this origin may not send requests; list the origin in PKGER_HTTP_ORIGINS"
            return _problem_answer(Problem(Code.FORBIDDEN, message), request)
        return Answer(204, headers=headers)

    def _path(self, http: web.BaseRequest) -> str:
        """The path of a request, percent-encoded, without the base path."""
        path, base = http.rel_url.raw_path, self._site.base_path
        return path[len(base) :] if base and path.startswith(f"{base}/") else path

    def _request_id(self, http: web.BaseRequest) -> str:
        given = http.headers.get("X-Request-Id", "")
        return given if _REQUEST_ID.fullmatch(given) else new_request_id(self._ids)

    def _own_headers(self, http: web.BaseRequest, current: str) -> dict[str, str]:
        traced = {"trace-id": current, "trace-sampled": "true"} if any(name in http.headers for name in _TRACES) else {}
        return {
            "X-Influxdb-Build": "OSS",
            "X-Influxdb-Version": self._site.version,
            "X-Request-Id": current,
            "X-Content-Type-Options": "nosniff",
            "Cache-Control": "no-store",
            "Server": "pkger",
            **traced,
            **self._site.origins.headers_for(http.headers.get(hdrs.ORIGIN)),
        }


def _problem_answer(problem: Problem, request: HttpRequest, form: ErrorForm = influx_form) -> Answer:
    """The answer for a problem, in a form."""
    return error_answer(problem, form(problem, request.id))


async def _answered(answer: Answer, request: HttpRequest) -> web.Response:
    headers = request.own_headers
    if len(answer.body) >= COMPRESSED_FROM and _reads_gzip(request.headers.get(hdrs.ACCEPT_ENCODING, "")):
        answer = replace(answer, body=await _compressed(answer.body))
        headers = {**headers, hdrs.CONTENT_ENCODING: "gzip"}
    return _response(answer, headers)


async def _compressed(body: bytes) -> bytes:
    """*body* as gzip; zlib releases the lock of Python, so a thread does not delay the event loop."""
    if len(body) < OFF_LOOP_FROM:
        return zlib.compress(body, COMPRESSION, GZIP)
    return await asyncio.to_thread(zlib.compress, body, COMPRESSION, GZIP)


def _response(answer: Answer, own_headers: Mapping[str, str]) -> web.Response:
    headers = {**own_headers, **answer.headers}
    if answer.body or answer.status not in (204, 304):
        headers["Content-Type"] = answer.media_type
    response = web.Response(status=answer.status, body=answer.body or None, headers=headers)
    if headers.get("Connection") == "close":
        response.force_close()
    return response


def _reads_gzip(accepted: str) -> bool:
    """Whether an Accept-Encoding accepts gzip."""
    for each in accepted.lower().split(","):
        coding, _, weight = each.partition(";")
        if coding.strip() in ("gzip", "x-gzip"):
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False
