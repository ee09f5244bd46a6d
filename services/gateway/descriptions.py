"""Rows of routes for InfluxDB's clients, with their OpenAPI operations."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from services.gateway.answers import Code
from services.gateway.requests.members import ID_EXAMPLE
from services.gateway.routes import Access, Handler, Route
from services.gateway.schemas import ref

_IDS = {"stackID": "id of the stack", "orgID": "id of the organization"}
"""Descriptions of ids in paths and queries."""

_OF_EVERY_ROUTE = (Code.INVALID, Code.UNAUTHORIZED, Code.FORBIDDEN, Code.UNAVAILABLE, Code.INTERNAL_ERROR)

_OF_BODIES = (Code.NOT_FOUND, Code.UNPROCESSABLE_ENTITY, Code.REQUEST_TOO_LARGE, Code.UNSUPPORTED_MEDIA_TYPE)
"""Further errors of a route with a body."""

_TEXT = {"type": "string"}


def route(
    method: str,
    path: str,
    handle: Handler,
    name: str,
    *,
    status: int = 200,
    answer: str = "",
    body: str = "",
    query: Sequence[dict[str, Any]] = (),
    errors: Sequence[Code] = (),
    more: Mapping[int, dict[str, Any]] | None = None,
    access: Access = Access.TOKEN,
) -> Route:
    """
    A row; the docstring of its handler, up to the first semicolon or colon, describes it.

    Args:
        method: Method of HTTP.
        path: Path, with ``{name}`` for a segment.
        handle: Answers the requests.
        name: Its operationId.
        status: Status of a successful answer.
        answer: Name of the schema of a successful answer; empty for an answer without a body.
        body: Name of the schema of the request; empty for a request without a body.
        query: Parameters of query and headers.
        errors: Errors of this route, in addition to those of every route and of routes with a body.
        more: Further answers, by status.
        access: Who may use it.
    """
    summary = re.split("[;:.]", handle.__doc__ or name)[0].strip() + "."
    parameters = [*map(_id_in_path, re.findall(r"\{(\w+)\}", path)), *query]
    codes = (*errors, *(_OF_BODIES if body else ()), *_OF_EVERY_ROUTE)
    answers = {
        **{code.status: {"$ref": "#/components/responses/Error"} for code in codes},
        status: content(summary, answer) if answer else {"description": summary},
        **(more or {}),
    }
    operation = {
        "operationId": name,
        "summary": summary,
        **({"parameters": parameters} if parameters else {}),
        **({"requestBody": {"required": True, **_content({"application/json": ref(body)})}} if body else {}),
        "responses": {str(number): answers[number] for number in sorted(answers)},
    }
    return Route(method, path, handle, operation, access)


def parameter(name: str, about: str, schema: Mapping[str, Any] = _TEXT, place: str = "query") -> dict[str, Any]:
    """A parameter of the query, or a header."""
    return {"name": name, "in": place, "required": False, "description": about, "schema": schema}


def id_parameter(name: str, required: bool = False) -> dict[str, Any]:
    """An id in the query."""
    return {**parameter(name, _IDS[name]), "required": required, "example": ID_EXAMPLE}


def _id_in_path(name: str) -> dict[str, Any]:
    return {**id_parameter(name, required=True), "in": "path"}


def content(about: str, schema: str, *more_types: str) -> dict[str, Any]:
    """An answer with a body: JSON of the named schema, or a text of one of *more_types*."""
    return {"description": about, **_content({"application/json": ref(schema), **dict.fromkeys(more_types, _TEXT)})}


def _content(schemas: Mapping[str, Any]) -> dict[str, Any]:
    return {"content": {media_type: {"schema": schema} for media_type, schema in schemas.items()}}
