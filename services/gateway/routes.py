"""The rows of all routes, from which the router of aiohttp and OpenAPI are made."""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any
from urllib.parse import unquote

from aiohttp import web

from services.gateway.answers import Answer, Code
from services.gateway.errors import Problem, influx_form
from services.gateway.http_request import HttpRequest

Handler = Callable[[HttpRequest], Awaitable[Answer | web.StreamResponse]]
"""Answers one request: with a whole answer, or with a response that it has prepared and written itself."""

Endpoint = Callable[[web.Request], Awaitable[web.StreamResponse]]

ErrorForm = Callable[[Problem, str], Any]
"""Makes the body of an error from a problem and the id of the request."""

SERVED = (
    "this server has packages and stacks (/api/v2/templates, /api/v2/stacks), with /api/v2/orgs and /api/v2/me; "
    "/api/v2/swagger.json describes them. Buckets, tasks and all else are routes of the platform itself"
)
"""The message for an unknown route: the routes that exist."""

_PARAMETER = re.compile(r"\{(\w+)\}")


class Access(Enum):
    """Who may use a route. Roles belong here."""

    OPEN = auto()
    TOKEN = auto()


@dataclass(frozen=True, slots=True)
class Route:
    """
    One row.

    Attributes:
        method: Method of HTTP.
        path: Path, with ``{name}`` for a segment.
        handle: Answers the requests.
        operation: Its OpenAPI operation; empty: the document leaves the route out.
        access: Who may use it.
        form: Makes the bodies of its errors.
    """

    method: str
    path: str
    handle: Handler
    operation: Mapping[str, Any] = field(default_factory=dict)
    access: Access = Access.TOKEN
    form: ErrorForm = influx_form


class Routing:
    """The rows in a router of aiohttp."""

    def __init__(self, router: web.UrlDispatcher, rows: Iterable[Route], answer: Endpoint) -> None:
        """
        Args:
            router: The router, which gets a route for each row, and one for all other requests.
            rows: The rows.
            answer: Answers all requests.
        """
        self._router = router
        self._rows: dict[web.AbstractRoute, Route] = {}
        paths: dict[str, dict[str, Route]] = {}
        for row in rows:
            paths.setdefault(row.path, {})[row.method] = row
        # A path with more literal text is tried first: "{name}:cancel" before "{name}".
        for path in sorted(paths, key=lambda path: -len(_PARAMETER.sub("", path))):
            resource = router.add_resource(_PARAMETER.sub(r"{\1:[^/]+}", path))
            head = {"HEAD": paths[path]["GET"]} if "GET" in paths[path] else {}
            for method, row in {**head, **paths[path]}.items():
                self._rows[resource.add_route(method, answer, expect_handler=_no_response)] = row
        router.add_route("*", "/{path:.*}", answer, expect_handler=_no_response)

    def row_of(self, http: web.Request) -> Route | None:
        """The row of a request that the router has resolved; None when there is none."""
        return self._rows.get(http.match_info.route)

    async def missing(self, http: web.Request) -> Problem:
        """The problem of a request without a row, which only a client with a token may see."""
        matching = [each for each in self._router.resources() if (await each.resolve(http))[1]]
        rows = [self._rows[route] for resource in matching for route in resource if route in self._rows]
        if not rows:
            return Problem(Code.NOT_FOUND, f"there is no such route: {SERVED}")
        allowed = ", ".join(sorted({row.method for row in rows}))
        message = f"{http.method[:20]} is not a method of this route; use {allowed}"
        return Problem(Code.METHOD_NOT_ALLOWED, message, headers={"Allow": allowed})


async def _no_response(http: web.Request) -> None:
    """Send no ``100 Continue`` yet: ``HttpRequest.body`` does when it reads the body, of an accepted request only."""


def as_received(http: web.BaseRequest, base_path: str = "") -> web.BaseRequest:
    """
    A request whose path the router matches as it was received, percent-encoded, without the base path.

    The router decodes a path before it matches, so that an encoded colon in a segment would begin a verb
    (``/stacks/a%3Awatch``). Therefore each percent sign is encoded once more; ``parameters_of`` decodes the segments.
    A slash at the end is ignored.
    """
    path = http.rel_url.raw_path
    if base_path and path.startswith(f"{base_path}/"):
        path = path.removeprefix(base_path)
    path = (path.removesuffix("/") or path).replace("%", "%25")
    if path == http.rel_url.raw_path:
        return http
    return http.clone(rel_url=http.rel_url.with_path(path, encoded=True, keep_query=True))


def parameters_of(http: web.Request) -> dict[str, str]:
    """The parameters of the path of a request, decoded."""
    return {name: unquote(text) for name, text in http.match_info.items()}
