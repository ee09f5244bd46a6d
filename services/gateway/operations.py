"""OpenAPI operations of the routes for InfluxDB's clients."""

from collections.abc import Sequence
from typing import Any

from services.gateway.answers import Code
from services.gateway.requests.bodies import ID_EXAMPLE
from services.gateway.schemas import ref

Operation = dict[str, Any]

STACK_ID = {
    "name": "stackID",
    "in": "path",
    "required": True,
    "schema": {"type": "string"},
    "example": ID_EXAMPLE,
    "description": "id of the stack",
}

ORG_ID = {**STACK_ID, "name": "orgID", "description": "id of the organization"}

ORG_QUERY = {**ORG_ID, "in": "query", "required": False}


def query(name: str, about: str, schema: dict[str, Any] | None = None, required: bool = False) -> dict[str, Any]:
    """A parameter of the query."""
    return {
        "name": name,
        "in": "query",
        "required": required,
        "description": about,
        "schema": schema or {"type": "string"},
    }


def operation(
    name: str,
    summary: str,
    *,
    status: int = 200,
    answer: str = "",
    body: str = "",
    parameters: Sequence[dict[str, Any]] = (),
    errors: Sequence[Code] = (),
    **answers: dict[str, Any],
) -> Operation:
    """
    The OpenAPI operation of a route.

    Args:
        name: Its operationId.
        summary: One sentence that says what it does.
        status: Status of a successful answer.
        answer: Name of the schema of a successful answer; empty for an answer without a body.
        body: Name of the schema of the request; empty for a request without a body.
        parameters: Parameters of path, query and headers.
        errors: Errors of this route, in addition to those of every route.
        answers: Further answers, each named by ``_`` and its status.
    """
    document: Operation = {"operationId": name, "summary": summary}
    if parameters:
        document["parameters"] = list(parameters)
    if body:
        document["requestBody"] = {"required": True, "content": {"application/json": {"schema": ref(body)}}}
    responses: dict[str, Any] = {}
    for code in (*errors, Code.INVALID, Code.UNAUTHORIZED, Code.FORBIDDEN, Code.UNAVAILABLE, Code.INTERNAL_ERROR):
        responses[str(code.status)] = {"$ref": "#/components/responses/Error"}
    responses |= {number.removeprefix("_"): each for number, each in answers.items()}
    if str(status) not in responses:
        responses[str(status)] = content(summary, answer) if answer else {"description": summary}
    document["responses"] = dict(sorted(responses.items()))
    return document


def content(about: str, schema: str, *more_types: str) -> dict[str, Any]:
    """An answer with a body: JSON of the named schema, or a text of one of *more_types*."""
    types = {"application/json": {"schema": ref(schema)}} | {
        each: {"schema": {"type": "string"}} for each in more_types
    }
    return {"description": about, "content": types}
