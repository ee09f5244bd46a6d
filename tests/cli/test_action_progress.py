"""How the command line reports the end of an action set."""

import pytest
from pkger.model.v1 import action_pb2, operation_pb2

from services.cli.errors import CommandFailed
from services.cli.exit_codes import Exit
from services.cli.operations.action_progress import ActionProgress

ACCEPTED = operation_pb2.OperationEvent(
    operation_id="0123456789abcdef", accepted=operation_pb2.Accepted(action_set="nightly")
)
BEGAN = operation_pb2.OperationEvent(
    operation_id="0123456789abcdef", action_started=operation_pb2.ActionStarted(name="backup")
)
EXPORT = action_pb2.PhaseRef(action_name="backup", phase="export")


def progress_after(*events: operation_pb2.OperationEvent) -> ActionProgress:
    progress = ActionProgress()
    for event in (ACCEPTED, *events):
        progress.line(event)
    return progress


def test_a_complete_action_set_is_no_failure() -> None:
    finished = operation_pb2.Finished(state=operation_pb2.OPERATION_STATE_SUCCEEDED)
    progress_after(BEGAN).refuse_failure(finished)


@pytest.mark.parametrize(
    ("events", "state", "code", "message"),
    [
        ((BEGAN,), operation_pb2.OPERATION_STATE_FAILED, Exit.ROLLED_BACK, "action set nightly failed: why"),
        ((), operation_pb2.OPERATION_STATE_FAILED, Exit.LOCKED, "action set nightly did not begin: why"),
        ((BEGAN,), operation_pb2.OPERATION_STATE_CANCELLED, Exit.ROLLED_BACK, "action set nightly was cancelled"),
        ((), operation_pb2.OPERATION_STATE_CANCELLED, Exit.ROLLED_BACK, "action set nightly was cancelled"),
        (
            (BEGAN,),
            operation_pb2.OPERATION_STATE_BLOCKED,
            Exit.BLOCKED,
            "action set nightly is blocked: why; `pkger operations recover 0123456789abcdef` continues it",
        ),
    ],
)
def test_other_ends_have_a_cause_and_an_exit_status(
    events: tuple[operation_pb2.OperationEvent, ...],
    state: operation_pb2.OperationState.ValueType,
    code: Exit,
    message: str,
) -> None:
    with pytest.raises(CommandFailed) as raised:
        progress_after(*events).refuse_failure(operation_pb2.Finished(state=state, cause="why"))
    assert (raised.value.code, raised.value.message) == (code, message)


def test_the_summary_names_the_phases_that_run() -> None:
    started = operation_pb2.OperationEvent(phase_started=operation_pb2.PhaseStarted(phase=EXPORT))
    ended = operation_pb2.OperationEvent(phase_ended=operation_pb2.PhaseEnded(phase=EXPORT))
    retrying = operation_pb2.OperationEvent(phase_retrying=operation_pb2.PhaseRetrying(phase=EXPORT))
    assert progress_after(started).summary() == "action set nightly: backup/export running"
    assert progress_after(started, ended).summary() == "action set nightly: no phase running"
    assert progress_after(started, retrying).summary() == "action set nightly: no phase running"
    retrying.phase_retrying.reason = action_pb2.PHASE_REASON_INTERRUPTED
    assert progress_after(started, retrying).summary() == "action set nightly: backup/export running"


def test_the_events_of_an_operation_with_a_plan_are_none_of_an_action_set() -> None:
    progress = ActionProgress()
    finished = operation_pb2.OperationEvent(
        finished=operation_pb2.Finished(state=operation_pb2.OPERATION_STATE_SUCCEEDED)
    )
    assert progress.line(finished) is None
    assert progress.name == ""
