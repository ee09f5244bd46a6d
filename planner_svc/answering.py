"""A plan as messages: the parts of the response, and the message that the store gets."""

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from itertools import chain

from pkger.journal.v1 import journal_pb2
from pkger.model.v1 import object_pb2, plan_pb2
from pkger.planner.v1 import planner_pb2
from pkger.stack.v1 import stack_pb2

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
        attachments: The attachments of a plan that is stored: texts by their digests.
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


_NAME_BYTES = len("\n\x16plans/0123456789abcdef")
"""Bytes of the name in the header of a plan, which gets it when it is stored."""


class Use(Enum):
    """What a plan is for: to be read, to be applied later by a client, or to be run by one operation."""

    DRY_RUN = auto()
    LATER_APPLY = auto()
    OPERATION = auto()


async def make_answer(
    request: planner_pb2.CreatePlanRequest,
    use: Use,
    view: Collection[View],
    reader: Reader,
    limit: int,
    stack: stack_pb2.Stack | None = None,
) -> Answer:
    """
    Make the plan of *request* and translate it.

    Args:
        request: The desired state.
        use: What the plan is for; for a dry run, it is not stored.
        view: The parts of the response.
        reader: Reads package, record and resources.
        limit: Largest message, in bytes, between the services.
        stack: The header of the stack, if it is known; None: it is read.

    Raises:
        PkgerError: There is no plan; planner.proto lists the reasons.
    """
    gathered = await gather(request, reader, stack)
    if not isinstance(gathered, Gathered):
        return Answer(None, violations=gathered)
    # In a thread, so that other calls are answered during the translation of a large plan.
    return await asyncio.to_thread(_answer, gathered, use, view, limit)


def _answer(gathered: Gathered, use: Use, view: Collection[View], limit: int) -> Answer:
    """Translate a plan once: the plan to store, if there is one, and the response are made of the same messages."""
    is_stored = use is not Use.DRY_RUN
    planned, new_plan = gathered.planned, journal_pb2.NewPlan(header=header_to_pb(gathered.planned.plan))
    remarks = list(remarks_parts(planned.plan.remarks))
    wanted = {*view, plan_pb2.PLAN_VIEW_STEPS, plan_pb2.PLAN_VIEW_RECORD} if is_stored else {*view}
    steps = list(steps_parts(planned.plan.steps)) if plan_pb2.PLAN_VIEW_STEPS in wanted else []
    record = list(record_parts(planned.plan)) if plan_pb2.PLAN_VIEW_RECORD in wanted else []
    # Of an operation with nothing to do, only header and remarks are stored: a dry run shows the rest.
    is_whole = is_stored and not (use is Use.OPERATION and planned.plan.no_change)
    content = compressed_content(planned, gathered.objects) if is_whole else b""
    if {plan_pb2.PLAN_VIEW_STEPS, plan_pb2.PLAN_VIEW_RECORD} <= wanted:
        messages = (new_plan.header, *remarks, *steps, *record)
        size = sum(message.ByteSize() for message in messages) + len(content) + _NAME_BYTES
        refuse_too_large(size, len(planned.plan.steps), limit)
    if is_stored:
        stored = JoinedPlan()
        for part in chain(remarks, steps, record):
            stored.add(part)
        new_plan.body, new_plan.content = stored.body.SerializeToString(), content
    made = {plan_pb2.PLAN_VIEW_STEPS: steps, plan_pb2.PLAN_VIEW_RECORD: record}
    following = chain.from_iterable(
        made[asked] if asked in made else _view_parts(planned, asked) for asked in sorted(view)
    )
    # The stored steps have the specs as they are.
    attachments = planned.attachments if is_stored else {}
    return Answer(new_plan, [*remarks, *map(shown_part, following)], attachments=attachments)


def _view_parts(planned: Planned, view: View) -> Iterator[plan_pb2.PlanPart]:
    if view == plan_pb2.PLAN_VIEW_DIFFS:
        return diffs_parts(planned.diffs())
    return summary_parts(planned.summary())
