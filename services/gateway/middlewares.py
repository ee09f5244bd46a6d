"""What the server does with each request before and after the handler of its row."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import cast

from aiohttp import hdrs, web

from services.access.authentication import Caller
from services.access.listeners import ListenerKind
from services.core.errors import PkgerError, ServiceUnavailable
from services.gateway.answers import Answer, Code
from services.gateway.connection import Connection
from services.gateway.entrances import HttpEntrance
from services.gateway.errors import Problem, error_answer, influx_form, problem_of, retry_after
from services.gateway.http_request import HttpRequest
from services.gateway.responses import response_of
from services.gateway.routes import Access, Endpoint, ErrorForm, Route, Routing, parameters_of
from services.gateway.settings import GatewaySettings
from services.rpc.call import caller, loop_time, request_id, usable_request_id
from services.rpc.error_frames import forget_traceback
from services.system import Ids

log = logging.getLogger("pkger.http")

_TRACES = ("Zap-Trace-Span", "influx-debug-id")
"""Headers with which a client asks for the id of its request in the logs."""

_CONTEXT = web.RequestKey("context", HttpRequest)


@dataclass(frozen=True, slots=True)
class Site:
    """
    The routes of a server.

    Attributes:
        routes: The rows of all routes.
        settings: Origins, base path and limits of requests.
        version: Version of pkger.
        forms: Forms of errors of requests without a row, by prefix of the path; other paths have ``influx_form``.
    """

    routes: Sequence[Route]
    settings: GatewaySettings
    version: str
    forms: Mapping[str, ErrorForm]


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

    def take(self, places: ExitStack) -> None:
        """
        Take a place until *places* are closed.

        Raises:
            Problem: No place is free.
        """
        if self._taken >= self._most:
            raise Problem(Code.UNAVAILABLE, f"{self._taken} {self._users}", headers=retry_after(self._seconds))
        self._taken += 1
        places.callback(self._release)

    def _release(self) -> None:
        self._taken -= 1


class Middlewares:
    """
    The middlewares and the endpoint of an application, with the state that they share.

    Attributes:
        stopping: Event that is set when the server stops.
    """

    def __init__(self, site: Site, entrance: HttpEntrance, router: web.UrlDispatcher, ids: Ids) -> None:
        self._site, self._ids, self._tokens = site, ids, entrance.tokens
        self._origins = site.settings.origin_rules(entrance.listener.kind is not ListenerKind.NETWORK)
        self._routing = Routing(router, site.routes, self._answer)
        limits = site.settings
        self._requests = _Places(
            limits.requests, 1, "requests are in flight, which is the limit (PKGER_HTTP_MAX_REQUESTS); retry later"
        )
        self._streams = _Places(
            limits.streams, 10, "streams are open, which is the limit (PKGER_HTTP_MAX_STREAMS); retry later"
        )
        self.stopping = asyncio.Event()

    @web.middleware
    async def send(self, request: web.Request, handler: Endpoint) -> web.StreamResponse:
        """Give a request its context, send its response, and write the line of the log."""
        began, context, response = loop_time(), self._context_of(request), None
        connection = cast("Connection | None", request.transport)
        if connection is None:
            context.gone.set()
        else:
            connection.begin_request()
            context.gone = connection.gone
        try:
            response = await handler(request)
            if not response.prepared:
                await response.prepare(request)
            await response.write_eof()
        except ConnectionError:
            # The client is gone. aiohttp notices that when it writes this response.
            if connection is not None:
                connection.close()
            return web.Response()
        finally:
            if connection is not None:
                connection.end_request()
            self._log(context, response, began)
        return response

    @web.middleware
    async def explain(self, request: web.Request, handler: Endpoint) -> web.StreamResponse:
        """Turn errors into responses."""
        context, row = request[_CONTEXT], self._routing.row_of(request)
        try:
            return await handler(request)
        except ConnectionError:
            raise
        except Exception as error:
            problem = problem_of(error, context.id)
            if isinstance(error, ServiceUnavailable):
                log.warning("a service that the request needs is unavailable", extra={"problem": str(error)})
            if problem.code is Code.INTERNAL_ERROR and not isinstance(error, Problem | PkgerError):
                log.exception("request failed", extra={"route": row.path if row else ""})
            # Its traceback has the request and its document, in a cycle, which is collected late.
            forget_traceback(error)
            form = row.form if row else self._form_of(request.rel_url.raw_path)
            return await _response(error_answer(problem, form(problem, context.id)), context)

    @web.middleware
    async def admit(self, request: web.Request, handler: Endpoint) -> web.StreamResponse:
        """Refuse pages of other sites, clients without a token, and requests without a route; answer preflights."""
        context, row = request[_CONTEXT], self._routing.row_of(request)
        if problem := self._origins.problem(request.method, request.headers, request.headers.getall(hdrs.ORIGIN, [])):
            raise problem
        if request.method == hdrs.METH_OPTIONS and hdrs.ACCESS_CONTROL_REQUEST_METHOD in request.headers:
            return await _response(self._preflight(request.headers), context)
        if row is None or row.access is not Access.OPEN:
            principal = self._tokens.principal(request.headers.getall(hdrs.AUTHORIZATION, []))
            if isinstance(principal, Problem):
                raise principal
            context.principal = principal
            caller.set(Caller(principal))
        if row is None:
            raise await self._routing.missing(request)
        return await handler(request)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        """Call the handler of the row, in a place among the requests or the streams."""
        context, row = request[_CONTEXT], self._routing.row_of(request)
        assert row is not None  # noqa: S101 - admit refuses other requests
        context.parameters = parameters_of(request)
        with ExitStack() as places:

            def count_as_stream() -> None:
                self._streams.take(stream := ExitStack())
                # Releases the place among the requests.
                places.close()
                places.push(stream)

            context.count_as_stream = count_as_stream
            if row.access is not Access.OPEN:
                self._requests.take(places)
            answer = await row.handle(context)
            return answer if isinstance(answer, web.StreamResponse) else await _response(answer, context)

    def _context_of(self, http: web.Request) -> HttpRequest:
        current = usable_request_id(http.headers.get("X-Request-Id"), self._ids)
        request_id.set(current)
        request = HttpRequest(http, current, self._site.settings, self._own_headers(http, current))
        request.stopping = self.stopping
        http[_CONTEXT] = request
        return request

    def _own_headers(self, http: web.Request, current: str) -> dict[str, str]:
        traced = {"trace-id": current, "trace-sampled": "true"} if any(name in http.headers for name in _TRACES) else {}
        return {
            "X-Influxdb-Build": "OSS",
            "X-Influxdb-Version": self._site.version,
            "X-Request-Id": current,
            "X-Content-Type-Options": "nosniff",
            "Cache-Control": "no-store",
            "Server": "pkger",
            **traced,
            **self._origins.headers_for(http.headers.get(hdrs.ORIGIN)),
        }

    def _preflight(self, sent: Mapping[str, str]) -> Answer:
        names = sent.get(hdrs.ACCESS_CONTROL_REQUEST_HEADERS, "")[:1000]
        headers = self._origins.preflight_headers(sent.get(hdrs.ORIGIN), names)
        if headers is None:
            message = "pages of this origin may not send requests; list the origin in PKGER_HTTP_ORIGINS"
            raise Problem(Code.FORBIDDEN, message)
        return Answer(204, headers=headers)

    def _form_of(self, path: str) -> ErrorForm:
        """The form of errors at a path without a row."""
        return next((form for prefix, form in self._site.forms.items() if path.startswith(prefix)), influx_form)

    def _log(self, request: HttpRequest, response: web.StreamResponse | None, began: float) -> None:
        row = self._routing.row_of(cast("web.Request", request.http))
        log.info(
            "request",
            extra={
                "method": request.http.method[:20],
                "route": row.path if row else "",
                "status": response.status if response else 499,
                "bytes": response.body_length if response and response.prepared else 0,
                "duration_ms": round((loop_time() - began) * 1000, 3),
                "principal": request.principal,
                "user_agent": request.headers.get(hdrs.USER_AGENT, "")[:200],
            },
        )


async def _response(answer: Answer, request: HttpRequest) -> web.Response:
    return await response_of(answer, request.headers.get(hdrs.ACCEPT_ENCODING, ""), request.own_headers)
