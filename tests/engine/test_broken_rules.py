"""The simulation finds what is wrong: each test breaks one rule of the engine, and some case then does not hold."""

from collections.abc import Collection, Sequence
from itertools import chain

import pytest

from services.core.model import InventoryEntry, Plan, RecordChanges, Verb
from services.engine import conclusion, progress, scheduler
from services.engine.effects import Create, Delete, Update
from services.engine.effects.effect import Effect
from services.engine.operation import Direction
from services.engine.outcome import Finding, NoEffect
from services.engine.progress import Progress
from services.engine.step_life import StepRecord, StepState
from tests.engine import cases
from tests.engine.model_platform import Memory
from tests.engine.model_store import Broken
from tests.engine.simulation import Situation

Patch = pytest.MonkeyPatch


def finding(change: str, memory: Memory) -> str:
    """What the simulation has to say against the engine as it is now; empty when it finds nothing."""
    try:
        situation = Situation(change, memory)
        for case in chain(
            cases.crashes(situation),
            cases.faults(situation),
            cases.cancellations(situation),
            cases.refused_records(situation),
            cases.sample(cases.cancellations_and_more, situation, 0.2),
        ):
            situation.try_out(case)
    except Broken as broken:
        return str(broken).partition("\n")[0]
    return ""


def test_nothing_is_found_where_nothing_is_broken() -> None:
    assert not finding("replaced", Memory.SEARCHED)


def test_a_seal_that_is_never_asked_for(monkeypatch: Patch) -> None:
    monkeypatch.setattr(Effect, "seals", False)
    assert "irreversible before the seal" in finding("mixed", Memory.KEYS)


def test_an_undo_past_the_seal(monkeypatch: Patch) -> None:
    following = scheduler.next_move

    def next_move(known: Progress, *args: object) -> scheduler.Move:
        known.sealed, sealed = False, known.sealed
        move = following(known, *args)  # type: ignore[arg-type]
        known.sealed = sealed
        return following(known, *args) if isinstance(move, scheduler.Seal) else move  # type: ignore[arg-type]

    monkeypatch.setattr(scheduler, "next_move", next_move)
    assert "turned back after the seal" in finding("replaced", Memory.KEYS)


def test_what_was_deleted_comes_back_without_its_references(monkeypatch: Patch) -> None:
    monkeypatch.setattr(Delete, "inverse", lambda self: self._turned(Verb.CREATE)._replace(references=()))
    assert "undone, and not as before" in finding("rewired", Memory.NAMES)


def test_what_was_updated_keeps_its_new_references(monkeypatch: Patch) -> None:
    monkeypatch.setattr(
        Update, "inverse", lambda self: self._turned(Verb.UPDATE)._replace(references=self.step.references)
    )
    assert "undone, and not as before" in finding("turned", Memory.NAMES)


@pytest.mark.parametrize(
    ("memory", "told"),
    [
        # The creation is sent again, and found; but not if the operation turns back.
        (Memory.KEYS, "there, and not recorded"),
        (Memory.NAMES, "an orphan"),
        (Memory.SEARCHED, "an orphan"),
    ],
)
def test_an_intent_is_taken_for_a_plan(monkeypatch: Patch, memory: Memory, told: str) -> None:
    recovered = progress.recovered

    def forgetful(plan: Plan, records: Collection[StepRecord], sealed: bool, rollback_cause: str) -> Progress:
        return recovered(plan, [each for each in records if each.state is not StepState.INTENT], sealed, rollback_cause)

    monkeypatch.setattr(progress, "recovered", forgetful)
    assert told in finding("fresh", memory)


@pytest.mark.parametrize("memory", [Memory.NAMES, Memory.SEARCHED])
def test_a_creation_is_sent_again_where_nobody_remembers_it(monkeypatch: Patch, memory: Memory) -> None:
    monkeypatch.setattr(Create, "is_repeatable", lambda self, platform: True)
    assert "an orphan" in finding("fresh", memory)


def test_what_was_there_before_is_not_noted(monkeypatch: Patch) -> None:
    intent = Progress.intent

    def without(self: Progress, step: int, direction: Direction, before_ids: object = ()) -> StepRecord:
        return intent(self, step, direction)

    monkeypatch.setattr(Progress, "intent", without)
    assert "as wanted" in finding("fresh", Memory.SEARCHED)


def test_nobody_looks_what_became_of_what_was_sent(monkeypatch: Patch) -> None:
    monkeypatch.setattr(scheduler, "_look_up", lambda known, platform: None)
    assert "an orphan" in finding("fresh", Memory.NAMES)


def test_nobody_asks_what_became_of_what_was_sent_before_it_is_undone(monkeypatch: Patch) -> None:
    monkeypatch.setattr(scheduler, "_retried_creations", lambda known, platform, cause: None)
    assert "there, and not recorded" in finding("fresh", Memory.KEYS)


def test_the_undo_goes_forward(monkeypatch: Patch) -> None:
    monkeypatch.setattr(scheduler, "reversed", list, raising=False)
    assert "blocked by nothing" in finding("turned", Memory.KEYS)


def test_a_deletion_without_an_answer_is_taken_for_nothing(monkeypatch: Patch) -> None:
    def nothing(self: Delete, *args: object) -> Finding:
        return NoEffect()

    monkeypatch.setattr(Delete, "finding", nothing)
    assert "something is gone, and nobody knows" in finding("emptied", Memory.KEYS)


def test_what_was_made_again_keeps_its_old_id(monkeypatch: Patch) -> None:
    monkeypatch.setattr(conclusion, "after_undo", lambda known, recorded: RecordChanges())
    assert "recorded, and not there" in finding("mixed", Memory.KEYS)


def test_what_could_not_be_deleted_is_forgotten(monkeypatch: Patch) -> None:
    after_success = conclusion.after_success

    def forgetful(known: Progress, leftovers: object, recorded: Sequence[InventoryEntry]) -> RecordChanges:
        return after_success(known, (), recorded)

    monkeypatch.setattr(conclusion, "after_success", forgetful)
    assert "an orphan" in finding("mixed", Memory.KEYS)


def test_a_failed_step_is_no_reason_to_turn_back(monkeypatch: Patch) -> None:
    monkeypatch.setattr(scheduler, "_failure", lambda known: "")
    assert "not all is done" in finding("fresh", Memory.KEYS)


def test_an_earlier_step_about_a_resource_is_taken_back_before_a_later_one(monkeypatch: Patch) -> None:
    monkeypatch.setattr(scheduler, "_free", lambda waiting, failed: waiting)
    assert "undone, and not as before" in finding("turned", Memory.KEYS)
