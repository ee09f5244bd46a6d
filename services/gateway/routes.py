"""The table of routes: routing, 404, 405, ``Allow`` and OpenAPI are made from it."""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from types import MappingProxyType
from typing import Any
from urllib.parse import unquote

from aiohttp import web

from services.gateway.answers import Answer, Code
from services.gateway.errors import Problem, influx_form
from services.gateway.http_request import HttpRequest

Handler = Callable[[HttpRequest], Awaitable[Answer | web.StreamResponse]]
"""Answers one request: with a whole answer, or with a response that it has prepared and written itself."""

ErrorForm = Callable[[Problem, str], Any]
"""Makes the body of an error from a problem and the id of the request."""

SERVED = (
    "this server has packages and stacks (/api/v2/templates, /api/v2/stacks), with /api/v2/orgs and /api/v2/me; "
    "/api/v2/swagger.json describes them. Buckets, tasks and all else are routes of the platform itself"
)
"""The message for an unknown route: the routes that exist."""

_PARAMETER = re.compile(r"\{(\w+)(\.\.\.)?\}")


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
        path: Path, with ``{name}`` for a segment and ``{name...}`` for one or more.
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


@dataclass(frozen=True, slots=True)
class Found:
    """The row for a request, and the parameters of its path."""

    route: Route
    parameters: Mapping[str, str]


NO_FORMS: Mapping[str, ErrorForm] = MappingProxyType({})


class Routes:
    """
    The table.

    Attributes:
        rows: Its rows, in the order of the constructor.
    """

    def __init__(self, rows: Iterable[Route], forms: Mapping[str, ErrorForm] = NO_FORMS) -> None:
        """
        Args:
            rows: The rows.
            forms: Forms of errors before a row is found, by prefix of the path; other paths have ``influx_form``.
        """
        self.rows = tuple(rows)
        self._forms = forms
        patterns: dict[str, dict[str, Route]] = {}
        for row in self.rows:
            patterns.setdefault(row.path, {})[row.method] = row
        # A path with more literal text is tried first: "{name}:cancel" before "{name}".
        by_text = sorted(patterns, key=lambda path: -len(_PARAMETER.sub("", path)))
        self._patterns = [(_pattern(path), patterns[path]) for path in by_text]

    def form_of(self, path: str) -> ErrorForm:
        """The form of errors at a path, which need not have a row."""
        return next((form for beginning, form in self._forms.items() if path.startswith(beginning)), influx_form)

    def find(self, method: str, path: str) -> Found | Problem:
        """
        The row for a request; or the problem, which only a client with a token may see.

        Args:
            method: Its method.
            path: Its path, percent-encoded as received; a slash at its end is ignored.
        """
        path = path.removesuffix("/") or path
        allowed: list[str] = []
        for pattern, rows in self._patterns:
            if found := pattern.fullmatch(path):
                if method in rows:
                    return Found(rows[method], {name: unquote(text) for name, text in found.groupdict().items()})
                allowed += rows
        if allowed:
            listed = ", ".join(sorted(set(allowed)))
            return Problem(
                Code.METHOD_NOT_ALLOWED,
                f"{method[:20]} is not a method of this route; use {listed}",
                headers={"Allow": listed},
            )
        return Problem(Code.NOT_FOUND, f"there is no such route: {SERVED}")


def _pattern(path: str) -> re.Pattern[str]:
    """The regular expression of the paths of a row."""
    pieces, end = [], 0
    for parameter in _PARAMETER.finditer(path):
        pieces.append(re.escape(path[end : parameter.start()]))
        pieces.append(f"(?P<{parameter[1]}>{'.+' if parameter[2] else '[^/]+'})")
        end = parameter.end()
    return re.compile("".join(pieces) + re.escape(path[end:]))
