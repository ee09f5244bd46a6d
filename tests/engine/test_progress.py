"""How far an operation is, as its records are folded."""

import pytest

from services.core.model import Key, Step, Verb
from services.engine.operation import Direction
from services.engine.outcome import Done, Failed, GivenUp, Outcome, Skipped, Unknown
from services.engine.progress import Progress
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
    assert progress.may_have_happened(0, DO)
    assert not progress.may_have_happened(0, UNDO)
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
        Unknown("theirs", is_conflict=True, found="cpu-9"),
        Skipped("stopped"),
        GivenUp("so be it"),
    ],
)
def test_an_outcome_is_known_as_it_was_noted(outcome: Outcome) -> None:
    progress = progress_of(PLAN, {0: outcome})
    assert progress.outcome(0) == outcome
    assert progress.undo_outcome(0) is None


@pytest.mark.parametrize("direction", Direction)
def test_what_the_platform_holds_instead_of_what_was_sent_is_recorded(direction: Direction) -> None:
    progress = progress_of(PLAN, {0: Done("cpu-1")})
    record = progress.ended(0, Done("cpu-1", '{"name":"CPU"}'), direction)
    assert (record.resource_id, record.observed) == ("cpu-1", '{"name":"CPU"}')
    assert progress.ended(0, Done("cpu-1"), direction).observed == ""


@pytest.mark.parametrize(
    "outcome", [Done("cpu-1"), Failed("no"), Unknown("?"), Unknown("theirs", is_conflict=True, found="cpu-9")]
)
def test_the_outcome_of_an_inverse_stands_beside_that_of_its_step(outcome: Outcome) -> None:
    progress = progress_of(PLAN, {0: Done("cpu-1")}, {0: outcome})
    assert (progress.outcome(0), progress.undo_outcome(0)) == (Done("cpu-1"), outcome)


def test_what_was_there_when_a_creation_was_first_sent_counts_on() -> None:
    progress = Progress(PLAN)
    progress.fold([progress.intent(0, DO, ("a", "b"))])
    progress.fold([progress.retracted(0, DO)])
    progress.fold([progress.intent(0, DO, ("a", "b", "late"))])
    progress.fold([progress.ended(0, Done("cpu-1"), DO)])
    assert progress.before_ids(0) == ("a", "b")


def test_what_was_retracted_is_where_it_was_before() -> None:
    progress = Progress(PLAN)
    progress.fold([progress.intent(0, DO)])
    progress.fold([progress.retracted(0, DO)])
    assert (progress.outcome(0), open_steps(progress)) == (None, {})
    progress.fold([progress.ended(0, Done("cpu-1"), DO)])
    progress.fold([progress.intent(0, UNDO)])
    progress.fold([progress.retracted(0, UNDO)])
    assert (progress.outcome(0), progress.undo_outcome(0), open_steps(progress)) == (Done("cpu-1"), None, {})
