"""The server: from a request to its answer, with faults and records."""

import asyncio
from collections.abc import Iterator

from aiohttp import web

from tests.influx.access import ANONYMOUS, Caller
from tests.influx.authorizations import Authorizations
from tests.influx.buckets import Buckets
from tests.influx.call import Answer, Call, Handler, refusal
from tests.influx.checks import Checks
from tests.influx.dashboards import Dashboards
from tests.influx.endpoints import Endpoints
from tests.influx.faults import Ending, Fault, Faults, waited
from tests.influx.labels import Labels, Mappings
from tests.influx.orgs import Orgs, Secrets
from tests.influx.problem import Problem
from tests.influx.records import Records, Request
from tests.influx.routing import Route, Router
from tests.influx.rules import Rules
from tests.influx.setup import VERSION, Setup
from tests.influx.state import State
from tests.influx.tasks import Tasks
from tests.influx.telegrafs import Telegrafs
from tests.influx.variables import Variables

MOST_BYTES = 1 << 30
"""The real server has no limit; aiohttp requires one."""


_RESOURCES = (
    Orgs,
    Secrets,
    Labels,
    Mappings,
    Buckets,
    Variables,
    Checks,
    Endpoints,
    Rules,
    Tasks,
    Telegrafs,
    Dashboards,
)


class Stand:
    """
    A stand-in for one InfluxDB server. Requests change its state one after another, atomically.

    Attributes:
        defects: Errors of the stand-in itself. A client gets a 500 for them, which a test may expect for other reasons.
    """

    def __init__(self, state: State) -> None:
        self.state, self.faults, self.records = state, Faults(), Records()
        self.defects: list[Exception] = []
        open_routes = Setup(state).routes()
        self._authorizations = Authorizations(state)
        self._open = {handler for _, _, handler in open_routes}
        self._router = Router([*open_routes, *self._routes()])
        self._late: set[asyncio.Task[None]] = set()

    def _routes(self) -> Iterator[Route]:
        for resource in _RESOURCES:
            yield from resource(self.state).routes()
        yield from self._authorizations.routes()

    def application(self) -> web.Application:
        """The application to be served by aiohttp."""
        application = web.Application(client_max_size=MOST_BYTES)
        application.router.add_route("*", "/{path:.*}", self._handle)
        application.on_shutdown.append(self._stop)
        return application

    def answer(self, method: str, path: str, request: web.Request, body: bytes) -> Answer:
        """Perform a request."""
        try:
            return self._handler(method, path, request, body)
        except Problem as problem:
            return refusal(problem)
        except Exception as error:
            self.defects.append(error)
            raise

    def _handler(self, method: str, path: str, request: web.Request, body: bytes) -> Answer:
        found = self._router.find(method, path)
        is_open = not isinstance(found, Answer) and found[0] in self._open
        caller = ANONYMOUS if is_open else self._caller(request.headers.get("Authorization", ""))
        if isinstance(found, Answer):
            return found
        handler: Handler = found[0]
        return handler(Call(request.query, request.headers, body, caller, found[1]))

    def _caller(self, credentials: str) -> Caller:
        scheme, _, token = credentials.partition(" ")
        caller = self._authorizations.caller(token) if token and scheme.lower() in {"token", "bearer"} else None
        if caller is None:
            raise Problem("unauthorized", "unauthorized access")
        return caller

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        loop = asyncio.get_running_loop()
        path = request.raw_path.partition("?")[0]
        record = Request(request.method, path, request.query_string, b"", loop.time())
        records = self.records
        records.requests.append(record)
        records.in_flight += 1
        records.begin()
        records.most_in_flight = max(records.most_in_flight, records.in_flight)
        try:
            fault = self.faults.next(request.method, path)
            record.body = await request.read()
            return await self._answered(request, record, fault)
        finally:
            records.end()
            record.ended = loop.time()
            records.in_flight -= 1

    async def _answered(self, request: web.Request, record: Request, fault: Fault) -> web.StreamResponse:
        if fault.arrived:
            fault.arrived.set()
        if fault.is_late:
            task = asyncio.create_task(self._perform_late(request, record, fault))
            self._late.add(task)
            self.records.begin()
            task.add_done_callback(self._end_late)
            return _dropped(request)
        await waited(fault.before)
        answer = fault.answer
        if fault.has_effect:
            real = self.answer(record.method, record.path, request, record.body)
            answer = answer or real
        if fault.done:
            fault.done.set()
        await waited(fault.after)
        if fault.ending is Ending.DROPPED or answer is None:
            return _dropped(request)
        record.status = answer.status
        if fault.ending is Ending.CUT:
            return await _cut(request, answer)
        return web.Response(status=answer.status, body=answer.body, headers=_headers(answer))

    async def _perform_late(self, request: web.Request, record: Request, fault: Fault) -> None:
        await waited(fault.before)
        self.answer(record.method, record.path, request, record.body)

    def _end_late(self, task: asyncio.Task[None]) -> None:
        self._late.discard(task)
        self.records.end()

    async def _stop(self, _: web.Application) -> None:
        for task in self._late:
            task.cancel()


def _headers(answer: Answer) -> dict[str, str]:
    headers = {"X-Influxdb-Build": "OSS", "X-Influxdb-Version": VERSION, **answer.headers}
    if answer.body is not None:
        headers["Content-Type"] = answer.content_type
    return headers


def _dropped(request: web.Request) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


async def _cut(request: web.Request, answer: Answer) -> web.StreamResponse:
    body = answer.body or b""
    response = web.StreamResponse(status=answer.status, headers=_headers(answer))
    response.content_length = len(body)
    await response.prepare(request)
    await response.write(body[: len(body) // 2])
    if request.transport is not None:
        request.transport.close()
    return response
