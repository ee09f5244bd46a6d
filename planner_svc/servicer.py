"""PlannerService on the wire. Holds the clients; decides nothing itself."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial

from pkger.journal.v1 import journal_pb2
from pkger.model.v1 import object_pb2, plan_pb2
from pkger.planner.v1 import planner_pb2
from pkger.planner.v1.planner_pb2_grpc import PlannerServiceServicer, add_PlannerServiceServicer_to_server

from planner_svc.answering import answer_to
from planner_svc.gathering import Gathered, gather
from planner_svc.reading import Reader
from planner_svc.storing import PlanStore
from services.rpc.parts import cut
from services.rpc.plan_parts import checked_view
from services.rpc.requests import content_digest
from services.rpc.server import Register

SERVICE = "pkger.planner.v1.PlannerService"


class PlannerServicer(PlannerServiceServicer):
    """Has plans made, kept and told in parts."""

    def __init__(self, reader: Reader, plans: PlanStore) -> None:
        self._reader = reader
        self._plans = plans

    async def CreatePlan(
        self, request: planner_pb2.CreatePlanRequest, context: object
    ) -> AsyncIterator[planner_pb2.CreatePlanResponse]:
        view, key = checked_view(request.view), _request_key(request)
        if key and (earlier := await self._plans.of_request(key)):
            async for part in self._plans.parts(earlier, view):
                yield planner_pb2.CreatePlanResponse(part=part)
            return
        gathered = await gather(request, self._reader)
        if not isinstance(gathered, Gathered):
            for violations in cut(object_pb2.Violations(violations=gathered)):
                yield planner_pb2.CreatePlanResponse(violations=violations)
            return
        answer = await asyncio.to_thread(answer_to, gathered, view, not request.validate_only)
        # A large plan, as values, is worth giving up before its messages are sent.
        del gathered
        header = answer.new_plan.header
        if not request.validate_only and not await self._plans.keep(answer.new_plan, key):
            async for part in self._plans.parts(header.name, view):
                yield planner_pb2.CreatePlanResponse(part=part)
            return
        yield planner_pb2.CreatePlanResponse(part=plan_pb2.PlanPart(header=header))
        for part in answer.parts:
            yield planner_pb2.CreatePlanResponse(part=part)


def register(reader: Reader, plans: PlanStore) -> Register:
    """What a server needs to serve the planner."""
    return partial(add_PlannerServiceServicer_to_server, PlannerServicer(reader, plans))


def _request_key(request: planner_pb2.CreatePlanRequest) -> journal_pb2.RequestKey | None:
    """The request, where it makes one plan however often it is sent; None: it may make any number."""
    if request.validate_only or not request.request_id:
        return None
    return journal_pb2.RequestKey(id=request.request_id, digest=content_digest(request))
