"""Blocked steps, the ways out of each, and what the journal knows once one is taken."""

from collections.abc import Sequence

import pytest
from pkger.applier.v1 import applier_pb2
from pkger.model.v1 import operation_pb2
from pkger.stack.v1 import journal_pb2

from applier_svc.deciding import blocked_steps, check_decisions, decision_word, reason_of, records_of
from applier_svc.outcomes import Done, Failed, GivenUp, Outcome, Unknown
from applier_svc.progress import Progress
from services.core.errors import RequestInvalid
from services.core.model import LABEL, Key, Plan, Step, Target, Verb
from services.kinds.canonical import spec_of

SPEC = spec_of({"name": "roll"})
PLAN = Plan(
    target=Target(),
    stack_id="1",
    base_generation=1,
    stages=("only",),
    steps=tuple(
        Step(number, 0, verb, Key("Task", verb.value), label=Key(LABEL, "red"), old_spec=SPEC, new_spec=SPEC)
        for number, verb in enumerate(Verb)
    ),
    resource_diffs=(),
    label_mapping_diffs=(),
    inventory=(),
    no_change=False,
    summary="{}",
)
CREATE, UPDATE, DELETE, ATTACH, DETACH = range(5)
CONFLICT, LOST, REFUSED = Unknown("theirs", is_conflict=True, found="t9"), Unknown("lost"), Failed("no")


def blocked(number: int, outcome: Outcome, undo: bool = False) -> list[operation_pb2.BlockedStep]:
    progress = Progress(done={number: Done("t1") if undo else outcome})
    if undo:
        progress.undone[number] = outcome
    return blocked_steps(PLAN, progress)


def words(step: operation_pb2.BlockedStep) -> str:
    return " ".join(map(decision_word, step.decisions))


@pytest.mark.parametrize(
    ("number", "outcome", "undo", "reason", "ways"),
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
def test_a_blocked_step_says_what_is_the_matter_and_the_ways_out(
    number: int, outcome: Outcome, undo: bool, reason: str, ways: str
) -> None:
    [step] = blocked(number, outcome, undo)
    assert (step.step, step.key.name) == (number, PLAN.steps[number].key.name)
    assert step.direction == (operation_pb2.DIRECTION_UNDO if undo else operation_pb2.DIRECTION_DO)
    assert operation_pb2.BlockedReason.Name(step.reason) == f"BLOCKED_REASON_{reason}"
    assert step.message
    assert words(step) == ways
    assert reason_of([step]) == step.reason


@pytest.mark.parametrize("outcome", [Done("t1"), REFUSED, GivenUp("so be it")])
def test_what_is_known_blocks_nothing(outcome: Outcome) -> None:
    assert blocked(UPDATE, outcome) == []


def test_of_several_reasons_the_one_that_overwrites_comes_first() -> None:
    steps = blocked_steps(PLAN, Progress(done={UPDATE: LOST, ATTACH: CONFLICT}))
    assert [step.step for step in steps] == [UPDATE, ATTACH]
    assert reason_of(steps) == operation_pb2.BLOCKED_REASON_CONFLICT
    assert reason_of([]) == operation_pb2.BLOCKED_REASON_ROLLBACK


def decided(step: int, word: str, remote_id: str = "") -> applier_pb2.StepDecision:
    decision = operation_pb2.Decision.Value(f"DECISION_{word.upper()}")
    return applier_pb2.StepDecision(step=step, decision=decision, remote_id=remote_id)


@pytest.mark.parametrize(
    ("number", "outcome", "undo", "word", "state", "remote_id"),
    [
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
    ],
)
def test_a_decision_says_what_is_known_of_the_step_from_then_on(
    number: int, outcome: Outcome, undo: bool, word: str, state: str, remote_id: str
) -> None:
    steps = blocked(number, outcome, undo)
    decisions = [decided(number, word, "t5" if word == "adopt" else "")]
    check_decisions(decisions, steps)
    [record] = records_of(decisions, steps, ["t1"] * len(PLAN.steps))
    assert journal_pb2.StepState.Name(record.state) == f"STEP_STATE_{state}"
    assert record.remote_id == remote_id


def test_what_is_tried_again_is_known_as_before() -> None:
    assert records_of([decided(UPDATE, "retry")], blocked(UPDATE, LOST), [""] * len(PLAN.steps)) == []


@pytest.mark.parametrize(
    ("decisions", "field"),
    [
        ([decided(DELETE, "skip")], "decisions[0].step"),
        ([decided(CREATE, "skip"), decided(CREATE, "retry")], "decisions[1].step"),
        ([decided(CREATE, "force")], "decisions[0].decision"),
        ([decided(CREATE, "unspecified")], "decisions[0].decision"),
        ([decided(CREATE, "adopt")], "decisions[0].remote_id"),
        ([decided(CREATE, "skip", "t5")], "decisions[0].remote_id"),
    ],
)
def test_a_decision_that_does_not_fit_is_refused(decisions: Sequence[applier_pb2.StepDecision], field: str) -> None:
    with pytest.raises(RequestInvalid) as refused:
        check_decisions(decisions, blocked(CREATE, LOST))
    assert refused.value.metadata["field"] == field
