"""The OpenAPI document, made from the rows that the routing uses."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from services.gateway.answers import Answer, json_answer
from services.gateway.http_request import HttpRequest
from services.gateway.routes import Access, Route
from services.gateway.schemas import ref, schemas


def document(rows: Iterable[Route], version: str, more_schemas: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """
    The OpenAPI document.

    Args:
        rows: The rows of all routes.
        version: Version of pkger.
        more_schemas: Schemas in addition to those of the routes for InfluxDB's clients.
    """
    paths: dict[str, dict[str, Any]] = {}
    for row in rows:
        if row.operation:
            paths.setdefault(row.path, {})[row.method.lower()] = _operation(row)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "pkger",
            "version": version,
            "description": "Packages and stacks, for clients of InfluxDB and by pkger's own API.",
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": {**schemas(), **(more_schemas or {})},
            "responses": {
                "Error": {
                    "description": "The request failed; the body says why.",
                    "headers": {
                        "X-Platform-Error-Code": {"schema": {"type": "string"}, "description": "the value of code"},
                        "X-Request-Id": {"schema": {"type": "string"}, "description": "id of the request in the logs"},
                    },
                    "content": {"application/json": {"schema": ref("Error")}},
                }
            },
            "securitySchemes": {
                "token": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "Authorization",
                    "description": "Token TOKEN, or Bearer TOKEN",
                }
            },
        },
        "security": [{"token": []}],
    }


def _operation(row: Route) -> dict[str, Any]:
    return {**row.operation, **({"security": []} if row.access is Access.OPEN else {})}


class OpenApi:
    """The handler. The document is made once, at the first request."""

    def __init__(self, version: str, more_schemas: Mapping[str, Any] | None = None) -> None:
        self._version, self._more = version, more_schemas
        self._rows: Sequence[Route] = ()
        self._answer: Answer | None = None

    def describe(self, rows: Sequence[Route]) -> None:
        """Set the rows to describe; one of them is the route of this handler."""
        self._rows = rows

    async def read(self, request: HttpRequest) -> Answer:
        """Read this document."""
        if self._answer is None:
            self._answer = json_answer(document(self._rows, self._version, self._more))
        return self._answer
