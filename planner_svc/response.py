"""A plan as messages: the parts of the response, and the message that the store gets."""

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from pkger.journal.v1 import journal_pb2
from pkger.model.v1 import object_pb2, package_change_pb2, plan_pb2
from pkger.planner.v1 import planner_pb2
from pkger.stack.v1 import stack_pb2

from planner_svc.create_plan import create_plan
from planner_svc.inputs import PlanInputs
from planner_svc.package_stack.desired_packages import PackageStackInputs
from planner_svc.packages.messages import change_to_pb, conflict_to_pb, held_back_to_pb
from planner_svc.resolution.model import Conflict
from planner_svc.views import ViewInput
from services.core.limits import refuse_too_large
from services.core.model import Plan
from services.rpc.convert.packages import installed_to_pb
from services.rpc.convert.plans import header_to_pb
from services.rpc.parts import cut
from services.rpc.plan_parts import (
    BODY,
    REMARKS,
    VIEWS,
    View,
    diffs_parts,
    record_parts,
    remarks_parts,
    shown_part,
    steps_parts,
    stored_part,
    summary_parts,
)


@dataclass(frozen=True, slots=True)
class PlanResponse:
    """
    A plan as messages, or all violations of the package.

    Attributes:
        new_plan: The plan for the store, with the header that callers get; without other parts for a plan that is not
            stored. None: there is no plan.
        parts: The parts after the header that the caller asks for.
        violations: All violations of a package that breaks rules.
        attachments: The attachments of a plan that is stored: texts by their digests.
        secrets: The credentials of the package that are planned as secrets, by key; not part of the repr.
        conflict: Why no versions of packages go together; None: some do.
    """

    new_plan: journal_pb2.NewPlan | None
    parts: Sequence[plan_pb2.PlanPart] = ()
    violations: Sequence[object_pb2.Violation] = ()
    attachments: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    conflict: package_change_pb2.PackageConflict | None = None

    def messages(self) -> Iterator[planner_pb2.CreatePlanResponse]:
        """The response to the caller; call it after the plan is stored, as that completes the header."""
        if self.conflict:
            yield planner_pb2.CreatePlanResponse(conflict=self.conflict)
        for violations in cut(object_pb2.Violations(violations=self.violations)):
            yield planner_pb2.CreatePlanResponse(violations=violations)
        if self.new_plan:
            yield planner_pb2.CreatePlanResponse(part=plan_pb2.PlanPart(header=self.new_plan.header))
        for part in self.parts:
            yield planner_pb2.CreatePlanResponse(part=part)


_ID_BYTES = len("\n\x100123456789abcdef")
"""Bytes of the id in the header of a plan, which gets it when it is stored."""


class PlanUse(Enum):
    """What a plan is for: to be read, to be applied later by a client, or to be run by one operation."""

    DRY_RUN = auto()
    LATER_APPLY = auto()
    OPERATION = auto()


async def make_answer(
    request: planner_pb2.CreatePlanRequest,
    use: PlanUse,
    view: Collection[View],
    reader: PlanInputs,
    packages: PackageStackInputs,
    limit: int,
    stack: stack_pb2.Stack | None = None,
    *,
    is_standalone: bool = False,
) -> PlanResponse:
    """
    Make the plan of *request* and translate it.

    Args:
        request: The desired state.
        use: What the plan is for; for a dry run, it is not stored.
        view: The parts of the response.
        reader: Reads package, record and resources.
        packages: Reads and composes the packages of a stack with packages.
        limit: Largest message, in bytes, between the services.
        stack: The header of the stack, if it is known; None: it is read.
        is_standalone: As for ``create_plan``.

    Raises:
        PkgerError: There is no plan; planner.proto lists the reasons.
    """
    planned = await create_plan(
        request, reader, packages, stack, is_standalone=is_standalone, is_operation=use is PlanUse.OPERATION
    )
    if isinstance(planned, Conflict):
        return PlanResponse(None, conflict=conflict_to_pb(planned))
    if not isinstance(planned, ViewInput):
        return PlanResponse(None, violations=planned)
    # In a thread, so that other calls are answered during the translation of a large plan.
    return await asyncio.to_thread(_answer, planned, use, view, limit)


def _answer(planned: ViewInput, use: PlanUse, view: Collection[View], limit: int) -> PlanResponse:
    """Make each part of a plan once: the same messages are stored and, as far as the caller asks for them, returned."""
    new_plan = journal_pb2.NewPlan(
        header=header_to_pb(planned.plan),
        baselines_digest=planned.plan.baselines_digest,
        creates_nameless_stack=planned.plan.creates_nameless_stack,
    )
    new_plan.header.packages.extend(_packages(planned))
    requested_views, stored = {REMARKS, *view}, _stored_views(planned.plan, use)
    size, answered = new_plan.header.ByteSize() + _ID_BYTES, list[plan_pb2.PlanPart]()
    has_credentials = planned.may_hold_credentials()
    for name in (REMARKS, *VIEWS):
        for part in _parts(planned, name) if name in requested_views | stored else ():
            shown = shown_part(part) if has_credentials else part
            if name in requested_views:
                answered.append(shown)
            if name in stored:
                new_plan.parts.append(stored_part(name, part, shown))
            # The parts that an operation needs count uncompressed, because the end of the operation writes their
            # changes of the record again.
            if name in BODY:
                size += part.ByteSize()
            elif name in stored:
                size += len(new_plan.parts[-1].part)
    if requested_views | stored >= BODY:
        refuse_too_large(size, len(planned.plan.steps), limit)
    return PlanResponse(new_plan, answered, attachments=planned.attachments if stored else {}, secrets=planned.secrets)


def _stored_views(plan: Plan, use: PlanUse) -> frozenset[View]:
    """The views whose parts are stored; none for a dry run."""
    match use:
        case PlanUse.DRY_RUN:
            return frozenset()
        case PlanUse.OPERATION if plan.no_change:
            # Of an operation with nothing to do, only header and remarks are stored: a dry run shows the rest.
            return frozenset((REMARKS,))
        case _:
            return frozenset((REMARKS, *VIEWS))


def _parts(planned: ViewInput, view: View) -> Iterator[plan_pb2.PlanPart]:
    """The parts of a view, with addresses in steps and diffs as they are."""
    match view:
        case plan_pb2.PLAN_VIEW_STEPS:
            return steps_parts(planned.plan.steps)
        case plan_pb2.PLAN_VIEW_DIFFS:
            return diffs_parts(planned.diffs())
        case plan_pb2.PLAN_VIEW_SUMMARY:
            return summary_parts(planned.summary())
        case plan_pb2.PLAN_VIEW_RECORD:
            return record_parts(planned.plan)
        case _:
            return _with_held_back(remarks_parts(planned.plan.remarks), planned)


def _packages(planned: ViewInput) -> Iterator[package_change_pb2.PlannedPackage]:
    for each in planned.desired.packages.planned if planned.desired.packages else ():
        message = change_to_pb(each.change)
        if each.record:
            message.record.CopyFrom(installed_to_pb(each.record))
        yield message


def _with_held_back(parts: Iterator[plan_pb2.PlanPart], planned: ViewInput) -> Iterator[plan_pb2.PlanPart]:
    yield from parts
    for each in planned.desired.packages.held_back if planned.desired.packages else ():
        yield plan_pb2.PlanPart(remarks=plan_pb2.PlanRemarks(held_back=[held_back_to_pb(each)]))
