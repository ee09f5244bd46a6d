"""The answer to a dry run or an apply."""

from collections.abc import Collection, Sequence
from typing import Any

import orjson
from pkger.model.v1 import object_pb2, plan_pb2

from services.core.text_lists import and_more
from services.gateway.answers import Code
from services.gateway.documents.diff import Diff, empty_diff
from services.gateway.documents.summary import (
    ENDPOINTS,
    LISTS,
    Ids,
    Summary,
    empty_summary,
    hide_keys,
    json_fragment,
    plain_task,
)
from services.gateway.documents.violations import violation_document
from services.gateway.ids import number_id
from services.rpc.plan_parts import JoinedPlan
from services.views.ids import EMBEDDED


def answer_json(plan: JoinedPlan, stack_id: str, org_id: str, is_applied: bool, hidden: Collection[str] = ()) -> bytes:
    """
    The changes that a plan would make, or has made, as JSON text.

    Each object is read, completed and written before the next one. So a large plan takes no more memory than its text,
    and other threads run in between.

    Args:
        plan: The plan, with its diffs and its summary.
        stack_id: The stack; empty for none.
        org_id: The organization, in 16 hex digits.
        is_applied: Whether the plan ran.
        hidden: Keys of secrets that the answer leaves out.
    """
    diff = Diff(plan.diffs, org_id, hidden)
    summary = _completed(Summary(plan.summary, _ids(plan.diffs), org_id, is_applied), diff, hidden)
    return orjson.dumps(
        {
            "sources": list(plan.header.sources),
            "stackID": stack_id,
            "diff": diff.document(),
            "summary": summary,
            "planDigest": plan.header.digest,
        }
    )


def _completed(summary: Summary, diff: Diff, hidden: Collection[str]) -> dict[str, orjson.Fragment]:
    """The summary, list by list; each entry is also added to the diff."""
    written: dict[str, orjson.Fragment] = {}
    for name in LISTS:
        entries, plain_tasks = [], []
        for entry in summary.entries(name):
            diff.add(entry)
            if name == ENDPOINTS:
                hide_keys(entry, hidden)
                hide_keys(entry[EMBEDDED[name]], hidden)
            entries.append(json_fragment(entry))
            if name == "summaryTask":
                plain_tasks.append(json_fragment(plain_task(entry)))
        written[name] = json_fragment(entries)
        if name == "summaryTask":
            written["tasks"] = json_fragment(plain_tasks)
    for name, values in summary.further():
        written[name] = json_fragment(list(values))
    return written


def refused_document(violations: Sequence[object_pb2.Violation]) -> dict[str, Any]:
    """The answer to a package with violations; diff and summary are empty, as clients expect them."""
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
    """Ids of the resources of all objects that the plan does not remove."""
    return {
        (diff.key.kind, diff.key.name): number_id(diff.resource_id)
        for diff in diffs.resources
        if diff.resource_id and diff.status != plan_pb2.DIFF_STATUS_REMOVE
    }
