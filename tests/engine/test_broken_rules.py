"""The simulation finds defects: each test breaks one rule of the engine, and some invariant then fails."""

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
    """The first broken invariant that the simulation finds; empty when it finds none."""
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


def test_no_finding_without_a_defect() -> None:
    assert not finding("replaced", Memory.SEARCHED)


def test_steps_that_never_seal(monkeypatch: Patch) -> None:
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
    assert "rolled back after the seal" in finding("replaced", Memory.KEYS)


def test_a_recreated_resource_loses_its_references(monkeypatch: Patch) -> None:
    monkeypatch.setattr(Delete, "inverse", lambda self: self._turned(Verb.CREATE)._replace(references=()))
    assert "undone, and not as before" in finding("rewired", Memory.NAMES)


def test_an_undone_update_keeps_the_new_references(monkeypatch: Patch) -> None:
    monkeypatch.setattr(
        Update, "inverse", lambda self: self._turned(Verb.UPDATE)._replace(references=self.step.references)
    )
    assert "undone, and not as before" in finding("turned", Memory.NAMES)


@pytest.mark.parametrize(
    ("memory", "problem"),
    [
        # The creation is sent again, and found, but not if the operation rolls back.
        (Memory.KEYS, "there, and not recorded"),
        (Memory.NAMES, "an orphan"),
        (Memory.SEARCHED, "an orphan"),
    ],
)
def test_intents_are_forgotten_by_recovery(monkeypatch: Patch, memory: Memory, problem: str) -> None:
    recovered = progress.recovered

    def forgetful(plan: Plan, records: Collection[StepRecord], sealed: bool, rollback_cause: str) -> Progress:
        return recovered(plan, [each for each in records if each.state is not StepState.INTENT], sealed, rollback_cause)

    monkeypatch.setattr(progress, "recovered", forgetful)
    assert problem in finding("fresh", memory)


@pytest.mark.parametrize("memory", [Memory.NAMES, Memory.SEARCHED])
def test_a_creation_is_sent_again_where_keys_are_not_stored(monkeypatch: Patch, memory: Memory) -> None:
    monkeypatch.setattr(Create, "is_repeatable", lambda self, platform: True)
    assert "an orphan" in finding("fresh", memory)


def test_ids_before_a_creation_are_not_journaled(monkeypatch: Patch) -> None:
    intent = Progress.intent

    def without(self: Progress, step: int, direction: Direction, before_ids: object = ()) -> StepRecord:
        return intent(self, step, direction)

    monkeypatch.setattr(Progress, "intent", without)
    assert "as wanted" in finding("fresh", Memory.SEARCHED)


def test_open_steps_are_not_looked_up(monkeypatch: Patch) -> None:
    monkeypatch.setattr(scheduler, "_look_up", lambda known, platform: None)
    assert "an orphan" in finding("fresh", Memory.NAMES)


def test_creations_are_not_sent_again_before_a_rollback(monkeypatch: Patch) -> None:
    monkeypatch.setattr(scheduler, "_retried_creations", lambda known, platform, cause: None)
    assert "there, and not recorded" in finding("fresh", Memory.KEYS)


def test_undos_run_in_forward_order(monkeypatch: Patch) -> None:
    monkeypatch.setattr(scheduler, "reversed", list, raising=False)
    assert "blocked by nothing" in finding("turned", Memory.KEYS)


def test_a_deletion_without_a_response_counts_as_no_effect(monkeypatch: Patch) -> None:
    def nothing(self: Delete, *args: object) -> Finding:
        return NoEffect()

    monkeypatch.setattr(Delete, "finding", nothing)
    assert "a recorded resource is gone" in finding("emptied", Memory.KEYS)


def test_a_recreated_resource_keeps_its_old_id_in_the_record(monkeypatch: Patch) -> None:
    monkeypatch.setattr(conclusion, "after_undo", lambda known, recorded: RecordChanges())
    assert "recorded, and not there" in finding("mixed", Memory.KEYS)


def test_leftovers_are_not_recorded(monkeypatch: Patch) -> None:
    after_success = conclusion.after_success

    def forgetful(known: Progress, leftovers: object, recorded: Sequence[InventoryEntry]) -> RecordChanges:
        return after_success(known, (), recorded)

    monkeypatch.setattr(conclusion, "after_success", forgetful)
    assert "an orphan" in finding("mixed", Memory.KEYS)


def test_a_failed_step_does_not_roll_back(monkeypatch: Patch) -> None:
    monkeypatch.setattr(scheduler, "_failure", lambda known: "")
    assert "not all is done" in finding("fresh", Memory.KEYS)


def test_an_earlier_step_about_a_resource_is_undone_before_a_later_one(monkeypatch: Patch) -> None:
    monkeypatch.setattr(scheduler, "_free", lambda waiting, failed: waiting)
    assert "undone, and not as before" in finding("turned", Memory.KEYS)
