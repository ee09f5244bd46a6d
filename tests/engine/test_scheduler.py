"""The next move of an operation before and after the seal (docs/reference/engine.md, "Steps and stages")."""

import pytest

from services.core.model import Key, Step, Undo, Verb
from services.drivers.embedded.kinds import EMBEDDED
from services.engine.operation import OperationState
from services.engine.outcome import Done, Failed, Outcome, Skipped
from services.engine.scheduler import Block, Finish, Move, RollBack, RunStage, Seal, next_move
from services.kinds.format.canonical import spec_of
from tests.engine.plans import a_plan, progress_of

RED, RAW = Key("Label", "red"), Key("Bucket", "raw")
SPEC = spec_of({"name": "x"})
PLAN = a_plan(
    Step(0, 0, Verb.UPDATE, RED, "red-1", old_spec=SPEC, new_spec=SPEC),
    Step(1, 1, Verb.DELETE, RAW, "raw-1", old_spec=SPEC, undo=Undo.NONE),
    Step(2, 2, Verb.CREATE, RAW, new_spec=SPEC, undo=Undo.NONE),
    stages=("labels", "irreversible deletions", "late creations"),
)
DONE = Done("red-1")


def move(outcomes: dict[int, Outcome], *, sealed: bool = False, cancelled: bool = False, cause: str = "") -> Move:
    progress = progress_of(PLAN, outcomes)
    progress.sealed, progress.cause = sealed, cause
    return next_move(progress, EMBEDDED, cancelled)


@pytest.mark.parametrize(
    ("outcomes", "cancelled", "cause"),
    [
        pytest.param({0: Failed("no")}, False, "", id="a step fails"),
        pytest.param({0: DONE}, True, "", id="it is cancelled"),
        pytest.param({0: Skipped("stopped")}, True, "", id="it is cancelled within a stage"),
        pytest.param({0: DONE}, False, "refused", id="its record is refused"),
    ],
)
def test_an_operation_rolls_back_before_the_seal(outcomes: dict[int, Outcome], cancelled: bool, cause: str) -> None:
    assert isinstance(move(outcomes, cancelled=cancelled, cause=cause), RollBack)


def test_the_seal_comes_before_the_first_irreversible_step() -> None:
    assert move({0: DONE}) == Seal()
    assert isinstance(move({0: DONE}, sealed=True), RunStage)


@pytest.mark.parametrize("cancelled", [False, True])
@pytest.mark.parametrize("outcome", [Done("raw-1"), Failed("no")])
def test_past_the_seal_an_operation_goes_on_whatever_happens(outcome: Outcome, cancelled: bool) -> None:
    following = move({0: DONE, 1: outcome}, sealed=True, cancelled=cancelled)
    assert isinstance(following, RunStage)
    assert [effect.number for effect in following.effects] == [2]
    end = move({0: DONE, 1: outcome, 2: Done("raw-2")}, sealed=True, cancelled=cancelled)
    assert isinstance(end, Finish)
    assert (end.state, set(end.leftovers)) == (OperationState.SUCCEEDED, {1} if isinstance(outcome, Failed) else set())


def test_past_the_seal_an_operation_whose_record_is_refused_is_blocked() -> None:
    outcomes: dict[int, Outcome] = {0: DONE, 1: Done("raw-1"), 2: Done("raw-2")}
    assert move(outcomes, sealed=True, cause="refused") == Block("refused")
