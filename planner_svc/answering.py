"""A plan as messages: the parts of the response, and the message that the store gets."""

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from pkger.journal.v1 import journal_pb2
from pkger.model.v1 import object_pb2, plan_pb2
from pkger.planner.v1 import planner_pb2

from planner_svc.contents import compressed_content
from planner_svc.gathering import Gathered, gather
from planner_svc.reading import Reader
from planner_svc.views import Planned
from services.core.limits import refuse_too_large
from services.rpc.convert.plans import header_to_pb
from services.rpc.parts import cut
from services.rpc.plan_parts import (
    JoinedPlan,
    View,
    content_parts,
    diffs_parts,
    record_parts,
    remarks_parts,
    shown_part,
    steps_parts,
    summary_parts,
)


@dataclass(frozen=True, slots=True)
class Answer:
    """
    A plan as messages, or all violations of the package.

    Attributes:
        new_plan: The plan for the store, with the header that callers get; without body and content for a plan that is
            not stored. None: there is no plan.
        parts: The parts after the header that the caller asks for.
        violations: All violations of a package that breaks rules.
        attachments: The attachments of a plan that is going to run: texts by their digests.
    """

    new_plan: journal_pb2.NewPlan | None
    parts: Sequence[plan_pb2.PlanPart] = ()
    violations: Sequence[object_pb2.Violation] = ()
    attachments: Mapping[str, str] = field(default_factory=dict)

    def messages(self) -> Iterator[planner_pb2.CreatePlanResponse]:
        """The response to the caller; call it after the plan is stored, as that completes the header."""
        for violations in cut(object_pb2.Violations(violations=self.violations)):
            yield planner_pb2.CreatePlanResponse(violations=violations)
        if self.new_plan:
            yield planner_pb2.CreatePlanResponse(part=plan_pb2.PlanPart(header=self.new_plan.header))
        for part in self.parts:
            yield planner_pb2.CreatePlanResponse(part=part)


async def make_answer(
    request: planner_pb2.CreatePlanRequest, view: Collection[View], reader: Reader, limit: int
) -> Answer:
    """
    Make the plan of *request* and translate it.

    Args:
        request: The request.
        view: The parts that it asks for.
        reader: Reads package, record and resources.
        limit: Largest message, in bytes, between the services.

    Raises:
        PkgerError: There is no plan; planner.proto lists the reasons.
    """
    gathered = await gather(request, reader)
    if not isinstance(gathered, Gathered):
        return Answer(None, violations=gathered)
    # In a thread, so that other calls are answered during the translation of a large plan.
    answer = await asyncio.to_thread(_answer, gathered, view, request, limit)
    will_run = request.will_run or not request.validate_only
    return replace(answer, attachments=gathered.planned.attachments) if will_run else answer


def _answer(gathered: Gathered, view: Collection[View], request: planner_pb2.CreatePlanRequest, limit: int) -> Answer:
    """Translate a plan once: the plan to store, if there is one, and the response are made of the same messages."""
    is_stored = not request.validate_only
    planned, new_plan = gathered.planned, journal_pb2.NewPlan(header=header_to_pb(gathered.planned.plan))
    remarks = list(remarks_parts(planned.plan.remarks))
    wanted = {*view, plan_pb2.PLAN_VIEW_STEPS, plan_pb2.PLAN_VIEW_RECORD} if is_stored else {*view}
    steps = list(steps_parts(planned.plan.steps)) if plan_pb2.PLAN_VIEW_STEPS in wanted else []
    record = list(record_parts(planned.plan)) if plan_pb2.PLAN_VIEW_RECORD in wanted else []
    # Of an apply with nothing to do, only the header is stored: a dry run shows the rest.
    is_asked = plan_pb2.PLAN_VIEW_CONTENT in view and not planned.plan.no_change
    content = compressed_content(planned, gathered.objects) if is_stored or is_asked else b""
    if {plan_pb2.PLAN_VIEW_STEPS, plan_pb2.PLAN_VIEW_RECORD} <= wanted:
        # The record counts twice: the message that starts the operation also claims the adopted resources.
        messages = (new_plan.header, *remarks, *steps, *record, *record)
        size = sum(message.ByteSize() for message in messages) + len(content)
        refuse_too_large(size, len(planned.plan.steps), limit)
    if is_stored:
        stored = JoinedPlan()
        for part in chain(remarks, steps, record):
            stored.add(part)
        new_plan.body, new_plan.content = stored.body.SerializeToString(), content
    made = {
        plan_pb2.PLAN_VIEW_STEPS: steps,
        plan_pb2.PLAN_VIEW_RECORD: record,
        plan_pb2.PLAN_VIEW_CONTENT: content_parts(content),
    }
    following = chain.from_iterable(
        made[asked] if asked in made else _view_parts(planned, asked) for asked in sorted(view)
    )
    # The steps of a plan that is stored, or that the caller runs, have the specs as they are.
    shown = following if request.will_run else map(shown_part, following)
    return Answer(new_plan, [*remarks, *shown])


def _view_parts(planned: Planned, view: View) -> Iterator[plan_pb2.PlanPart]:
    if view == plan_pb2.PLAN_VIEW_DIFFS:
        return diffs_parts(planned.diffs())
    return summary_parts(planned.summary())
