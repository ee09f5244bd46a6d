"""Errors of ``/api/pkger/v1``, which tell all that a service told."""

from collections.abc import Sequence
from typing import Any

from pkger.model.v1 import object_pb2

from services.gateway.answers import Code
from services.gateway.errors import Problem
from services.rpc.documents import document_of


class PackageInvalid(Problem):
    """
    The package of a request breaks rules, and nothing was done.

    Attributes:
        violations: All rules that it breaks.
    """

    def __init__(self, violations: Sequence[object_pb2.Violation]) -> None:
        number = len(violations)
        told = f"the package breaks {number} rule{'s' if number > 1 else ''}; violations says which, and where"
        super().__init__(Code.UNPROCESSABLE_ENTITY, told)
        self.violations = violations


def pkger_form(problem: Problem, request_id: str) -> dict[str, Any]:
    """The body of an error."""
    body: dict[str, Any] = {
        "code": problem.code,
        "message": problem.message,
        "reason": problem.reason,
        "metadata": problem.metadata,
        "request_id": request_id,
    }
    if isinstance(problem, PackageInvalid):
        body["violations"] = [document_of(violation) for violation in problem.violations]
    return body


PROBLEM_SCHEMA: dict[str, Any] = {
    "type": "object",
    "description": "Why a request is not done.",
    "properties": {
        "code": {
            "type": "string",
            "enum": [str(code) for code in Code],
            "description": "What it is, in one of fourteen words.",
        },
        "message": {"type": "string", "description": "What is wrong, where, and what to do; for people."},
        "reason": {
            "type": "string",
            "description": "Why, for programs: a value of pkger.errors.v1.Reason; empty where no service said it.",
        },
        "metadata": {
            "type": "object",
            "additionalProperties": {"type": "string"},
            "description": "Every value that the message names.",
        },
        "request_id": {"type": "string", "description": "Id of the request, as the logs of all services have it."},
        "violations": {
            "type": "array",
            "items": {"$ref": "#/components/schemas/pkger.model.v1.Violation"},
            "description": "Of a package that breaks rules: all of them.",
        },
    },
    "required": ["code", "message", "reason", "metadata", "request_id"],
    "additionalProperties": False,
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
"""The JSON Schema of that."""
