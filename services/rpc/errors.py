"""Errors of the core as google.rpc.Status and back, by one table."""

import grpc
from google.protobuf.any_pb2 import Any as AnyPb
from google.rpc import status_pb2
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, PreconditionFailure, ResourceInfo
from grpc_status import rpc_status

from services.core.errors import ERRORS, PkgerError, Reason, ServiceUnavailable, SourceTooLarge
from services.rpc.call import MESSAGE_LIMIT

DOMAIN = "pkger"
"""``ErrorInfo.domain`` of all our errors."""

CODES: dict[Reason, grpc.StatusCode] = {
    Reason.REQUEST_INVALID: grpc.StatusCode.INVALID_ARGUMENT,
    Reason.SOURCE_UNDECODABLE: grpc.StatusCode.INVALID_ARGUMENT,
    Reason.SOURCE_TOO_LARGE: grpc.StatusCode.INVALID_ARGUMENT,
    Reason.ENCODING_INVALID: grpc.StatusCode.INVALID_ARGUMENT,
    Reason.STACK_NOT_FOUND: grpc.StatusCode.NOT_FOUND,
    Reason.PLATFORM_UNKNOWN: grpc.StatusCode.NOT_FOUND,
    Reason.OPERATION_NOT_FOUND: grpc.StatusCode.NOT_FOUND,
    Reason.PLAN_NOT_FOUND: grpc.StatusCode.NOT_FOUND,
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
    Reason.REPLACEMENT_REFUSED: grpc.StatusCode.FAILED_PRECONDITION,
    Reason.PLAN_USED: grpc.StatusCode.FAILED_PRECONDITION,
    Reason.PLAN_EXPIRED: grpc.StatusCode.FAILED_PRECONDITION,
    Reason.DIGEST_MISMATCH: grpc.StatusCode.FAILED_PRECONDITION,
    Reason.STACK_LEASED: grpc.StatusCode.ABORTED,
    Reason.LEASE_LOST: grpc.StatusCode.ABORTED,
    Reason.OPERATION_UNFINISHED: grpc.StatusCode.ABORTED,
    Reason.STACK_MOVED: grpc.StatusCode.ABORTED,
    Reason.PLAN_STALE: grpc.StatusCode.ABORTED,
    Reason.TOKEN_STALE: grpc.StatusCode.ABORTED,
    Reason.SERVICE_UNAVAILABLE: grpc.StatusCode.UNAVAILABLE,
    Reason.INTERNAL: grpc.StatusCode.INTERNAL,
}

_DOWN_PROBLEMS = {grpc.StatusCode.UNAVAILABLE: "no connection", grpc.StatusCode.DEADLINE_EXCEEDED: "no answer in time"}


def to_status(error: PkgerError) -> status_pb2.Status:
    """Describe *error* with one ErrorInfo and the details that fit its code."""
    code = CODES[error.reason]
    status = status_pb2.Status(code=code.value[0], message=str(error))
    details: list[ErrorInfo | BadRequest | PreconditionFailure | ResourceInfo] = [
        ErrorInfo(reason=error.reason, domain=DOMAIN, metadata=error.metadata)
    ]
    if error.reason is Reason.REQUEST_INVALID:
        violation = BadRequest.FieldViolation(
            field=error.metadata.get("field", ""), description=error.metadata.get("problem", str(error))
        )
        details.append(BadRequest(field_violations=[violation]))
    elif code is grpc.StatusCode.FAILED_PRECONDITION:
        failure = PreconditionFailure.Violation(type=error.reason, description=str(error))
        details.append(PreconditionFailure(violations=[failure]))
    elif code in (grpc.StatusCode.NOT_FOUND, grpc.StatusCode.ALREADY_EXISTS):
        kind, name = next(iter(error.metadata.items()), ("", ""))
        details.append(ResourceInfo(resource_type=f"pkger.{kind}", resource_name=name, description=str(error)))
    for detail in details:
        packed = AnyPb()
        packed.Pack(detail)
        status.details.append(packed)
    return status


def from_rpc(error: grpc.aio.AioRpcError, service: str, address: str) -> PkgerError | grpc.aio.AioRpcError:
    """
    The error behind a failed call of *service*: the one it answered with, that it does not answer, or that a message is
    too large.

    A status that is none of these is returned as it is.
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
        return ServiceUnavailable(service, address, _DOWN_PROBLEMS[error.code()])
    # No service of ours answers with this code; gRPC does, for one reason, and on either side.
    if error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED:
        return SourceTooLarge(f"a message to or from the {service} service", "number of bytes", MESSAGE_LIMIT)
    return error
