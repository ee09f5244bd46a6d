"""The plans of operations as messages, with addresses as they are."""

from collections.abc import Iterable
from typing import NamedTuple

from pkger.journal.v1 import journal_pb2
from pkger.journal.v1.journal_pb2_grpc import JournalServiceStub
from pkger.model.v1 import plan_pb2

from services.rpc.client import Peer


class OperationPlan(NamedTuple):
    """
    The plan of an operation.

    Attributes:
        header: Its header.
        body: Its remarks, steps and changes of the record.
        is_stored: Whether the store has it. A plan with nothing to do is stored at the end of its operation.
        baselines_digest: As in ``NewPlan``; empty for a plan that was read from the store.
    """

    header: plan_pb2.Plan
    body: journal_pb2.PlanBody
    is_stored: bool = True
    baselines_digest: str = ""


def joined_plan(header: plan_pb2.Plan, pieces: Iterable[bytes]) -> OperationPlan:
    """The plan of *header*, whose body is sent in *pieces*."""
    return OperationPlan(header, journal_pb2.PlanBody.FromString(b"".join(pieces)))


async def read_plan(stack: Peer, plan_id: str) -> OperationPlan:
    """
    Read a plan from the stack service.

    Raises:
        PlanNotFound: There is no such plan.
    """
    header, pieces = plan_pb2.Plan(), list[bytes]()
    request = journal_pb2.ReadPlanRequest(plan_id=plan_id)
    async for part in stack.stream(JournalServiceStub(stack.channel).ReadPlan, request):
        header.MergeFrom(part.plan)
        pieces.append(part.body)
    return joined_plan(header, pieces)
