"""Keeps plans in the stack store until somebody applies them."""

import secrets

from pkger.model.v1 import plan_pb2
from pkger.stack.v1 import journal_pb2, stack_pb2
from pkger.stack.v1.journal_pb2_grpc import JournalServiceStub
from pkger.stack.v1.stack_pb2_grpc import StackServiceStub

from services.rpc.client import Peer


class PlanStore:
    """The plans in the stack service."""

    def __init__(self, stack: Peer) -> None:
        self._stack = stack
        self._stub = StackServiceStub(stack.channel)
        self._journal = JournalServiceStub(stack.channel)

    async def of_request(self, request_id: str, digest: str) -> plan_pb2.Plan | None:
        """
        The plan that a request with this id and digest of its content made before; None for a new one.

        Raises:
            RequestIdReused: The id was used with other content.
            PlanNotFound: The plan is gone.
        """
        request = journal_pb2.FindPlanRequest(request_id=request_id, request_digest=digest)
        name = (await self._stack.call(self._journal.FindPlan, request)).plan
        return await self._read(name) if name else None

    async def keep(self, plan: plan_pb2.Plan, request_id: str, digest: str) -> plan_pb2.Plan:
        """
        Store *plan*, which gets a name.

        Returns:
            The plan as it is stored; that of the same request, if that came first.

        Raises:
            RequestIdReused: The id was used with other content.
        """
        plan.name = f"plans/{secrets.token_hex(8)}"
        request = journal_pb2.StorePlanRequest(
            plan=plan.SerializeToString(), request_id=request_id, request_digest=digest
        )
        stored = await self._stack.call(self._journal.StorePlan, request)
        if stored.plan != plan.name:
            return await self._read(stored.plan)
        plan.state = plan_pb2.PLAN_STATE_PENDING
        plan.create_time.CopyFrom(stored.create_time)
        plan.expire_time.CopyFrom(stored.expire_time)
        return plan

    async def _read(self, name: str) -> plan_pb2.Plan:
        return (await self._stack.call(self._stub.GetPlan, stack_pb2.GetPlanRequest(plan=name))).plan
