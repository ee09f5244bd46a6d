"""The response to a claim in parts, as a journal may be larger than a message."""

from collections.abc import AsyncIterable, Iterator

from pkger.journal.v1 import action_set_pb2, journal_pb2
from pkger.model.v1 import operation_pb2

from services.rpc.parts import parts


def claim_parts(answer: journal_pb2.ClaimOperationResponse) -> Iterator[journal_pb2.ClaimOperationResponse]:
    """Cut *answer* into parts; the message itself is changed."""
    steps, records, blocked = list(answer.steps), list(answer.records), list(answer.operation.blocked_steps)
    answer.ClearField("steps")
    answer.ClearField("records")
    answer.operation.ClearField("blocked_steps")
    yield answer
    for some in parts(steps, journal_pb2.StepRecord.ByteSize):
        yield journal_pb2.ClaimOperationResponse(steps=some)
    for written in parts(records, action_set_pb2.ActionRecords.ByteSize):
        yield journal_pb2.ClaimOperationResponse(records=written)
    for few in parts(blocked, operation_pb2.BlockedStep.ByteSize):
        yield journal_pb2.ClaimOperationResponse(operation=operation_pb2.Operation(blocked_steps=few))


async def joined_claim(
    answers: AsyncIterable[journal_pb2.ClaimOperationResponse],
) -> journal_pb2.ClaimOperationResponse:
    """Join the parts of ``claim_parts``."""
    whole = journal_pb2.ClaimOperationResponse()
    async for answer in answers:
        whole.MergeFrom(answer)
    return whole
