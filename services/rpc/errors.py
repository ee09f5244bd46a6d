"""Errors of the core as google.rpc.Status and back."""

from urllib.parse import quote

import grpc
from google.protobuf.any_pb2 import Any as AnyPb
from google.protobuf.message import Message
from google.rpc import status_pb2
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, PreconditionFailure, ResourceInfo, RetryInfo
from grpc_status import rpc_status

from services.core.errors import ERRORS, PkgerError, Reason, ServiceUnavailable, SourceTooLarge
from services.core.masking import masked
from services.rpc.call import MESSAGE_LIMIT
from services.system import Clock, machine_clock

DOMAIN = "pkger"
"""``ErrorInfo.domain`` of all pkger errors."""

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
    code, text = grpc.StatusCode[error.code], _cut(masked(str(error)), longest)
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
    elif error.resource:
        resource_type, key = error.resource
        details.append(ResourceInfo(resource_type=resource_type, resource_name=metadata.get(key, ""), description=text))
    if (seconds := error.retry_seconds(clock() / 1e6)) is not None:
        retry = RetryInfo()
        retry.retry_delay.FromMilliseconds(round(seconds * 1000))
        details.append(retry)
    for detail in details:
        packed = AnyPb()
        packed.Pack(detail)
        status.details.append(packed)
    return status


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
