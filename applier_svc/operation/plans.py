"""Reads the plan of an operation from the stack service."""

from pkger.journal.v1 import journal_pb2
from pkger.journal.v1.journal_pb2_grpc import JournalServiceStub
from pkger.model.v1 import plan_pb2

from services.rpc.client import Peer


async def read_plan(stack: Peer, name: str) -> tuple[plan_pb2.Plan, journal_pb2.PlanBody]:
    """
    Header and body of a plan, with addresses as they are.

    Raises:
        PlanNotFound: There is no such plan.
    """
    header, pieces = plan_pb2.Plan(), list[bytes]()
    request = journal_pb2.ReadPlanRequest(plan=name)
    async for part in stack.stream(JournalServiceStub(stack.channel).ReadPlan, request):
        header.MergeFrom(part.plan)
        pieces.append(part.body)
    return header, journal_pb2.PlanBody.FromString(b"".join(pieces))
