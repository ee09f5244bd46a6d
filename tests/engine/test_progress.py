"""The progress of an operation, as its records are folded."""

import pytest

from services.core.model import Key, Step, Verb
from services.engine.effects import inverse_of
from services.engine.operation import Direction
from services.engine.outcome import Done, Failed, GivenUp, Outcome, Skipped, Unknown
from services.engine.progress import Progress, recovered
from services.engine.step_state import StepRecord, StepState
from services.kinds.format.canonical import spec_of
from tests.engine.plans import a_plan, progress_of

PLAN = a_plan(Step(0, 0, Verb.CREATE, Key("Dashboard", "cpu"), new_spec=spec_of({"name": "cpu"})))
DO, UNDO = Direction.DO, Direction.UNDO


def open_steps(progress: Progress) -> dict[int, Direction]:
    return {effect.number: direction for direction in Direction for effect in progress.open(direction)}


def test_an_intent_is_open_until_its_outcome_is_known() -> None:
    progress = Progress(PLAN)
    progress.fold([progress.intent(0, DO)])
    assert open_steps(progress) == {0: DO}
    assert progress.is_unresolved(0, DO)
    assert not progress.is_unresolved(0, UNDO)
    progress.fold([progress.ended(0, Done("cpu-1"), DO)])
    assert open_steps(progress) == {}
    progress.fold([progress.intent(0, UNDO)])
    assert open_steps(progress) == {0: UNDO}
    assert (progress.took_effect(0), progress.was_undone(0)) == (True, False)
    progress.fold([progress.ended(0, Done("cpu-1"), UNDO)])
    assert (progress.took_effect(0), progress.was_undone(0)) == (True, True)


@pytest.mark.parametrize(
    "outcome",
    [
        Done("cpu-1"),
        Failed("no"),
        Unknown("?"),
        Unknown("theirs", is_conflict=True, resource_id="cpu-9"),
        Skipped("stopped"),
        GivenUp("so be it"),
    ],
)
def test_an_outcome_is_folded_as_it_was_journaled(outcome: Outcome) -> None:
    progress = progress_of(PLAN, {0: outcome})
    assert progress.outcome(0) == outcome
    assert progress.undo_outcome(0) is None


CPU = Key("Dashboard", "cpu")
OLD, NEXT, LAST = (spec_of({"name": "cpu", "description": text}) for text in ("old", "next", "last"))
TWICE = a_plan(
    Step(0, 0, Verb.UPDATE, CPU, "cpu-1", old_spec=OLD, new_spec=NEXT),
    Step(1, 1, Verb.UPDATE, CPU, "cpu-1", old_spec=NEXT, new_spec=LAST),
    Step(2, 2, Verb.DELETE, CPU, "cpu-1", old_spec=LAST),
)


def expected(progress: Progress, step: int, direction: Direction = DO) -> str:
    """The spec that a step, or its inverse, expects; empty for any."""
    effect = progress.effects[step]
    sending = progress.sending(effect if direction is DO else inverse_of(effect))
    return sending.expected.spec_json if sending.expected else ""


def test_a_write_expects_the_planned_content_and_then_the_last_written_one() -> None:
    progress = Progress(TWICE)
    assert expected(progress, 0) == OLD.text
    progress = progress_of(TWICE, {0: Done("cpu-1", '{"name":"CPU"}')})
    assert expected(progress, 1) == '{"name":"CPU"}'
    assert expected(progress, 0, UNDO) == '{"name":"CPU"}'
    progress = progress_of(TWICE, {0: Done("cpu-1"), 1: Done("cpu-1")})
    assert [expected(progress, 2), expected(progress, 1, UNDO)] == [LAST.text, LAST.text]


@pytest.mark.parametrize("ending", [Done("cpu-1"), Failed("no"), Unknown("?"), None])
def test_expectations_are_the_same_after_a_resume(ending: Outcome | None) -> None:
    before = progress_of(TWICE, {0: Done("cpu-1"), 1: Done("cpu-1")})
    before.fold([before.intent(1, UNDO)])
    records = [before.intent(1, UNDO), before.ended(0, Done("cpu-1"), DO)]
    if ending:
        before.fold([before.ended(1, ending, UNDO)])
        records[0] = before._records[1]
    after = recovered(TWICE, sorted(records), sealed=False, rollback_cause="it failed")
    assert expected(after, 0, UNDO) == expected(before, 0, UNDO)
    assert expected(after, 0, UNDO) == (NEXT.text if ending == Done("cpu-1") else LAST.text)


def test_a_forced_step_expects_nothing_until_it_is_done() -> None:
    progress = Progress(TWICE)
    progress.fold([progress.intent(0, DO), StepRecord(0, StepState.PLANNED, is_forced=True)])
    for records in ([], [progress.intent(0, DO)], [progress.retracted(0, DO)]):
        progress.fold(records)
        assert expected(progress, 0) == ""


@pytest.mark.parametrize("direction", Direction)
def test_content_that_differs_from_the_sent_one_is_recorded(direction: Direction) -> None:
    progress = progress_of(PLAN, {0: Done("cpu-1")})
    record = progress.ended(0, Done("cpu-1", '{"name":"CPU"}'), direction)
    assert (record.resource_id, record.observed) == ("cpu-1", '{"name":"CPU"}')
    assert progress.ended(0, Done("cpu-1"), direction).observed == ""


@pytest.mark.parametrize(
    "outcome", [Done("cpu-1"), Failed("no"), Unknown("?"), Unknown("theirs", is_conflict=True, resource_id="cpu-9")]
)
def test_the_outcome_of_an_inverse_stands_beside_that_of_its_step(outcome: Outcome) -> None:
    progress = progress_of(PLAN, {0: Done("cpu-1")}, {0: outcome})
    assert (progress.outcome(0), progress.undo_outcome(0)) == (Done("cpu-1"), outcome)


def test_ids_before_the_first_sending_of_a_creation_are_retained() -> None:
    progress = Progress(PLAN)
    progress.fold([progress.intent(0, DO, ("a", "b"))])
    progress.fold([progress.retracted(0, DO)])
    progress.fold([progress.intent(0, DO, ("a", "b", "late"))])
    progress.fold([progress.ended(0, Done("cpu-1"), DO)])
    assert progress.before_ids(0) == ("a", "b")


def test_a_retracted_step_returns_to_the_state_before() -> None:
    progress = Progress(PLAN)
    progress.fold([progress.intent(0, DO)])
    progress.fold([progress.retracted(0, DO)])
    assert (progress.outcome(0), open_steps(progress)) == (None, {})
    progress.fold([progress.ended(0, Done("cpu-1"), DO)])
    progress.fold([progress.intent(0, UNDO)])
    progress.fold([progress.retracted(0, UNDO)])
    assert (progress.outcome(0), progress.undo_outcome(0), open_steps(progress)) == (Done("cpu-1"), None, {})
