"""The parts of a stored plan as GetPlan streams them: header, remarks, steps, differences, summary, record changes."""

import zlib
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from pkger.journal.v1 import journal_pb2
from pkger.model.v1 import plan_pb2

from services.core.masking import masked
from services.core.model import Key
from services.kinds.format.canonical import canonical_text
from services.kinds.summary import planned_summary
from services.rpc.convert.objects import key_from_pb, object_from_pb
from services.rpc.parts import cut, parts, pieces
from stack_svc.store.plans import Work

VIEWS = (plan_pb2.PLAN_VIEW_STEPS, plan_pb2.PLAN_VIEW_DIFFS, plan_pb2.PLAN_VIEW_SUMMARY, plan_pb2.PLAN_VIEW_RECORD)
"""The views of a stored plan, in the order of their parts in the stream."""

_Resource = tuple[str, str]
"""Kind and id of a resource."""


class Kept(NamedTuple):
    """
    The stored data of a plan.

    Attributes:
        work: Header and body, in their wire format.
        content: The compressed content; empty when none is stored.
        made: Resource ids of the steps that are in effect, by number of the step.
    """

    work: Work
    content: bytes
    made: Mapping[int, str]


def plan_parts(
    header: plan_pb2.Plan, kept: Kept, wanted: frozenset[plan_pb2.PlanView.ValueType]
) -> Iterator[plan_pb2.PlanPart]:
    """
    Cut a plan into parts, none of which is above 1 MiB: its *header*, its remarks, and the *wanted* views.

    Differences and summary are made from the content, and include the ids of resources that the operation created.
    A plan without content has neither: the content of an apply with nothing to do is not stored.
    """
    yield plan_pb2.PlanPart(header=header)
    body = journal_pb2.PlanBody.FromString(kept.work.body)
    for remarks in cut(body.remarks):
        yield plan_pb2.PlanPart(remarks=remarks)
    if plan_pb2.PLAN_VIEW_STEPS in wanted:
        for steps in parts(body.steps, plan_pb2.Step.ByteSize):
            yield plan_pb2.PlanPart(steps=plan_pb2.PlanSteps(steps=steps))
    if kept.content and wanted & {plan_pb2.PLAN_VIEW_DIFFS, plan_pb2.PLAN_VIEW_SUMMARY}:
        yield from _comparisons(body, kept, wanted)
    if plan_pb2.PLAN_VIEW_RECORD in wanted:
        for record in cut(body.record):
            yield plan_pb2.PlanPart(record=record)


def _comparisons(
    body: journal_pb2.PlanBody, kept: Kept, wanted: frozenset[plan_pb2.PlanView.ValueType]
) -> Iterator[plan_pb2.PlanPart]:
    content = journal_pb2.PlanContent.FromString(zlib.decompress(kept.content))
    created = {key_from_pb(step.create.key): step.number for step in body.steps if step.HasField("create")}
    made = {key: kept.made[number] for key, number in created.items() if kept.made.get(number)}
    # The summary is made first, as _fill_in writes into the content.
    summary = ""
    if plan_pb2.PLAN_VIEW_SUMMARY in wanted:
        summary = _summary(content, body, created, made)
    if plan_pb2.PLAN_VIEW_DIFFS in wanted:
        _fill_in(content, body, created, made)
        for diffs in cut(content.diffs):
            yield plan_pb2.PlanPart(diffs=diffs)
    for piece in pieces(summary):
        yield plan_pb2.PlanPart(summary_json=piece)


def _fill_in(
    content: journal_pb2.PlanContent,
    body: journal_pb2.PlanBody,
    created: Mapping[Key, int],
    made: Mapping[Key, str],
) -> None:
    """Add the specs and the ids of created resources to the differences."""
    wanted = {key_from_pb(item.key): item.spec_json for item in content.objects}
    written = _written_over(body)
    for diff in content.diffs.resources:
        key = key_from_pb(diff.key)
        if diff.status != plan_pb2.DIFF_STATUS_REMOVE and not diff.new_spec_json:
            diff.new_spec_json = wanted.get(key, "")
        old = written.get((diff.old_kind or key.kind, diff.resource_id))
        if old is not None:
            diff.old_spec_json = old
        elif diff.status == plan_pb2.DIFF_STATUS_EXISTS and not diff.old_spec_json and key not in created:
            diff.old_spec_json = diff.new_spec_json
        diff.resource_id = made.get(key, diff.resource_id)
    for mapping in content.diffs.label_mappings:
        mapping.resource_id = made.get(key_from_pb(mapping.resource), mapping.resource_id)
        mapping.label_id = made.get(key_from_pb(mapping.label), mapping.label_id)


def _written_over(body: journal_pb2.PlanBody) -> dict[_Resource, str]:
    """The specs of updated and deleted resources before the plan."""
    specs: dict[_Resource, str] = {}
    for step in body.steps:
        write: plan_pb2.UpdateStep | plan_pb2.DeleteStep
        match step.WhichOneof("change"):
            case "update":
                write = step.update
            case "delete":
                write = step.delete
            case _:
                continue
        # Of several writes to one resource, the first has the spec from before the plan.
        specs.setdefault((write.key.kind, write.resource_id), write.old_spec_json)
    return specs


def _summary(
    content: journal_pb2.PlanContent,
    body: journal_pb2.PlanBody,
    created: Mapping[Key, int],
    made: Mapping[Key, str],
) -> str:
    ids = {key_from_pb(each.key): each.resource_id for each in content.referred}
    deleted = _written_over(body).keys()
    for diff in content.diffs.resources:
        key = key_from_pb(diff.key)
        # A creation that stands in for a missing resource keeps the recorded id for now; a replacement has no id.
        is_replaced = key in created and (diff.old_kind or key.kind, diff.resource_id) in deleted
        if diff.status == plan_pb2.DIFF_STATUS_EXISTS and not is_replaced:
            ids[key] = diff.resource_id
    attached = {
        (key_from_pb(mapping.resource), key_from_pb(mapping.label))
        for mapping in content.diffs.label_mappings
        if mapping.status == plan_pb2.DIFF_STATUS_EXISTS
    }
    document = planned_summary(
        [object_from_pb(item) for item in content.objects],
        frozenset(map(key_from_pb, content.skipped)),
        {**ids, **made},
        attached,
        body.remarks.missing_env_refs,
        body.remarks.missing_secrets,
    )
    return masked(canonical_text(document))
