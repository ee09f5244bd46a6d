"""Errors of the core as google.rpc.Status and back, by tables of reasons."""

from collections.abc import Callable
from datetime import UTC, datetime
from urllib.parse import quote

import grpc
from google.protobuf.any_pb2 import Any as AnyPb
from google.protobuf.message import Message
from google.rpc import status_pb2
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, PreconditionFailure, ResourceInfo, RetryInfo
from grpc_status import rpc_status

from services.core.errors import ERRORS, PkgerError, Reason, ServiceUnavailable, SourceTooLarge
from services.core.masking import masked
from services.machine import Clock, machine_clock
from services.rpc.call import MESSAGE_LIMIT

DOMAIN = "pkger"
"""``ErrorInfo.domain`` of all pkger errors."""

CODES: dict[Reason, grpc.StatusCode] = {
    Reason.REQUEST_INVALID: grpc.StatusCode.INVALID_ARGUMENT,
    Reason.SOURCE_UNDECODABLE: grpc.StatusCode.INVALID_ARGUMENT,
    Reason.SOURCE_TOO_LARGE: grpc.StatusCode.INVALID_ARGUMENT,
    Reason.ENCODING_INVALID: grpc.StatusCode.INVALID_ARGUMENT,
    Reason.STACK_NOT_FOUND: grpc.StatusCode.NOT_FOUND,
    Reason.PLATFORM_UNKNOWN: grpc.StatusCode.NOT_FOUND,
    Reason.ORG_UNKNOWN: grpc.StatusCode.NOT_FOUND,
    Reason.OPERATION_NOT_FOUND: grpc.StatusCode.NOT_FOUND,
    Reason.PLAN_NOT_FOUND: grpc.StatusCode.NOT_FOUND,
    Reason.RESOURCE_NOT_FOUND: grpc.StatusCode.NOT_FOUND,
    Reason.STACK_EXISTS: grpc.StatusCode.ALREADY_EXISTS,
    Reason.REQUEST_ID_REUSED: grpc.StatusCode.ALREADY_EXISTS,
    Reason.SOURCE_UNREADABLE: grpc.StatusCode.FAILED_PRECONDITION,
    Reason.STACK_NOT_EMPTY: grpc.StatusCode.FAILED_PRECONDITION,
    Reason.KIND_UNSUPPORTED: grpc.StatusCode.FAILED_PRECONDITION,
    Reason.RESOURCE_OWNED: grpc.StatusCode.FAILED_PRECONDITION,
    Reason.NAME_TAKEN: grpc.StatusCode.FAILED_PRECONDITION,
    Reason.DEPENDENCY_CYCLE: grpc.StatusCode.FAILED_PRECONDITION,
    Reason.PACKAGE_EMPTY: grpc.StatusCode.FAILED_PRECONDITION,
    Reason.VALUES_MISSING: grpc.StatusCode.FAILED_PRECONDITION,
    Reason.IN_USE: grpc.StatusCode.FAILED_PRECONDITION,
    Reason.SHARED_DIFFERS: grpc.StatusCode.FAILED_PRECONDITION,
    Reason.REVISION_NOT_FOUND: grpc.StatusCode.NOT_FOUND,
    Reason.REPLACEMENT_REFUSED: grpc.StatusCode.FAILED_PRECONDITION,
    Reason.DELETES_EXCEEDED: grpc.StatusCode.FAILED_PRECONDITION,
    Reason.PLAN_TOO_LARGE: grpc.StatusCode.FAILED_PRECONDITION,
    Reason.CONTENT_REFUSED: grpc.StatusCode.FAILED_PRECONDITION,
    Reason.PLAN_USED: grpc.StatusCode.FAILED_PRECONDITION,
    Reason.PLAN_EXPIRED: grpc.StatusCode.FAILED_PRECONDITION,
    Reason.DIGEST_MISMATCH: grpc.StatusCode.FAILED_PRECONDITION,
    Reason.STACK_LEASED: grpc.StatusCode.ABORTED,
    Reason.LEASE_LOST: grpc.StatusCode.ABORTED,
    Reason.OPERATION_UNFINISHED: grpc.StatusCode.ABORTED,
    Reason.STACK_MOVED: grpc.StatusCode.ABORTED,
    Reason.STACK_CHANGED: grpc.StatusCode.ABORTED,
    Reason.PLAN_STALE: grpc.StatusCode.ABORTED,
    Reason.TOKEN_STALE: grpc.StatusCode.ABORTED,
    Reason.SERVICE_UNAVAILABLE: grpc.StatusCode.UNAVAILABLE,
    Reason.INTERNAL: grpc.StatusCode.INTERNAL,
}

RETRY_SECONDS = 1.0
"""Shortest delay before a retry, and the delay after SERVICE_UNAVAILABLE."""

LONGEST_RETRY_SECONDS = 60.0
"""Longest delay before a retry, as a lease may be released long before it expires."""

RECOVERY_SECONDS = 5.0
"""Delay before a retry while an applier resumes an operation."""


def _until_lease_expires(error: PkgerError, clock: Clock) -> float:
    try:
        expires = datetime.fromisoformat(error.metadata.get("expires", ""))
    except ValueError:
        return RETRY_SECONDS
    if expires.tzinfo is None:
        expires = expires.replace(tzinfo=UTC)
    left = expires.timestamp() - clock() / 1e6
    return min(max(left, RETRY_SECONDS), LONGEST_RETRY_SECONDS)


RETRIES: dict[Reason, Callable[[PkgerError, Clock], float | None]] = {
    Reason.SERVICE_UNAVAILABLE: lambda _, clock: RETRY_SECONDS,
    Reason.STACK_LEASED: _until_lease_expires,
    # A blocked operation waits for a decision, so the same request fails again.
    Reason.OPERATION_UNFINISHED: lambda error, clock: (
        None if error.metadata.get("state") == "BLOCKED" else RECOVERY_SECONDS
    ),
}
"""Seconds after which the same request may succeed, None for never; a reason without a row is never retried."""

RESOURCES: dict[Reason, tuple[str, str]] = {
    Reason.STACK_NOT_FOUND: ("pkger.stack.v1.Stack", "stack"),
    Reason.STACK_EXISTS: ("pkger.stack.v1.Stack", "stack"),
    Reason.PLAN_NOT_FOUND: ("pkger.model.v1.Plan", "plan"),
    Reason.OPERATION_NOT_FOUND: ("pkger.model.v1.Operation", "operation"),
    Reason.PLATFORM_UNKNOWN: ("pkger.model.v1.Platform", "platform"),
}
"""Type of the resource that an error names, and the key of its name in the metadata."""

MOST_TRAILER_BYTES = 7800
"""Most bytes of the status of a call: gRPC by default refuses metadata above 8 KiB, which has further keys."""

_UNESCAPED = "".join(chr(code) for code in range(0x20, 0x7F) if chr(code) != "%")
"""Characters of a status message that gRPC does not escape."""

_LONGEST_TEXTS = (10_000, 1500, 700, 300)
"""Limits for the length of a text in a status; the first one with which the status fits is used."""

_DOWN_PROBLEMS = {grpc.StatusCode.UNAVAILABLE: "no connection", grpc.StatusCode.DEADLINE_EXCEEDED: "no answer in time"}


def to_status(error: PkgerError, clock: Clock = machine_clock) -> status_pb2.Status:
    """
    Describe *error* with one ErrorInfo and the details that fit its reason; *clock* is for retry delays.

    Addresses are masked. Long texts are cut, as a client refuses a status whose trailers are above its limit.
    """
    for longest in _LONGEST_TEXTS:
        status = _status(error, longest, clock)
        if _trailer_bytes(status) <= MOST_TRAILER_BYTES:
            break
    return status


def _trailer_bytes(status: status_pb2.Status) -> int:
    """Size of a status on the wire: its message with escapes, and all of it in Base64."""
    size: int = len(quote(status.message, safe=_UNESCAPED)) + 4 * status.ByteSize() // 3
    return size


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _status(error: PkgerError, longest: int, clock: Clock) -> status_pb2.Status:
    """The status of *error*, with texts of at most *longest* characters."""
    code, text = CODES[error.reason], _cut(masked(str(error)), longest)
    metadata = {key: _cut(masked(value), longest) for key, value in error.metadata.items()}
    status = status_pb2.Status(code=code.value[0], message=text)
    details: list[Message] = [ErrorInfo(reason=error.reason, domain=DOMAIN, metadata=metadata)]
    if error.reason is Reason.REQUEST_INVALID:
        violation = BadRequest.FieldViolation(
            field=metadata.get("field", ""), description=metadata.get("problem", text)
        )
        details.append(BadRequest(field_violations=[violation]))
    elif code is grpc.StatusCode.FAILED_PRECONDITION:
        failure = PreconditionFailure.Violation(type=error.reason, description=text)
        details.append(PreconditionFailure(violations=[failure]))
    elif error.reason in RESOURCES:
        resource_type, key = RESOURCES[error.reason]
        details.append(ResourceInfo(resource_type=resource_type, resource_name=metadata.get(key, ""), description=text))
    if (seconds := _retry_seconds(error, clock)) is not None:
        retry = RetryInfo()
        retry.retry_delay.FromMilliseconds(round(seconds * 1000))
        details.append(retry)
    for detail in details:
        packed = AnyPb()
        packed.Pack(detail)
        status.details.append(packed)
    return status


def _retry_seconds(error: PkgerError, clock: Clock) -> float | None:
    delay = RETRIES.get(error.reason)
    return delay(error, clock) if delay else None


def from_rpc(error: grpc.aio.AioRpcError, service: str, address: str, platform: str = "") -> PkgerError:
    """
    The error of a failed call of *service*: the pkger error that it returned, ``SourceTooLarge`` for a message above
    the limit, or ``ServiceUnavailable`` for any other status, as gRPC itself or a proxy returns it.

    A returned error is kept as it is, so ``ServiceUnavailable`` names the innermost service.

    Args:
        error: The exception of the call.
        service: Name of the called service.
        address: Its address.
        platform: Name of the platform whose driver was called; empty for any other service.
    """
    status = rpc_status.from_call(error)
    for detail in status.details if status else ():
        info = ErrorInfo()
        if detail.Unpack(info) and info.domain == DOMAIN and info.reason in ERRORS:
            cls = ERRORS[Reason(info.reason)]
            rebuilt = cls.__new__(cls)
            PkgerError.__init__(rebuilt, status.message, **dict(info.metadata))
            return rebuilt
    if error.code() in _DOWN_PROBLEMS:
        return ServiceUnavailable(service, address, _DOWN_PROBLEMS[error.code()], platform)
    # Unchanged, so that the values of secrets in it can be recognised.
    details = error.details() or ""
    if error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED and "message larger than max" in details:
        return SourceTooLarge(f"a message to or from the {service} service", "number of bytes", MESSAGE_LIMIT)
    status = error.code().name
    problem = f"the call ended with status {status}" + (f": {details}" if details else "")
    return ServiceUnavailable(service, address, problem, platform, status=status)
