"""The answer to a dry run or an apply."""

from collections.abc import Sequence
from typing import Any

import orjson
from pkger.model.v1 import object_pb2

from services.gateway.answers import Code
from services.gateway.documents.contents import DIFF_KEYS
from services.gateway.documents.diff import diff_document
from services.gateway.documents.summary import summary_document
from services.gateway.documents.violations import violation_document
from services.kinds.registry import KINDS
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
    summary = orjson.loads(made.summary)
    ids = {(each.key.kind, each.key.name): each.resource_id for each in made.diffs.resources if each.resource_id}
    return {
        "sources": list(made.header.sources),
        "stackID": stack_id,
        "diff": diff_document(made.diffs, summary, org_id),
        "summary": summary_document(summary, ids, org_id, is_applied),
        "planDigest": made.header.digest,
    }


def refused_document(violations: Sequence[object_pb2.Violation]) -> dict[str, Any]:
    """What is wrong with a package, in the shape of the answer that there is not."""
    first = violations[0]
    more = f", and {len(violations) - 1:,} more" if len(violations) > 1 else ""
    return {
        "code": Code.UNPROCESSABLE_ENTITY,
        "message": f"the package breaks rules: {first.kind} {first.path}: {first.reason}{more}",
        "errors": list(map(violation_document, violations)),
        "sources": [],
        "stackID": "",
        "diff": {key: [] for key in sorted([*DIFF_KEYS.values(), "labelMappings"])},
        "summary": {key: [] for key in sorted(_SUMMARY_KEYS)},
    }


_SUMMARY_KEYS = {kind.summary_key for kind in KINDS.values()} | {
    "labelMappings",
    "missingEnvRefs",
    "missingSecrets",
    "tasks",
}
