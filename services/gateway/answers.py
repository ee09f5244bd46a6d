"""The answer of a handler, and the error codes of the HTTP API."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import orjson

JSON_TYPE = "application/json; charset=utf-8"
"""Media type of every answer with JSON; InfluxDB's command line reads the body of no other."""


class Code(StrEnum):
    """The error codes of InfluxDB's HTTP API; its clients know no others."""

    INTERNAL_ERROR = "internal error"
    NOT_IMPLEMENTED = "not implemented"
    NOT_FOUND = "not found"
    CONFLICT = "conflict"
    INVALID = "invalid"
    UNPROCESSABLE_ENTITY = "unprocessable entity"
    EMPTY_VALUE = "empty value"
    UNAVAILABLE = "unavailable"
    FORBIDDEN = "forbidden"
    UNAUTHORIZED = "unauthorized"
    METHOD_NOT_ALLOWED = "method not allowed"
    REQUEST_TOO_LARGE = "request too large"
    UNSUPPORTED_MEDIA_TYPE = "unsupported media type"

    @property
    def status(self) -> int:
        """The HTTP status of an answer with this code."""
        return _STATUSES[self]


_STATUSES = {
    Code.INTERNAL_ERROR: 500,
    Code.NOT_IMPLEMENTED: 501,
    Code.NOT_FOUND: 404,
    Code.CONFLICT: 422,
    Code.INVALID: 400,
    Code.UNPROCESSABLE_ENTITY: 422,
    Code.EMPTY_VALUE: 400,
    Code.UNAVAILABLE: 503,
    Code.FORBIDDEN: 403,
    Code.UNAUTHORIZED: 401,
    Code.METHOD_NOT_ALLOWED: 405,
    Code.REQUEST_TOO_LARGE: 413,
    Code.UNSUPPORTED_MEDIA_TYPE: 415,
}


@dataclass(frozen=True, slots=True)
class Answer:
    """
    An answer that is complete before it is sent.

    Attributes:
        status: HTTP status.
        body: The body, uncompressed; empty for an answer without a body.
        headers: Headers in addition to the common ones.
        media_type: Media type of the body.
    """

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    media_type: str = JSON_TYPE


def json_answer(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    """An answer with *value* as JSON."""
    return Answer(status, orjson.dumps(value), headers or {})
