"""What OpenAPI says of the routes for InfluxDB's clients."""

from collections.abc import Sequence
from typing import Any

from services.gateway.answers import Code
from services.gateway.schemas import ID_EXAMPLE, ref

Operation = dict[str, Any]

STACK_ID = {
    "name": "stackID",
    "in": "path",
    "required": True,
    "schema": {"type": "string"},
    "example": ID_EXAMPLE,
    "description": "id of the stack",
}

ORG_ID = {**STACK_ID, "name": "orgID", "description": "id of the organisation"}

ORG_QUERY = {**ORG_ID, "in": "query", "required": False}


def query(name: str, about: str, schema: dict[str, Any] | None = None, required: bool = False) -> dict[str, Any]:
    """A parameter behind the question mark."""
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
    What OpenAPI says of a route.

    Args:
        name: Its operationId.
        summary: What it does.
        status: Status when it does it.
        answer: Schema of the answer then; empty: it has no body.
        body: Schema of the request; empty: it has no body.
        parameters: Those of path and query.
        errors: Which errors it may answer with, besides those that each route may.
        answers: Further answers, by ``_`` and their status.
    """
    made: Operation = {"operationId": name, "summary": summary}
    if parameters:
        made["parameters"] = list(parameters)
    if body:
        made["requestBody"] = {"required": True, "content": {"application/json": {"schema": ref(body)}}}
    responses: dict[str, Any] = {}
    for code in (*errors, Code.INVALID, Code.UNAUTHORIZED, Code.FORBIDDEN, Code.UNAVAILABLE, Code.INTERNAL_ERROR):
        responses[str(code.status)] = {"$ref": "#/components/responses/Error"}
    responses |= {number.removeprefix("_"): each for number, each in answers.items()}
    if str(status) not in responses:
        responses[str(status)] = content(summary, answer) if answer else {"description": summary}
    made["responses"] = dict(sorted(responses.items()))
    return made


def content(about: str, schema: str, *more_types: str) -> dict[str, Any]:
    """An answer with a body."""
    types = {"application/json": {"schema": ref(schema)}} | {
        each: {"schema": {"type": "string"}} for each in more_types
    }
    return {"description": about, "content": types}
