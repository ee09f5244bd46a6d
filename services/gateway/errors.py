"""Maps errors of the services to errors of HTTP, by two tables."""

import math
from collections.abc import Mapping
from typing import Any

import grpc

from services.core.errors import PkgerError, Reason
from services.gateway.answers import Answer, Code, json_answer
from services.machine import Clock, machine_clock
from services.rpc.errors import CODES, RETRIES

BY_STATUS: dict[grpc.StatusCode, Code] = {
    grpc.StatusCode.INVALID_ARGUMENT: Code.INVALID,
    grpc.StatusCode.NOT_FOUND: Code.NOT_FOUND,
    grpc.StatusCode.ALREADY_EXISTS: Code.CONFLICT,
    grpc.StatusCode.ABORTED: Code.CONFLICT,
    grpc.StatusCode.FAILED_PRECONDITION: Code.CONFLICT,
    grpc.StatusCode.UNAVAILABLE: Code.UNAVAILABLE,
}
"""The code of each gRPC status of an error of the services; any other status is an internal error."""

BY_REASON: dict[Reason, Code] = {
    Reason.SOURCE_UNDECODABLE: Code.UNPROCESSABLE_ENTITY,
    Reason.SOURCE_UNREADABLE: Code.UNPROCESSABLE_ENTITY,
    Reason.ENCODING_INVALID: Code.UNPROCESSABLE_ENTITY,
    Reason.KIND_UNSUPPORTED: Code.UNPROCESSABLE_ENTITY,
    Reason.DEPENDENCY_CYCLE: Code.UNPROCESSABLE_ENTITY,
    Reason.PACKAGE_EMPTY: Code.UNPROCESSABLE_ENTITY,
    Reason.VALUES_MISSING: Code.UNPROCESSABLE_ENTITY,
    Reason.CONTENT_REFUSED: Code.UNPROCESSABLE_ENTITY,
    Reason.SOURCE_TOO_LARGE: Code.REQUEST_TOO_LARGE,
    Reason.LEASE_LOST: Code.UNAVAILABLE,
}
"""Reasons whose code differs from that of their status."""

HINTS: dict[str, str] = {
    Reason.PACKAGE_EMPTY: '"allowEmpty": true',
    Reason.REQUEST_ID_REUSED: "the request id comes from the Idempotency-Key; send a new key with other content",
}
"""Hints for clients of InfluxDB: the text of an error names fields of pkger's contracts, which they do not have."""

SECONDS_UNTIL_RETRY = 1


class Problem(Exception):
    """
    An error that a client gets; the text is for a person.

    Attributes:
        code: Error code of the HTTP API.
        message: What is wrong, where, and what to do.
        status: HTTP status.
        headers: Headers of the answer.
        reason: Reason (``reason.proto``); empty for an error of the gateway itself.
        metadata: Every value that the message names.
    """

    def __init__(
        self,
        code: Code,
        message: str,
        *,
        status: int | None = None,
        headers: Mapping[str, str] | None = None,
        reason: str = "",
        metadata: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status or code.status
        self.headers = dict(headers or {})
        self.reason = reason
        self.metadata = dict(metadata or {})


def problem_of(error: Exception, request_id: str, clock: Clock = machine_clock) -> Problem:
    """
    The problem that a client gets for *error*, of a service or of this process.

    Args:
        error: The exception that a handler raised.
        request_id: Id of the request, by which an operator finds it in the logs.
        clock: The current time, to compute Retry-After.
    """
    if isinstance(error, Problem):
        return error
    if isinstance(error, PkgerError):
        code = code_of(error.reason)
        if code is not Code.INTERNAL_ERROR:
            headers = retry_after(RETRIES[error.reason](error, clock)) if error.reason in RETRIES else {}
            if code is Code.UNAVAILABLE and not headers:
                headers = retry_after(SECONDS_UNTIL_RETRY)
            return Problem(code, str(error), headers=headers, reason=error.reason, metadata=error.metadata)
    message = f"a defect of pkger; its log has the details under the request id {request_id}"
    return Problem(Code.INTERNAL_ERROR, message, reason=Reason.INTERNAL, metadata={"request_id": request_id})


def code_of(reason: Reason) -> Code:
    """The code of an error of a service with that *reason*."""
    return BY_REASON.get(reason) or BY_STATUS.get(CODES[reason], Code.INTERNAL_ERROR)


def retry_after(seconds: float | None) -> dict[str, str]:
    """The Retry-After header; none when *seconds* is None, as the same request cannot succeed."""
    return {} if seconds is None else {"Retry-After": str(math.ceil(seconds))}


def influx_form(problem: Problem, request_id: str) -> dict[str, Any]:
    """The body of an error for clients of InfluxDB."""
    hint = HINTS.get(problem.reason, "")
    return {"code": problem.code, "message": f"{problem.message} ({hint})" if hint else problem.message}


def error_answer(problem: Problem, body: Any) -> Answer:
    """The answer for *problem*, with *body* as JSON."""
    headers = {"X-Platform-Error-Code": str(problem.code), **problem.headers}
    return json_answer(body, problem.status, headers)
