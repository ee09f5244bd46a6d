"""Blocked steps, the decisions that fit each, and the records after a decision."""

from collections.abc import Sequence

import pytest

from services.core.errors import RequestInvalid
from services.core.model import LABEL, SECRET, Key, Step, Verb
from services.engine.decisions import (
    BlockedStep,
    StepDecision,
    blocked_steps,
    check_decisions,
    decided_records,
    reason_of,
    records_of_consent,
)
from services.engine.operation import BlockedReason, Decision, Direction
from services.engine.outcome import Done, Failed, GivenUp, Outcome, Unknown
from services.engine.progress import Progress, recovered
from services.engine.step_state import StepRecord, StepState, may_follow
from services.kinds.format.canonical import spec_of
from tests.engine.plans import a_plan, progress_of

SPEC = spec_of({"name": "roll"})
PLAN = a_plan(
    *(Step(0, 0, verb, Key("Task", verb.value), label=Key(LABEL, "red"), old_spec=SPEC, new_spec=SPEC) for verb in Verb)
)
CREATE, UPDATE, DELETE, ATTACH, DETACH = range(5)
CONFLICT, LOST, REFUSED = Unknown("theirs", is_conflict=True, resource_id="t9"), Unknown("lost"), Failed("no")


def ended(number: int, outcome: Outcome, undo: bool = False) -> Progress:
    return progress_of(PLAN, {number: Done("t1") if undo else outcome}, {number: outcome} if undo else {})


def blocked(number: int, outcome: Outcome, undo: bool = False) -> list[BlockedStep]:
    return blocked_steps(ended(number, outcome, undo))


def shown(step: BlockedStep) -> str:
    return " ".join(decision.lower() for decision in step.decisions)


@pytest.mark.parametrize(
    ("number", "outcome", "undo", "reason", "decisions"),
    [
        (CREATE, LOST, False, "UNKNOWN_OUTCOME", "retry skip adopt"),
        (CREATE, CONFLICT, False, "CONFLICT", "retry skip keep adopt"),
        (UPDATE, CONFLICT, False, "CONFLICT", "retry skip force keep"),
        (DELETE, LOST, False, "UNKNOWN_OUTCOME", "retry skip force keep"),
        (ATTACH, LOST, False, "UNKNOWN_OUTCOME", "retry skip force keep"),
        (CREATE, REFUSED, True, "ROLLBACK", "retry skip force keep"),
        (UPDATE, CONFLICT, True, "CONFLICT", "retry skip force keep"),
        (DELETE, LOST, True, "UNKNOWN_OUTCOME", "retry skip adopt"),
        (DELETE, CONFLICT, True, "CONFLICT", "retry skip keep adopt"),
        (DETACH, REFUSED, True, "ROLLBACK", "retry skip force keep"),
    ],
)
def test_a_blocked_step_has_a_reason_and_the_decisions_that_fit(
    number: int, outcome: Outcome, undo: bool, reason: str, decisions: str
) -> None:
    [step] = blocked(number, outcome, undo)
    assert step.step == PLAN.steps[number]
    assert step.direction is (Direction.UNDO if undo else Direction.DO)
    assert step.reason == reason
    assert step.message
    assert shown(step) == decisions
    assert reason_of([step]) is step.reason


@pytest.mark.parametrize("outcome", [Done("t1"), REFUSED, GivenUp("so be it")])
def test_a_known_outcome_does_not_block(outcome: Outcome) -> None:
    assert blocked(UPDATE, outcome) == []


def test_of_several_reasons_the_most_urgent_comes_first() -> None:
    steps = blocked_steps(progress_of(PLAN, {ATTACH: CONFLICT, UPDATE: LOST}))
    assert [step.step.number for step in steps] == [UPDATE, ATTACH]
    assert reason_of(steps) is BlockedReason.CONFLICT
    assert reason_of([]) is BlockedReason.ROLLBACK


def decided(step: int, word: str, resource_id: str = "") -> StepDecision:
    return StepDecision(step, Decision(word.upper()), resource_id)


DECIDED: list[tuple[int, Outcome, bool, str, str, str]] = [
    (CREATE, LOST, False, "skip", "GIVEN_UP", "t1"),
    (CREATE, LOST, False, "adopt", "DONE", "t5"),
    (CREATE, CONFLICT, False, "keep", "KEPT", "t9"),
    (UPDATE, CONFLICT, False, "skip", "GIVEN_UP", "t1"),
    (UPDATE, CONFLICT, False, "force", "PLANNED", "t1"),
    (UPDATE, Unknown("lost"), False, "keep", "KEPT", "t1"),
    (DELETE, LOST, False, "keep", "GIVEN_UP", "t1"),
    (DETACH, LOST, False, "keep", "KEPT", "t1"),
    (CREATE, REFUSED, True, "skip", "UNDO_GIVEN_UP", "t1"),
    (CREATE, REFUSED, True, "keep", "UNDO_GIVEN_UP", "t1"),
    (CREATE, REFUSED, True, "force", "DONE", "t1"),
    (UPDATE, CONFLICT, True, "keep", "UNDONE", "t9"),
    (UPDATE, CONFLICT, True, "force", "DONE", "t1"),
    (DELETE, CONFLICT, True, "keep", "UNDONE", "t9"),
    (DELETE, LOST, True, "adopt", "UNDONE", "t5"),
    (DELETE, LOST, True, "skip", "UNDO_GIVEN_UP", "t1"),
]


@pytest.mark.parametrize(("number", "outcome", "undo", "word", "state", "resource_id"), DECIDED)
def test_a_decision_determines_the_next_record_of_the_step(
    number: int, outcome: Outcome, undo: bool, word: str, state: str, resource_id: str
) -> None:
    steps = blocked(number, outcome, undo)
    decision = decided(number, word, "t5" if word == "adopt" else "")
    check_decisions([decision], steps)
    record = steps[0].decided(Decision(word.upper()), "t1", decision.resource_id)
    assert record is not None
    assert (record.step, record.state, record.resource_id) == (number, state, resource_id)


@pytest.mark.parametrize(("number", "outcome", "undo", "word", "state", "resource_id"), DECIDED)
def test_the_record_of_a_decision_is_accepted_after_a_resume(
    number: int, outcome: Outcome, undo: bool, word: str, state: str, resource_id: str
) -> None:
    """The journal accepts the record, and so does the progress of the applier that resumes the operation."""
    before = ended(number, outcome, undo)
    direction = Direction.UNDO if undo else Direction.DO
    last = before.ended(number, outcome, direction)._replace(before_ids=("t0",))
    progress = recovered(PLAN, [last], sealed=False, rollback_cause="")
    [record] = decided_records(
        [decided(number, word, "t5" if word == "adopt" else "")], blocked_steps(before), progress
    )
    assert may_follow(last.state, record.state)
    progress.fold([record])
    assert (progress.state(number), progress.before_ids(number)) == (state, ("t0",))
    assert not progress.open(direction)


def test_a_decision_is_about_the_resource_that_the_step_was_about() -> None:
    for progress, expected in ((ended(CREATE, LOST), ""), (ended(CREATE, REFUSED, undo=True), "t1")):
        [record] = decided_records([decided(CREATE, "skip")], blocked_steps(progress), progress)
        assert record.resource_id == expected


def test_a_retried_step_gets_no_record() -> None:
    assert decided_records([decided(UPDATE, "retry")], blocked(UPDATE, LOST), ended(UPDATE, LOST)) == []


@pytest.mark.parametrize(
    ("decisions", "field"),
    [
        ([decided(DELETE, "skip")], "decisions[0].step"),
        ([decided(CREATE, "skip"), decided(CREATE, "retry")], "decisions[1].step"),
        ([decided(CREATE, "force")], "decisions[0].decision"),
        ([StepDecision(CREATE, None)], "decisions[0].decision"),
        ([decided(CREATE, "adopt")], "decisions[0].resource_id"),
        ([decided(CREATE, "skip", "t5")], "decisions[0].resource_id"),
    ],
)
def test_a_decision_that_does_not_fit_is_refused(decisions: Sequence[StepDecision], field: str) -> None:
    with pytest.raises(RequestInvalid) as refused:
        check_decisions(decisions, blocked(CREATE, LOST))
    assert refused.value.metadata["field"] == field


def test_an_inverse_that_failed_is_retried_after_a_resume() -> None:
    progress = recovered(
        PLAN, [StepRecord(UPDATE, StepState.UNDO_FAILED, "t1", "no")], sealed=False, rollback_cause="x"
    )
    assert blocked_steps(progress) == []
    assert (progress.outcome(UPDATE), progress.undo_outcome(UPDATE)) == (Done("t1"), None)


@pytest.mark.parametrize("state", [StepState.UNDO_INTENT, StepState.UNDO_FAILED, StepState.UNDO_UNKNOWN])
def test_after_the_consent_no_removal_of_a_secret_is_sent_again(state: StepState) -> None:
    plan = a_plan(Step(0, 0, Verb.CREATE, Key(SECRET, "k")), Step(0, 0, Verb.CREATE, Key("Task", "t"), new_spec=SPEC))
    records = [StepRecord(0, state, "k"), StepRecord(1, state, "t1")]
    progress = recovered(plan, records, sealed=False, rollback_cause="it failed")
    [record] = records_of_consent(progress)
    assert (record.step, record.state, record.resource_id) == (0, StepState.UNDO_GIVEN_UP, "k")
    progress.fold([record])
    assert progress.stays(0)
    assert records_of_consent(progress) == []
