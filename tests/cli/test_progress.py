"""How the command line reports the end of an operation, even if it has seen only the last events."""

import pytest
from pkger.model.v1 import object_pb2, operation_pb2, plan_pb2

from services.cli.operations.progress import Progress

LABEL = plan_pb2.Step(create=plan_pb2.CreateStep(key=object_pb2.ObjectKey(kind="Label", name="l")))


@pytest.mark.parametrize(("cause", "expected"), [("", "it ended"), ("it was cancelled", "it was cancelled; it ended")])
def test_a_failure_has_a_cause_if_there_is_one(cause: str, expected: str) -> None:
    assert Progress([LABEL]).failure(operation_pb2.Finished(cause=cause), "it ended") == expected


def test_an_undo_that_an_earlier_decision_gave_up_is_not_told_as_undone() -> None:
    given_up = operation_pb2.StepOutcome(skipped=operation_pb2.StepSkipped(message="given up by a decision"))
    progress = Progress([LABEL, LABEL])
    rolled_back = operation_pb2.Finished(state=operation_pb2.OPERATION_STATE_ROLLED_BACK)
    for event in (
        operation_pb2.OperationEvent(rollback_started=operation_pb2.RollbackStarted(step_count=2)),
        operation_pb2.OperationEvent(steps_undone=operation_pb2.StepsUndone(outcomes=[given_up])),
    ):
        progress.recall(event)
    assert progress.end(rolled_back) == "all changes are undone, except for steps that were given up"
