"""Maps errors of the services to errors of HTTP."""

import math
from collections.abc import Mapping
from typing import Any

from services.core.errors import ERRORS, GrpcCode, PkgerError, Reason, ServiceUnavailable
from services.gateway.answers import Answer, Code, json_answer
from services.system import Clock, machine_clock

BY_GRPC_CODE: dict[GrpcCode, Code] = {
    "INVALID_ARGUMENT": Code.INVALID,
    "NOT_FOUND": Code.NOT_FOUND,
    "ALREADY_EXISTS": Code.CONFLICT,
    "ABORTED": Code.CONFLICT,
    "FAILED_PRECONDITION": Code.CONFLICT,
    "UNAUTHENTICATED": Code.UNAUTHORIZED,
    "UNAVAILABLE": Code.UNAVAILABLE,
}
"""The code for the gRPC code of an error of the services; any other one is an internal error."""

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
    if isinstance(error, ServiceUnavailable):
        error = error.without_address()
    if isinstance(error, PkgerError):
        code = code_of(type(error))
        if code is not Code.INTERNAL_ERROR:
            headers = retry_after(error.retry_seconds(clock() / 1e6))
            if code is Code.UNAVAILABLE and not headers:
                headers = retry_after(SECONDS_UNTIL_RETRY)
            return Problem(code, str(error), headers=headers, reason=error.reason, metadata=error.metadata)
    message = f"a defect of pkger; its log has the details under the request id {request_id}"
    return Problem(Code.INTERNAL_ERROR, message, reason=Reason.INTERNAL, metadata={"request_id": request_id})


def code_of(error: type[PkgerError]) -> Code:
    """The code of the errors of a service of that class."""
    return Code[error.http_code] if error.http_code else BY_GRPC_CODE.get(error.code, Code.INTERNAL_ERROR)


def retry_after(seconds: float | None) -> dict[str, str]:
    """The Retry-After header; none when *seconds* is None, as the same request cannot succeed."""
    return {} if seconds is None else {"Retry-After": str(math.ceil(seconds))}


def influx_form(problem: Problem, request_id: str) -> dict[str, Any]:
    """The body of an error for clients of InfluxDB."""
    hint = ERRORS[Reason(problem.reason)].influx_hint if problem.reason else ""
    return {"code": problem.code, "message": f"{problem.message} ({hint})" if hint else problem.message}


def error_answer(problem: Problem, body: Any) -> Answer:
    """The answer for *problem*, with *body* as JSON."""
    headers = {"X-Platform-Error-Code": str(problem.code), **problem.headers}
    return json_answer(body, problem.status, headers)
