"""A folded journal has exactly the records of the applier that wrote it."""

import pytest
from hypothesis import given

from services.engine.journal_fold import JournalBrokenError, JournalEntry, Sent, StepsEnded, folded
from services.engine.operation import Direction
from services.engine.outcome import Done, Failed, Outcome, Skipped, Unknown
from services.engine.progress import Progress
from services.engine.step_state import TRANSITIONS, StepEvent, StepRecord, StepState
from tests.engine.test_step_life import PLAN, record_of, walks

DO, UNDO = Direction.DO, Direction.UNDO


def _outcome(record: StepRecord) -> Outcome:
    match record.state:
        case StepState.DONE | StepState.UNDONE:
            return Done(record.resource_id)
        case StepState.FAILED | StepState.UNDO_FAILED:
            return Failed(record.message, record.reason)
        case StepState.UNKNOWN | StepState.UNDO_UNKNOWN:
            return Unknown(record.message)
        case _:
            return Skipped(record.message)


def _entry(record: StepRecord, event: StepEvent, before: StepRecord | None) -> JournalEntry:
    """The write of an applier for *event*: a journal event, and a record only for facts that the event lacks."""
    direction = UNDO if event.startswith("undo_") else DO
    match event:
        case StepEvent.SEND | StepEvent.UNDO_SEND:
            is_complete = not record.before_ids or (before is not None and before.before_ids == record.before_ids)
            return JournalEntry([Sent(direction, [record.step])], [] if is_complete else [record])
        case StepEvent.RETRACT | StepEvent.UNDO_RETRACT | StepEvent.GIVE_UP | StepEvent.KEEP | StepEvent.UNDO_GIVE_UP:
            return JournalEntry([], [record])
        case _:
            return JournalEntry([StepsEnded(direction, {record.step: _outcome(record)})])


@given(walks)
def test_events_fold_to_the_records_of_the_applier(walk: list[tuple[int, StepEvent]]) -> None:
    progress, last, entries = Progress(PLAN), dict[int, StepRecord](), list[JournalEntry]()
    for step, event in walk:
        is_blind = progress.state(step) in (StepState.INTENT, StepState.UNKNOWN) and event.startswith("undo")
        if event in TRANSITIONS[progress.state(step)] and (progress.effects[step].is_of_secret or not is_blind):
            record = record_of(progress, step, event)
            entries.append(_entry(record, event, last.get(step)))
            last[step] = record
            progress.fold([record])
    assert folded(entries, len(PLAN.steps)) == [last[step] for step in sorted(last)]
    assert progress.done_count() == sum(progress.stands(step) for step in range(len(PLAN.steps)))


def test_the_outcome_of_a_batch_and_the_intents_of_the_next_may_be_one_write() -> None:
    first = JournalEntry([Sent(DO, [0, 1])])
    second = JournalEntry([StepsEnded(DO, {0: Done("a"), 1: Unknown("lost")}), Sent(DO, [1, 2])])
    assert folded([first, second], 3) == [
        StepRecord(0, StepState.DONE, "a"),
        StepRecord(1, StepState.INTENT),
        StepRecord(2, StepState.INTENT),
    ]


def test_a_record_overrides_an_event_of_the_same_step() -> None:
    observed = StepRecord(0, StepState.DONE, "a", observed="{}")
    entries = [JournalEntry([Sent(DO, [0])]), JournalEntry([StepsEnded(DO, {0: Done("a")})], [observed])]
    assert folded(entries, 1) == [observed]


@pytest.mark.parametrize(
    ("entries", "problem"),
    [
        ([JournalEntry([Sent(DO, [7])])], "there is no step 7 in a plan of 3 steps"),
        ([JournalEntry([Sent(DO, [-1])])], "there is no step -1"),
        ([JournalEntry([], [StepRecord(3, StepState.DONE)])], "there is no step 3"),
        ([JournalEntry([StepsEnded(UNDO, {0: Done("a")})])], "step 0 was PLANNED and cannot be UNDONE"),
        (
            [JournalEntry([StepsEnded(DO, {0: Failed("no")})]), JournalEntry([Sent(DO, [0])])],
            "step 0 was FAILED and cannot be INTENT",
        ),
    ],
)
def test_a_journal_with_an_impossible_transition_is_broken(entries: list[JournalEntry], problem: str) -> None:
    with pytest.raises(JournalBrokenError, match=problem):
        folded(entries, 3)
