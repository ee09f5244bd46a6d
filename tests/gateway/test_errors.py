"""Errors of the services over HTTP: each reason has one word, and nothing of our inside gets out."""

import grpc
import pytest
from grpc.aio import AioRpcError, Metadata

from services.core.errors import Internal, OperationUnfinished, PkgerError, Reason, ServiceUnavailable, StackLeased
from services.gateway.answers import Code
from services.gateway.errors import code_of, influx_form, problem_of

EXPECTED = {
    Code.INVALID: {"REQUEST_INVALID"},
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
    },
    Code.CONFLICT: {
        "STACK_EXISTS",
        "REQUEST_ID_REUSED",
        "STACK_NOT_EMPTY",
        "RESOURCE_OWNED",
        "NAME_TAKEN",
        "IN_USE",
        "SHARED_DIFFERS",
        "REPLACEMENT_REFUSED",
        "PLAN_TOO_LARGE",
        "PLAN_USED",
        "PLAN_EXPIRED",
        "DIGEST_MISMATCH",
        "STACK_LEASED",
        "OPERATION_UNFINISHED",
        "STACK_MOVED",
        "STACK_CHANGED",
        "PLAN_STALE",
        "TOKEN_STALE",
    },
    Code.UNAVAILABLE: {"SERVICE_UNAVAILABLE", "LEASE_LOST"},
    Code.INTERNAL_ERROR: {"INTERNAL"},
}


def test_each_reason_has_its_word() -> None:
    assert {code: {reason for reason in Reason if code_of(reason) is code} for code in EXPECTED} == EXPECTED
    assert sum(map(len, EXPECTED.values())) == len(Reason)


def test_each_word_has_a_status() -> None:
    assert len(Code) == 14
    assert all(400 <= code.status < 600 for code in Code)


def test_what_may_succeed_later_says_when() -> None:
    waiting: list[PkgerError] = [
        ServiceUnavailable("planner", "somewhere", "no connection"),
        StackLeased("s", "somebody", "operations/1", "2026-01-01T00:00:30+00:00"),
        OperationUnfinished("s", "operations/1", "APPLYING"),
    ]
    told = [problem_of(error, "id", clock=lambda: 1767225600_000000) for error in waiting]
    assert [problem.headers["Retry-After"] for problem in told] == ["1", "30", "5"]
    blocked = problem_of(OperationUnfinished("s", "operations/1", "BLOCKED"), "id")
    assert "Retry-After" not in blocked.headers


@pytest.mark.parametrize("error", [Internal("r"), ValueError("the inside"), KeyError("token")])
def test_a_defect_is_told_by_its_request_alone(error: Exception) -> None:
    problem = problem_of(error, "the-request")
    assert influx_form(problem, "the-request") == {
        "code": "internal error",
        "message": "a defect of pkger; its log has the details under the request id the-request",
    }
    assert problem.status == 500


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (grpc.StatusCode.UNAUTHENTICATED, Code.UNAUTHORIZED),
        (grpc.StatusCode.PERMISSION_DENIED, Code.FORBIDDEN),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, Code.TOO_MANY_REQUESTS),
        (grpc.StatusCode.DEADLINE_EXCEEDED, Code.UNAVAILABLE),
        (grpc.StatusCode.UNKNOWN, Code.INTERNAL_ERROR),
        (grpc.StatusCode.INTERNAL, Code.INTERNAL_ERROR),
        (grpc.StatusCode.DATA_LOSS, Code.INTERNAL_ERROR),
        (grpc.StatusCode.CANCELLED, Code.INTERNAL_ERROR),
    ],
)
def test_a_status_that_no_service_of_ours_gives_has_a_word_too(status: grpc.StatusCode, code: Code) -> None:
    error = AioRpcError(status, Metadata(), Metadata(), "what it says")
    problem = problem_of(error, "id")
    assert problem.code is code
    assert ("what it says" in problem.message) is (code is not Code.INTERNAL_ERROR)
