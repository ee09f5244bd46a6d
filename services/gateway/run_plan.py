"""Shared by the handlers that run operations: request ids, stored plans, and the error of a failed operation."""

from pkger.model.v1 import plan_pb2
from pkger.stack.v1 import stack_pb2
from pkger.stack.v1.stack_pb2_grpc import StackServiceStub

from services.core.errors import PkgerError
from services.gateway.answers import Code
from services.gateway.errors import Problem, retry_after
from services.gateway.failures import failure_text
from services.gateway.progress import Run
from services.rpc.client import Peer
from services.rpc.plan_parts import JoinedPlan, View, joined
from services.system import Ids, MachineIds


class Runner:
    """Makes request ids, and reads the plans of operations."""

    def __init__(self, stacks: Peer, ids: Ids = MachineIds()) -> None:
        self._stacks, self._ids = stacks, ids

    def new_request_id(self) -> str:
        """A new request id, under which a request without a response can be sent again without a second effect."""
        return self._ids.token(16)

    async def plan(self, plan_id: str, *view: View) -> JoinedPlan:
        """
        Read a stored plan.

        Raises:
            PkgerError: The plan cannot be read.
        """
        stub = StackServiceStub(self._stacks.channel)
        request = stack_pb2.GetPlanRequest(plan_id=plan_id, view=view)
        answers = self._stacks.stream(stub.GetPlan, request)
        plan = await joined(answers)
        if not isinstance(plan, JoinedPlan):
            raise TypeError("a stored plan has no violations")
        return plan

    async def failure(self, run: Run) -> Problem:
        """The error of an operation that failed."""
        try:
            steps = list((await self.plan(run.plan, plan_pb2.PLAN_VIEW_STEPS)).steps) if run.plan else []
        except PkgerError:
            # Without the plan, the message has the numbers of the steps and not their names.
            steps = []
        message = failure_text(run.finished, run.operation, run.outcomes, steps)
        metadata = {"operation": run.operation}
        if run.is_contended:
            return Problem(Code.CONFLICT, message, headers=retry_after(1), metadata=metadata)
        return Problem(Code.INTERNAL_ERROR, message, metadata=metadata)
