"""Finds the route of a request in the router of aiohttp, without a server."""

from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from yarl import URL

from services.gateway.answers import Answer
from services.gateway.http_request import HttpRequest
from services.gateway.routes import Route, Routing, as_received, parameters_of
from services.gateway.transcoding.bindings import bindings

T = TypeVar("T")


async def handled(request: HttpRequest) -> Answer:
    raise NotImplementedError


async def answered(request: web.Request) -> web.StreamResponse:
    raise NotImplementedError


ROUTER = web.UrlDispatcher()

ROWS = [Route(each.method, each.path, handled, {"operationId": each.name}) for each in bindings()]

ROUTING = Routing(ROUTER, ROWS, answered)


def found(method: str, target: str) -> tuple[str, Mapping[str, str]]:
    """The name of the binding for a request, and the parameters of its path."""
    # As a server has it: not decoded.
    sent = make_mocked_request(method, "/").clone(rel_url=URL(target, encoded=True))
    request = as_received(sent)
    assert isinstance(request, web.Request)
    request._match_info = result(ROUTER.resolve(request))
    row = ROUTING.row_of(request)
    assert row is not None
    return row.operation["operationId"], parameters_of(request)


def result(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that never waits."""
    try:
        work.send(None)
    except StopIteration as end:
        value: T = end.value
        return value
    raise AssertionError("it waits")
