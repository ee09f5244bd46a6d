"""Errors of ``/api/pkger/v1``: their bodies have all parts of the error of a service."""

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from pkger.model.v1 import object_pb2, package_change_pb2

from services.gateway.answers import Code
from services.gateway.errors import Problem
from services.gateway.requests.members import about
from services.rpc.message_json import document_of


class PackageInvalid(Problem):
    """
    The package or the action set of a request breaks rules, so the request had no effect.

    Attributes:
        violations: All violations.
    """

    def __init__(self, violations: Sequence[object_pb2.Violation], subject: str = "the package") -> None:
        number = len(violations)
        message = f"{subject} has {number} violation{'s' if number > 1 else ''}; see the member violations"
        super().__init__(Code.UNPROCESSABLE_ENTITY, message)
        self.violations = violations


class PackagesConflict(Problem):
    """
    No versions of packages go together as requested.

    Attributes:
        conflict: The reasons, and what works instead.
    """

    def __init__(self, conflict: package_change_pb2.PackageConflict) -> None:
        super().__init__(Code.CONFLICT, conflict.text, status=409)
        self.conflict = conflict


def pkger_form(problem: Problem, request_id: str) -> dict[str, Any]:
    """The body of an error."""
    body = ErrorBody(problem.code, problem.message, problem.reason, problem.metadata, request_id)
    if isinstance(problem, PackageInvalid):
        body.violations = [document_of(violation) for violation in problem.violations]
    if isinstance(problem, PackagesConflict):
        body.conflict = document_of(problem.conflict)
    document: dict[str, Any] = msgspec.to_builtins(body)
    return document


class ErrorBody(msgspec.Struct, forbid_unknown_fields=True):
    """The error of a request."""

    code: Annotated[str, about("Category of the error, as InfluxDB's API has it.", enum=[str(code) for code in Code])]
    message: Annotated[str, about("What is wrong, where, and what to do; for people.")]
    reason: Annotated[
        str, about("The cause, for programs: a pkger.errors.v1.Reason; empty for an error of the gateway.")
    ]
    metadata: Annotated[dict[str, str], about("Every value that the message names.")]
    request_id: Annotated[str, about("Id of the request in the logs of all services.")]
    violations: Annotated[
        list[Any] | msgspec.UnsetType,
        about(
            "All violations of the package or the action set, if it breaks rules.",
            items={"$ref": "#/components/schemas/pkger.model.v1.Violation"},
        ),
    ] = msgspec.UNSET
    conflict: Annotated[
        Any,
        about(
            "Why no versions of packages go together, if that is the error; its status is 409.",
            allOf=[{"$ref": "#/components/schemas/pkger.model.v1.PackageConflict"}],
        ),
    ] = msgspec.UNSET


PROBLEM_SCHEMA: dict[str, Any] = {
    **msgspec.json.schema_components([ErrorBody])[1]["ErrorBody"],
    "examples": [
        {
            "code": "not found",
            "message": "there is no stack 'fleet'",
            "reason": "STACK_NOT_FOUND",
            "metadata": {"stack": "fleet"},
            "request_id": "4c1f0c2f9a7d4b2e8f5d6a7b8c9d0e1f",
        }
    ],
}
"""The JSON Schema of the body of an error."""
