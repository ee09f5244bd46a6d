"""Errors of the services over HTTP: each reason has one code, and no internals are shown."""

import grpc
import pytest
from grpc.aio import AioRpcError, Metadata

from services.core.errors import ERRORS, Internal, OperationUnfinished, PkgerError, ServiceUnavailable, StackLeased
from services.gateway.answers import Code
from services.gateway.errors import code_of, influx_form, problem_of
from services.rpc.errors import from_rpc

EXPECTED = {
    Code.INVALID: {"RANGE_INVALID", "REQUEST_INVALID"},
    Code.UNPROCESSABLE_ENTITY: {
        "SOURCE_UNDECODABLE",
        "SOURCE_UNREADABLE",
        "ENCODING_INVALID",
        "KIND_UNSUPPORTED",
        "DEPENDENCY_CYCLE",
        "PACKAGE_EMPTY",
        "VALUES_MISSING",
        "CONTENT_REFUSED",
    },
    Code.REQUEST_TOO_LARGE: {"SOURCE_TOO_LARGE"},
    Code.NOT_FOUND: {
        "STACK_NOT_FOUND",
        "PLATFORM_UNKNOWN",
        "ORG_UNKNOWN",
        "OPERATION_NOT_FOUND",
        "PLAN_NOT_FOUND",
        "RESOURCE_NOT_FOUND",
        "REVISION_NOT_FOUND",
        "REPOSITORY_NOT_FOUND",
        "PACKAGE_NOT_FOUND",
        "DEFINITION_NOT_FOUND",
        "ACTION_SET_NOT_FOUND",
        "SNAPSHOT_NOT_FOUND",
    },
    Code.CONFLICT: {
        "STACK_EXISTS",
        "REPOSITORY_EXISTS",
        "REPOSITORY_INVALID",
        "REPOSITORY_UNAVAILABLE",
        "REPOSITORY_IN_USE",
        "PACKAGE_STACK",
        "PACKAGE_PINNED",
        "REQUEST_ID_REUSED",
        "STACK_NOT_EMPTY",
        "RESOURCE_OWNED",
        "NAME_TAKEN",
        "IN_USE",
        "SHARED_DIFFERS",
        "REPLACEMENT_REFUSED",
        "DELETES_EXCEEDED",
        "PLAN_TOO_LARGE",
        "PLAN_USED",
        "PLAN_EXPIRED",
        "DIGEST_MISMATCH",
        "STACK_LEASED",
        "OPERATION_UNFINISHED",
        "STACK_MOVED",
        "STACK_CHANGED",
        "DEFINITION_CHANGED",
        "ACTION_SET_EXISTS",
        "ACTION_SET_UNFINISHED",
        "ACTION_SET_NOT_COMPLETE",
        "ACTION_SET_HAS_SNAPSHOTS",
        "ARTIFACT_GONE",
        "SNAPSHOT_CORRUPT",
        "PLAN_STALE",
        "TOKEN_STALE",
    },
    Code.UNAVAILABLE: {"SERVICE_UNAVAILABLE", "LEASE_LOST", "TOO_MANY_CALLS", "LIMIT_REACHED"},
    Code.UNAUTHORIZED: {"UNAUTHENTICATED"},
    Code.INTERNAL_ERROR: {"INTERNAL"},
}


def test_each_reason_has_its_code() -> None:
    codes = {reason: code_of(error) for reason, error in ERRORS.items()}
    assert {code: {reason for reason in codes if codes[reason] is code} for code in EXPECTED} == EXPECTED
    assert sum(map(len, EXPECTED.values())) == len(codes)


def test_each_code_has_a_status() -> None:
    assert len(Code) == 13
    assert all(400 <= code.status < 600 for code in Code)


def test_an_error_that_a_retry_may_resolve_has_retry_after() -> None:
    waiting: list[PkgerError] = [
        ServiceUnavailable("planner", "somewhere", "no connection"),
        StackLeased("s", "another-applier", "operation-1", "2026-01-01T00:00:30+00:00"),
        OperationUnfinished("s", "operation-1", "APPLYING"),
    ]
    problems = [problem_of(error, "id", clock=lambda: 1767225600_000000) for error in waiting]
    assert [problem.headers["Retry-After"] for problem in problems] == ["1", "30", "5"]
    blocked = problem_of(OperationUnfinished("s", "operation-1", "BLOCKED"), "id")
    assert "Retry-After" not in blocked.headers


@pytest.mark.parametrize("error", [Internal("r"), ValueError("internals"), KeyError("token")])
def test_the_error_of_a_defect_has_only_the_request_id(error: Exception) -> None:
    problem = problem_of(error, "the-request")
    assert influx_form(problem, "the-request") == {
        "code": "internal error",
        "message": "a defect of pkger; its log has the details under the request id the-request",
    }
    assert problem.status == 500


@pytest.mark.parametrize("status", [status for status in grpc.StatusCode if status is not grpc.StatusCode.OK])
def test_a_status_without_a_reason_names_the_service(status: grpc.StatusCode) -> None:
    """A proxy between the services returns it, or gRPC when a service ends during a call."""
    error = AioRpcError(status, Metadata(), Metadata(), "the cause")
    problem = problem_of(from_rpc(error, "planner", "somewhere"), "id")
    assert (problem.code, problem.headers) == (Code.UNAVAILABLE, {"Retry-After": "1"})
    assert problem.message.startswith("the planner service ")
    assert "somewhere" not in f"{problem.message} {problem.metadata}"
