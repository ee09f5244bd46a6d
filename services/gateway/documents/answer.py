"""The answer to a dry run or an apply."""

from collections.abc import Sequence
from typing import Any

from pkger.model.v1 import object_pb2, plan_pb2

from services.core.listing import and_more
from services.gateway.answers import Code
from services.gateway.documents.diff import diff_document, empty_diff
from services.gateway.documents.ids import number_id
from services.gateway.documents.summary import Ids, empty_summary, summary_document
from services.gateway.documents.violations import violation_document
from services.rpc.plan_parts import JoinedPlan


def answer_document(made: JoinedPlan, stack_id: str, org_id: str, is_applied: bool) -> dict[str, Any]:
    """
    What a plan would do, or has done.

    Args:
        made: The plan, with its diffs and its summary.
        stack_id: The stack; empty for none.
        org_id: The organisation, in 16 hex digits.
        is_applied: Whether the plan ran.
    """
    summary = summary_document(made.summary, _ids(made.diffs), org_id, is_applied)
    return {
        "sources": list(made.header.sources),
        "stackID": stack_id,
        "diff": diff_document(made.diffs, summary, org_id),
        "summary": summary,
        "planDigest": made.header.digest,
    }


def refused_document(violations: Sequence[object_pb2.Violation]) -> dict[str, Any]:
    """What is wrong with a package, in the shape of the answer that there is not."""
    first = violations[0]
    more = and_more(len(violations) - 1, ", ")
    return {
        "code": Code.UNPROCESSABLE_ENTITY,
        "message": f"the package breaks rules: {first.kind} {first.path}: {first.reason}{more}",
        "errors": list(map(violation_document, violations)),
        "sources": [],
        "stackID": "",
        "diff": empty_diff(),
        "summary": empty_summary(),
    }


def _ids(diffs: plan_pb2.PlanDiffs) -> Ids:
    """Ids of the resources of the objects that the plan wants."""
    return {
        (diff.key.kind, diff.key.name): number_id(diff.resource_id)
        for diff in diffs.resources
        if diff.resource_id and diff.status != plan_pb2.DIFF_STATUS_REMOVE
    }
