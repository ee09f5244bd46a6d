"""Translation of messages of the stack service."""

from pkger.journal.v1 import journal_pb2
from pkger.model.v1 import operation_pb2

from stack_svc.messages.operations import finish_request_from_pb


def test_equal_ends_are_equal_values() -> None:
    event = operation_pb2.OperationEvent(operation_id="operation-1", seq=2, finished=operation_pb2.Finished(cause="x"))
    request = journal_pb2.FinishOperationRequest(
        operation_id="operation-1",
        state=operation_pb2.OPERATION_STATE_SUCCEEDED,
        abandon=journal_pb2.Abandon(),
        finished=event,
    )
    assert finish_request_from_pb(request) == finish_request_from_pb(request)
    assert finish_request_from_pb(request).finished == event
