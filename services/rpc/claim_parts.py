"""The response to a claim in parts, as a plan and its journal may be larger than a message."""

from collections.abc import AsyncIterable, Iterator

from pkger.journal.v1 import journal_pb2
from pkger.model.v1 import operation_pb2

from services.rpc.parts import parts, pieces


def claim_parts(answer: journal_pb2.ClaimOperationResponse) -> Iterator[journal_pb2.ClaimOperationResponse]:
    """Cut *answer* into parts; the message itself is changed."""
    body, steps, blocked = answer.body, list(answer.steps), list(answer.operation.blocked_steps)
    for field in ("body", "steps"):
        answer.ClearField(field)
    answer.operation.ClearField("blocked_steps")
    yield answer
    for piece in pieces(body):
        yield journal_pb2.ClaimOperationResponse(body=piece)
    for some in parts(steps, journal_pb2.StepRecord.ByteSize):
        yield journal_pb2.ClaimOperationResponse(steps=some)
    for few in parts(blocked, operation_pb2.BlockedStep.ByteSize):
        yield journal_pb2.ClaimOperationResponse(operation=operation_pb2.Operation(blocked_steps=few))


async def joined_claim(
    answers: AsyncIterable[journal_pb2.ClaimOperationResponse],
) -> journal_pb2.ClaimOperationResponse:
    """Join the parts of ``claim_parts``."""
    whole, body = journal_pb2.ClaimOperationResponse(), []
    async for answer in answers:
        body.append(answer.body)
        answer.ClearField("body")
        whole.MergeFrom(answer)
    whole.body = b"".join(body)
    return whole
