"""Secrets in the engine: which are undone, which are unknown, which stay, which arrive late."""

import pytest

from planner_svc.secrets import secret_steps
from services.core.model import Key, Step, Undo, Verb
from services.drivers.embedded.kinds import EMBEDDED
from services.engine.effects import effect_of
from services.engine.late_writes import late_writes
from services.engine.operation import Direction
from services.engine.outcome import Done, Failed, Outcome, Skipped, Unknown
from services.engine.progress import Progress, recovered
from services.engine.scheduler import RetryCreations, RollBack, next_move
from services.engine.step_state import StepRecord, StepState
from tests.engine.plans import a_plan, progress_of

STAGES = ("secrets", "labels")
CREATE, UPDATE = secret_steps(["a", "b"], {"b"})
OTHER = Step(0, 1, Verb.CREATE, Key("Label", "l"))
PLAN = a_plan(CREATE, UPDATE, OTHER, stages=STAGES)
LATE = "it may have been written late, after its undo"


@pytest.mark.parametrize("outcome", [Done("a"), Failed("no"), Unknown("?"), Skipped("no")])
def test_a_created_secret_is_undone_where_it_is_certain_and_an_overwritten_one_never(outcome: Outcome) -> None:
    assert effect_of(CREATE).is_to_be_undone(outcome) == isinstance(outcome, Done)
    assert not effect_of(UPDATE).is_to_be_undone(outcome)


def test_an_overwritten_secret_does_not_seal_the_operation() -> None:
    assert not effect_of(UPDATE).seals
    assert effect_of(OTHER._replace(verb=Verb.DELETE, undo=Undo.NONE)).seals
    assert not effect_of(OTHER).seals


def test_steps_that_were_sent_before_an_applier_died_are_unresolved() -> None:
    """The label is sent again, as it has an idempotency key; the outcome of a secret stays unknown."""
    progress = Progress(PLAN, rollback_cause="no")
    progress.fold(progress.intent(step, Direction.DO) for step in (0, 1, 2))
    progress.fold([progress.ended(1, Done("b"), Direction.DO)])
    progress.fold([progress.intent(1, Direction.UNDO)])
    move = next_move(progress, EMBEDDED, is_cancelled=False)
    assert isinstance(move, RetryCreations)
    assert [effect.number for effect in move.lost] == [0]
    assert [[effect.number for effect in stage] for stage in move.stages] == [[2]]
    untouched = Progress(PLAN, rollback_cause="no")
    assert not isinstance(next_move(untouched, EMBEDDED, is_cancelled=False), RetryCreations)


def cause_of_undo(progress: Progress) -> str:
    """The cause of the rollback, with the secrets that it leaves."""
    move = next_move(progress, EMBEDDED, is_cancelled=True)
    assert isinstance(move, RollBack)
    return move.cause


@pytest.mark.parametrize(
    ("outcome", "stays"),
    [
        (None, ""),
        (Failed("no"), ""),
        (Done("b"), " (secrets that stay overwritten: 'b')"),
        (Unknown("?"), " (secrets that may have been overwritten: 'b')"),
    ],
)
def test_secrets_that_a_rollback_leaves_are_named(outcome: Outcome | None, stays: str) -> None:
    done: dict[int, Outcome] = {0: Done("a"), 2: Failed("no")}
    cause = cause_of_undo(progress_of(PLAN, done | ({1: outcome} if outcome else {})))
    assert cause.endswith(stays)
    assert ("(secrets" in cause) == bool(stays)


def test_a_secret_of_an_earlier_applier_stays_and_is_named() -> None:
    """Another writer may have written it since."""
    before = progress_of(PLAN, {0: Done("a"), 2: Failed("no")})
    records = [before._records[step] for step in (0, 2)]
    after = recovered(PLAN, records, sealed=False, rollback_cause="")
    move = next_move(after, EMBEDDED, is_cancelled=True)
    assert isinstance(move, RollBack)
    assert move.step_count == 0
    assert move.cause.endswith(" (secrets that stay, as another writer may have written them since: 'a')")


def test_secrets_that_stay_are_named_once_also_when_the_rollback_is_resumed() -> None:
    progress = progress_of(PLAN, {0: Done("a"), 1: Done("b"), 2: Failed("no")})
    progress.rollback_cause = cause = cause_of_undo(progress)
    assert cause_of_undo(progress) == cause


def test_a_resumed_rollback_names_the_secrets_that_it_leaves_as_well() -> None:
    before = progress_of(PLAN, {0: Done("a"), 1: Done("b"), 2: Failed("no")})
    began = cause_of_undo(before)
    after = recovered(PLAN, [before._records[step] for step in range(3)], sealed=False, rollback_cause=began)
    named = " (secrets that stay, as another writer may have written them since: 'a')"
    assert cause_of_undo(after) == began + named


def test_secrets_whose_removal_is_given_up_are_named() -> None:
    records = [StepRecord(0, StepState.UNDO_GIVEN_UP, "a", "no"), StepRecord(2, StepState.UNDO_FAILED, "l", "no")]
    progress = recovered(PLAN, records, sealed=False, rollback_cause="it failed")
    assert cause_of_undo(progress) == "it failed (secrets that stay: 'a')"


def test_of_many_secrets_only_the_first_are_named() -> None:
    many = a_plan(*secret_steps(map(str, range(10, 20)), {str(n) for n in range(10, 20)}), stages=STAGES)
    done: dict[int, Outcome] = {number: Done("") if number < 7 else Unknown("?") for number in range(10)}
    assert cause_of_undo(progress_of(many, done)) == (
        "update Secret '17': ? (and 2 more)"
        " (secrets that stay overwritten: '10', '11', '12', '13', '14' and 2 more;"
        " secrets that may have been overwritten: '17', '18', '19')"
    )


@pytest.mark.parametrize(
    ("done", "undone", "held_keys", "late"),
    [
        ({0: Done("a"), 1: Done("b")}, {}, {"a", "b"}, []),
        ({0: Done("a"), 1: Done("b")}, {}, {"b"}, ["a: it is gone"]),
        ({0: Done("a"), 1: Done("b")}, {0: Done("a")}, {"b"}, []),
        ({0: Unknown("?"), 1: Unknown("?")}, {0: Done("a")}, {"a", "b"}, [f"a: {LATE}"]),
        ({0: Failed("no"), 1: Failed("no")}, {}, {"a"}, [f"a: {LATE}"]),
        ({0: Skipped("no"), 1: Skipped("no")}, {}, {"a"}, []),
        ({}, {}, {"a"}, []),
    ],
)
def test_a_secret_that_arrives_late_is_reported(
    done: dict[int, Outcome], undone: dict[int, Outcome], held_keys: set[str], late: list[str]
) -> None:
    progress = progress_of(a_plan(CREATE, UPDATE, stages=STAGES), done, undone)
    found = late_writes(progress, [], set(), EMBEDDED, held_keys)
    assert [f"{each.resource_id}: {each.message}" for each in found] == late
