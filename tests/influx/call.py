"""A request as the handlers see it, and their answer."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from multidict import MultiMapping

from tests.influx import gojson
from tests.influx.access import Caller
from tests.influx.problem import Problem

JSON = "application/json; charset=utf-8"
TEXT = "text/plain; charset=utf-8"


@dataclass(slots=True)
class Call:
    """
    One request with its caller.

    Attributes:
        params: The values of the placeholders of the route.
    """

    query: MultiMapping[str]
    headers: Mapping[str, str]
    body: bytes
    caller: Caller
    params: dict[str, str] = field(default_factory=dict)

    def read(self, shape: gojson.Shape, code: str = "invalid", whole: bool = False) -> Any:
        """The body in this shape; any other body is a problem with this code."""
        try:
            return shape(gojson.parsed(self.body, whole))
        except gojson.BadId as error:
            raise Problem("invalid", str(error)) from error
        except gojson.BadJson as error:
            raise Problem(code, f"failed to unmarshal json: {error}") from error

    def id(self, name: str = "id") -> str:
        """The id at this placeholder of the path."""
        return checked_id(self.params[name])

    def query_id(self, name: str) -> str:
        """The id in this query parameter, "" when absent."""
        value = self.query.get(name, "")
        return checked_id(value) if value else ""


def checked_id(value: str) -> str:
    """The id as the server writes it."""
    fault = gojson.id_fault(value)
    if fault:
        raise Problem("invalid", fault)
    return value.lower()


@dataclass(frozen=True, slots=True)
class Answer:
    """Status and body; ``body`` is None for an answer without one."""

    status: int
    body: bytes | None = None
    content_type: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)


Handler = Callable[[Call], Answer]


def answer(status: int, value: Any) -> Answer:
    """An answer with this JSON. The server indents some answers; to a client this makes no difference."""
    return Answer(status, json.dumps(value, separators=(",", ":")).encode())


def nothing() -> Answer:
    return Answer(204)


def refusal(problem: Problem) -> Answer:
    """The error envelope."""
    body = json.dumps({"code": problem.code, "message": problem.message}).encode()
    return Answer(problem.status, body, JSON, {"X-Platform-Error-Code": problem.code})
