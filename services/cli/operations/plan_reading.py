"""Reads a stored plan, and makes it JSON."""

from collections.abc import Iterator, Sequence
from typing import Any

from pkger.model.v1 import plan_pb2
from pkger.stack.v1 import stack_pb2
from pkger.stack.v1.stack_pb2_grpc import StackServiceStub

from services.cli.process.session import Session
from services.rpc.message_json import document_of
from services.rpc.plan_parts import JoinedPlan, View

SHOWN = (plan_pb2.PLAN_VIEW_STEPS, plan_pb2.PLAN_VIEW_DIFFS, plan_pb2.PLAN_VIEW_RECORD)
"""The parts of a plan that are printed as text."""


WHOLE = (*SHOWN, plan_pb2.PLAN_VIEW_SUMMARY)
"""The parts of a plan that ``-o json`` prints."""


async def stored(services: Session, plan_id: str, view: Sequence[View]) -> JoinedPlan:
    """
    The parts in *view* of a stored plan.

    Raises:
        PlanNotFound: There is no such plan.
    """
    stub = StackServiceStub(services.stack.channel)
    request = stack_pb2.GetPlanRequest(plan_id=plan_id, view=view)
    plan = JoinedPlan()
    async for answer in services.stack.stream(stub.GetPlan, request):
        plan.add(answer.part)
    return plan


def plan_documents(plan: JoinedPlan) -> Iterator[dict[str, Any]]:
    """The parts of a plan as JSON data; those with the same content are one."""
    yield document_of(plan_pb2.PlanPart(header=plan.header))
    if plan.remarks.ByteSize():
        yield document_of(plan_pb2.PlanPart(remarks=plan.remarks))
    if plan.steps:
        yield document_of(plan_pb2.PlanPart(steps=plan_pb2.PlanSteps(steps=plan.steps)))
    if plan.diffs.ByteSize():
        yield document_of(plan_pb2.PlanPart(diffs=plan.diffs))
    if plan.summary:
        yield document_of(plan_pb2.PlanPart(summary_json=plan.summary))
    if plan.body.record.ByteSize():
        yield document_of(plan_pb2.PlanPart(record=plan.body.record))
