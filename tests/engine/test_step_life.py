"""The life of a step: the transition table, and the progress after an applier died."""

from collections import deque
from collections.abc import Iterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from services.core.model import LABEL, SECRET, InventoryEntry, Key, Origin, Plan, Step, Undo, Verb
from services.engine.conclusion import after_undo
from services.engine.effects import inverse_of
from services.engine.operation import Direction
from services.engine.outcome import Done, Failed, RejectionReason, Skipped, Unknown
from services.engine.progress import Progress, recovered
from services.engine.step_state import (
    FINAL,
    IN_EFFECT,
    OF_UNDO,
    OPEN,
    STAYS,
    TRANSITIONS,
    StepEvent,
    StepRecord,
    StepState,
    may_follow,
)
from services.kinds.format.canonical import spec_of
from tests.engine.plans import a_plan

S, E = StepState, StepEvent
DO, UNDO = Direction.DO, Direction.UNDO

LEADS_TO = {
    E.SEND: S.INTENT,
    E.SUCCEED: S.DONE,
    E.FAIL: S.FAILED,
    E.LOSE: S.UNKNOWN,
    E.RETRACT: S.PLANNED,
    E.SKIP: S.SKIPPED,
    E.UNDO_SEND: S.UNDO_INTENT,
    E.UNDO_SUCCEED: S.UNDONE,
    E.UNDO_FAIL: S.UNDO_FAILED,
    E.UNDO_LOSE: S.UNDO_UNKNOWN,
    E.UNDO_RETRACT: S.DONE,
    E.GIVE_UP: S.GIVEN_UP,
    E.KEEP: S.KEPT,
    E.UNDO_GIVE_UP: S.UNDO_GIVEN_UP,
}
"""An event leads to the same state from every state in which it can occur."""

HAPPENS = {
    S.PLANNED: "send succeed fail lose retract skip",
    S.SKIPPED: "send succeed fail lose retract skip",
    S.INTENT: "send succeed fail lose retract undo_send undo_succeed undo_fail undo_lose",
    S.UNKNOWN: "send succeed fail lose retract undo_send undo_succeed undo_fail undo_lose give_up keep",
    S.DONE: "undo_send undo_succeed undo_fail undo_lose undo_retract",
    S.UNDO_INTENT: "undo_send undo_succeed undo_fail undo_lose undo_retract undo_give_up",
    S.UNDO_FAILED: "undo_send undo_succeed undo_fail undo_lose undo_retract undo_give_up",
    S.UNDO_UNKNOWN: "undo_send undo_succeed undo_fail undo_lose undo_retract undo_give_up",
    S.FAILED: "",
    S.UNDONE: "",
    S.GIVEN_UP: "",
    S.KEPT: "",
    S.UNDO_GIVEN_UP: "",
}


@pytest.mark.parametrize("event", StepEvent)
@pytest.mark.parametrize("state", StepState)
def test_each_event_occurs_exactly_where_the_table_has_it(state: StepState, event: StepEvent) -> None:
    expected = LEADS_TO[event] if event in HAPPENS[state].split() else None
    assert TRANSITIONS[state].get(event) is expected


def test_the_table_has_every_state_and_every_event() -> None:
    assert TRANSITIONS.keys() == HAPPENS.keys() == set(StepState)
    assert {event for events in TRANSITIONS.values() for event in events} == LEADS_TO.keys() == set(StepEvent)


def path_to(wanted: StepState, start: StepState = S.PLANNED) -> list[StepState] | None:
    """The states on the shortest way to *wanted*; None when there is none."""
    queue, seen = deque([[start]]), {start}
    while queue:
        path = queue.popleft()
        if path[-1] is wanted:
            return path
        for state in TRANSITIONS[path[-1]].values():
            if state not in seen:
                seen.add(state)
                queue.append([*path, state])
    return None


@pytest.mark.parametrize("state", StepState)
def test_every_state_is_reached_and_left_for_a_final_one(state: StepState) -> None:
    assert path_to(state) is not None
    assert any(path_to(final, state) for final in FINAL)
    assert (state in FINAL) == (not TRANSITIONS[state])


def transitions() -> Iterator[tuple[StepState, StepEvent, StepState]]:
    for before, events in TRANSITIONS.items():
        for event, after in events.items():
            yield before, event, after


def test_the_sets_of_states_agree_with_the_table() -> None:
    assert {LEADS_TO[E.SEND], LEADS_TO[E.UNDO_SEND]} == OPEN
    assert {after for _, event, after in transitions() if is_of_undo(event)} == OF_UNDO
    assert {S.FAILED, S.UNDONE, S.GIVEN_UP} | STAYS == FINAL
    assert FINAL & IN_EFFECT == STAYS
    # A step that certainly took effect, or is to be undone, is in effect until it is undone.
    assert {LEADS_TO[E.SUCCEED], LEADS_TO[E.KEEP]} | OF_UNDO - {S.UNDONE} == IN_EFFECT


def is_of_undo(event: StepEvent) -> bool:
    """Whether the inverse of a step is sent or was sent after *event*; a retracted one leaves the step unchanged."""
    return event.startswith("undo_") and event is not E.UNDO_RETRACT


@pytest.mark.parametrize(("before", "event", "after"), list(transitions()))
def test_a_step_in_effect_stays_so_until_it_is_undone(before: StepState, event: StepEvent, after: StepState) -> None:
    if before in IN_EFFECT:
        assert (after in IN_EFFECT) == (event is not E.UNDO_SUCCEED)
    else:
        assert (after in IN_EFFECT) == (after is not S.UNDONE and (is_of_undo(event) or event in (E.SUCCEED, E.KEEP)))


@pytest.mark.parametrize("after", StepState)
@pytest.mark.parametrize("before", StepState)
def test_a_state_may_follow_itself_and_each_state_with_an_event_to_it(before: StepState, after: StepState) -> None:
    assert may_follow(before, after) == (after is before or after in TRANSITIONS[before].values())


ONE = a_plan(Step(0, 0, Verb.UPDATE, Key("Task", "t"), "t1", old_spec=spec_of({"name": "o"})))


def brought_to(state: StepState) -> Progress:
    progress, path = Progress(ONE), path_to(state)
    assert path
    progress.fold(StepRecord(0, each, "t1") for each in path)
    return progress


@pytest.mark.parametrize(
    ("before", "after"),
    [(before, after) for before in StepState for after in StepState if not may_follow(before, after)],
)
def test_an_impossible_transition_is_not_folded(before: StepState, after: StepState) -> None:
    progress = brought_to(before)
    known = (
        progress.outcome(0),
        progress.undo_outcome(0),
        progress.open(DO),
        progress.open(UNDO),
        progress.resource(0),
    )
    with pytest.raises(ValueError, match=f"step 0 was {before} and cannot be {after}"):
        progress.fold([StepRecord(0, after, "t2")])
    assert progress.state(0) is before
    assert known == (
        progress.outcome(0),
        progress.undo_outcome(0),
        progress.open(DO),
        progress.open(UNDO),
        progress.resource(0),
    )


@pytest.mark.parametrize("state", StepState)
def test_a_repeated_record_changes_nothing(state: StepState) -> None:
    once, twice = brought_to(state), brought_to(state)
    twice.fold([StepRecord(0, state, "t1")])
    assert seen(once, 0) == seen(twice, 0)


def seen(progress: Progress, step: int) -> dict[str, object]:
    """All that the progress returns about a step."""
    return {
        "state": progress.state(step),
        "outcome": progress.outcome(step),
        "undo_outcome": progress.undo_outcome(step),
        "open": [each for each in Direction if any(effect.number == step for effect in progress.open(each))],
        "took_effect": progress.took_effect(step),
        "was_undone": progress.was_undone(step),
        "stands": progress.stands(step),
        "stays": progress.stays(step),
        "is_kept": progress.is_kept(step),
        "is_unresolved": [each for each in Direction if progress.is_unresolved(step, each)],
        "resource": progress.resource(step),
        "before_ids": progress.before_ids(step),
    }


SPEC = spec_of({"name": "roll"})
PLAN = a_plan(
    Step(0, 0, Verb.CREATE, Key("Task", "new"), new_spec=SPEC),
    Step(0, 0, Verb.UPDATE, Key("Task", "changed"), "t1", old_spec=SPEC, new_spec=SPEC),
    Step(0, 0, Verb.DELETE, Key("Task", "gone"), "t2", old_spec=SPEC, undo=Undo.RECREATE),
    Step(0, 0, Verb.ATTACH, Key("Task", "changed"), "t1", label=Key(LABEL, "red"), label_id="l1"),
    Step(0, 0, Verb.DETACH, Key("Task", "changed"), "t1", label=Key(LABEL, "blue"), label_id="l2"),
    Step(0, 0, Verb.CREATE, Key(SECRET, "k")),
)
CREATE, UPDATE, DELETE, ATTACH, DETACH, PUT = range(6)


def record_of(progress: Progress, step: int, event: StepEvent) -> StepRecord:
    """The record that an applier writes for *event*."""
    effect = progress.effects[step]
    direction = UNDO if event.startswith("undo_") else DO
    sent = inverse_of(effect) if direction is UNDO else effect
    target = sent.target(progress.ids)
    match event:
        case E.SEND | E.UNDO_SEND:
            return progress.intent(step, direction, (f"{step} was there",) if sent.makes else ())
        case E.SUCCEED | E.UNDO_SUCCEED:
            return progress.ended(step, Done(f"{step} made" if sent.makes else target), direction)
        case E.FAIL | E.UNDO_FAIL:
            return progress.ended(step, Failed("no", RejectionReason.NAME_TAKEN), direction)
        case E.LOSE | E.UNDO_LOSE:
            return progress.ended(step, Unknown("lost"), direction)
        case E.RETRACT | E.UNDO_RETRACT:
            return progress.retracted(step, direction)
        case E.SKIP:
            return progress.ended(step, Skipped("stopped"), direction)
        case E.GIVE_UP | E.KEEP | E.UNDO_GIVE_UP:
            state = LEADS_TO[event]
            message = "" if event is E.KEEP else "so be it"
            return StepRecord(step, state, progress.resource(step), message, before_ids=progress.before_ids(step))


def walked(plan: Plan, walk: list[tuple[int, StepEvent]]) -> tuple[Progress, list[StepRecord]]:
    """The progress after the possible events of *walk*, and the last record of each step, sorted by step."""
    progress, last = Progress(plan), dict[int, StepRecord]()
    for step, event in walk:
        # Only a new secret is undone before its outcome is known: its inverse is right for both outcomes.
        is_blind = progress.state(step) in (S.INTENT, S.UNKNOWN) and event.startswith("undo")
        if event in TRANSITIONS[progress.state(step)] and (progress.effects[step].is_of_secret or not is_blind):
            last[step] = record_of(progress, step, event)
            progress.fold([last[step]])
    return progress, [last[step] for step in sorted(last)]


walks = st.lists(st.tuples(st.sampled_from(range(len(PLAN.steps))), st.sampled_from(StepEvent)), max_size=60)


def after_recovery(live: Progress, step: int) -> dict[str, object]:
    """The expected view of a step after a resume, as documented at ``recovered``."""
    known = seen(live, step)
    match live.state(step):
        case S.UNKNOWN if not live.effects[step].is_of_secret:
            return known | {"outcome": None, "open": [DO]}
        case S.UNDO_UNKNOWN:
            return known | {"undo_outcome": None, "open": [UNDO]}
        case S.UNDO_FAILED:
            return known | {"undo_outcome": None}
        case S.SKIPPED:
            return known | {"outcome": None}
        case _:
            return known


@given(walks)
@example([(PUT, E.SEND), (PUT, E.UNDO_SEND), (PUT, E.UNDO_SUCCEED)])
def test_the_progress_after_a_resume_differs_only_in_steps_that_are_looked_up_or_retried(
    walk: list[tuple[int, StepEvent]],
) -> None:
    live, last = walked(PLAN, walk)
    found = recovered(PLAN, last, sealed=False, rollback_cause="")
    for step in range(len(PLAN.steps)):
        expected, known = after_recovery(live, step), seen(found, step)
        if step == DELETE and live.state(step) is S.UNDONE:
            # The journal has one resource for each step: after a recreation, not the deleted one any more.
            for each in (expected, known):
                each.pop("resource")
                each.pop("outcome")
        assert known == expected
    assert found.ids.all_resources() == live.ids.all_resources()


@given(walks)
def test_an_applier_after_a_resume_writes_records_that_the_store_accepts(walk: list[tuple[int, StepEvent]]) -> None:
    """Applier and store have the same table, but may start from different states."""
    _, last = walked(PLAN, walk)
    for record in last:
        for event in TRANSITIONS[record.state]:
            found = recovered(PLAN, last, sealed=False, rollback_cause="")
            following = record_of(found, record.step, event)
            found.fold([following])
            assert may_follow(record.state, following.state)


RAW = Key("NotificationEndpointSlack", "raw")
REPLACEMENT = a_plan(
    Step(0, 0, Verb.DELETE, RAW, "e1", old_spec=SPEC, undo=Undo.RECREATE),
    Step(0, 1, Verb.CREATE, RAW, new_spec=SPEC),
    stages=("removals", "replacements"),
)


def test_an_undone_replacement_has_its_last_id_also_after_a_crash() -> None:
    """Both steps are about one key, and are undone in reverse order."""
    live, last = walked(REPLACEMENT, [(0, E.SUCCEED), (1, E.SUCCEED), (1, E.UNDO_SUCCEED), (0, E.UNDO_SUCCEED)])
    found = recovered(REPLACEMENT, last, sealed=False, rollback_cause="no")
    assert live.ids.get(RAW) == found.ids.get(RAW) == "0 made"
    [entry] = after_undo(found, [InventoryEntry(RAW, "e1", Origin.CREATED)]).entries
    assert entry.resource_id == "0 made"


def test_a_step_that_could_not_be_undone_keeps_its_key_while_an_earlier_step_is_undone() -> None:
    """The intent of an inverse does not change the resource of a key."""
    live, last = walked(REPLACEMENT, [(0, E.SUCCEED), (1, E.SUCCEED), (1, E.UNDO_FAIL), (0, E.UNDO_SEND)])
    found = recovered(REPLACEMENT, last, sealed=False, rollback_cause="no")
    assert live.ids.get(RAW) == found.ids.get(RAW) == "1 made"
