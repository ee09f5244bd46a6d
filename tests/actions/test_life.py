"""The tables of transitions of phases and action sets, and the fold that obeys them."""

import pytest
from pkger.journal.v1 import action_set_pb2
from pkger.model.v1 import action_pb2

from services.actions.folding import (
    DEFER,
    ActionShape,
    ArtifactRecord,
    JournalBrokenError,
    PhaseKey,
    PhaseRecord,
    Records,
    Shape,
    Stop,
    folded,
)
from services.actions.life import ACTION_SET_TRANSITIONS, ENDED, TRANSITIONS, ActionSetState, PhaseState, StopReason
from services.actions.phase_reason import PhaseReason
from services.rpc.convert.phases import records_from_pb, records_to_pb

S = PhaseState
FIRST = PhaseKey(0, 0)
SHAPE = Shape([ActionShape(2, has_defer_phase=True), ActionShape(1, has_defer_phase=False)])


def test_all_transitions_of_a_phase() -> None:
    allowed = {(before.value, after.value) for before, following in TRANSITIONS.items() for after in following}

    assert allowed == {
        ("PENDING", "RUNNING"),
        ("PENDING", "SKIPPED"),
        ("PENDING", "FAILED"),
        ("PENDING", "CANCELLED"),
        ("RUNNING", "RUNNING"),
        ("RUNNING", "PENDING"),
        ("RUNNING", "COMPLETE"),
        ("RUNNING", "FAILED"),
        ("RUNNING", "CANCELLED"),
    }
    assert set(TRANSITIONS) == set(PhaseState)
    assert {S.COMPLETE, S.FAILED, S.CANCELLED, S.SKIPPED} == ENDED


def test_all_transitions_of_an_action_set() -> None:
    final = {state.value for state, following in ACTION_SET_TRANSITIONS.items() if not following}

    assert final == {"COMPLETE", "FAILED", "CANCELLED"}
    assert set(ACTION_SET_TRANSITIONS) == set(ActionSetState)


@pytest.mark.parametrize("before", PhaseState)
@pytest.mark.parametrize("after", PhaseState)
def test_the_fold_refuses_what_the_table_does_not_have(before: PhaseState, after: PhaseState) -> None:
    way = {
        S.PENDING: (),
        S.RUNNING: (S.RUNNING,),
        S.SKIPPED: (S.SKIPPED,),
        S.COMPLETE: (S.RUNNING, S.COMPLETE),
        S.FAILED: (S.RUNNING, S.FAILED),
        S.CANCELLED: (S.RUNNING, S.CANCELLED),
    }
    entries = [(Records((PhaseRecord(FIRST, state, 1, 1),)), 1) for state in (*way[before], after)]

    if after in TRANSITIONS[before]:
        assert folded(SHAPE, entries).status(FIRST).state is after
    else:
        with pytest.raises(JournalBrokenError, match=f"that is {before} cannot be {after}"):
            folded(SHAPE, entries)


def test_the_enums_of_the_contract_are_the_same() -> None:
    def words(enum: object, prefix: str) -> set[str]:
        return {value.name.removeprefix(prefix) for value in enum.DESCRIPTOR.values} - {"UNSPECIFIED"}  # type: ignore[attr-defined]

    assert words(action_pb2.PhaseState, "PHASE_STATE_") == set(PhaseState)
    assert words(action_pb2.PhaseReason, "PHASE_REASON_") == set(PhaseReason)
    assert words(action_pb2.ActionSetState, "ACTION_SET_STATE_") == set(ActionSetState)
    assert words(action_set_pb2.StopReason, "STOP_REASON_") == set(StopReason)


def test_outputs_grow_and_start_and_end_are_the_first_and_the_last_write() -> None:
    run = [
        PhaseRecord(FIRST, S.RUNNING, 1, 1),
        PhaseRecord(FIRST, S.RUNNING, 1, 1, outputs={"a": 1}),
        PhaseRecord(FIRST, S.PENDING, 1, 1, reason=PhaseReason.FAILED, message="no"),
        PhaseRecord(FIRST, S.RUNNING, 2, 2),
        PhaseRecord(FIRST, S.COMPLETE, 2, 2, outputs={"b": 2}),
    ]

    status = folded(SHAPE, [(Records((record,)), time) for time, record in enumerate(run, 1)]).status(FIRST)

    assert (status.outputs, status.start_time, status.end_time) == ({"a": 1, "b": 2}, 1, 5)
    assert (status.attempt, status.reason, status.message) == (2, None, "")


@pytest.mark.parametrize(
    ("record", "attempt", "try_number", "was_cut_off"),
    [
        (PhaseRecord(FIRST, S.RUNNING, 1, 1), 1, 1, False),
        (PhaseRecord(FIRST, S.RUNNING, 1, 1, interrupted=True), 1, 1, True),
        (PhaseRecord(FIRST, S.PENDING, 1, 1), 1, 1, True),
        (PhaseRecord(FIRST, S.PENDING, 1, 1, reason=PhaseReason.FAILED), 2, 2, False),
    ],
)
def test_what_comes_after_an_attempt(record: PhaseRecord, attempt: int, try_number: int, was_cut_off: bool) -> None:
    """An attempt that was put back without a failure, or interrupted, is the same one again; a failure is not."""
    begun = PhaseRecord(FIRST, S.RUNNING, 1, 1)

    status = folded(SHAPE, [(Records((each,)), 1) for each in (begun, record)]).status(FIRST)

    assert (status.next_attempt, status.next_try, status.was_cut_off) == (attempt, try_number, was_cut_off)


def test_another_try_forgets_the_interruption_but_not_their_number() -> None:
    run = [
        PhaseRecord(FIRST, S.RUNNING, 1, 1),
        PhaseRecord(FIRST, S.RUNNING, 1, 1, interrupted=True),
        PhaseRecord(FIRST, S.RUNNING, 1, 2),
    ]

    status = folded(SHAPE, [(Records((record,)), 1) for record in run]).status(FIRST)

    assert (status.interruptions, status.was_cut_off) == (1, False)


def test_a_stop_skips_what_never_began_but_the_defer_phases_of_actions_that_did() -> None:
    stop = Records((PhaseRecord(FIRST, S.RUNNING, 1, 1),)), 1
    progress = folded(SHAPE, [stop, (Records(stop=Stop(StopReason.CANCELLED, "why")), 2)])

    assert {tuple(key): status.state for key, status in progress.statuses()} == {
        (0, 0): S.RUNNING,
        (0, 1): S.SKIPPED,
        (0, DEFER): S.PENDING,
        (1, 0): S.SKIPPED,
    }


def test_the_first_stop_stays() -> None:
    stops = [Stop(StopReason.FAILED, "first"), Stop(StopReason.CANCELLED, "second")]

    assert folded(SHAPE, [(Records(stop=stop), 1) for stop in stops]).stop == stops[0]


def test_percentages_are_a_mean_that_is_100_at_the_end_only() -> None:
    done = [PhaseKey(0, 0), PhaseKey(0, 1), PhaseKey(1, 0)]
    entries = [(Records((PhaseRecord(key, S.RUNNING, 1, 1), PhaseRecord(key, S.COMPLETE, 1, 1))), 1) for key in done]
    half = Records((PhaseRecord(FIRST, S.RUNNING, 1, 1, percent=50),))

    assert folded(SHAPE, []).percent == 0
    assert folded(SHAPE, [(half, 1)]).percent == 16
    assert folded(SHAPE, entries[:2]).percent == 66
    assert folded(SHAPE, entries).percent == 99
    assert folded(SHAPE, [*entries, (Records((PhaseRecord(PhaseKey(0, DEFER), S.SKIPPED),)), 2)]).percent == 100


def test_records_are_the_same_after_the_wire() -> None:
    records = Records(
        (
            PhaseRecord(FIRST, S.RUNNING, 2, 3, interrupted=True, outputs={"a": [1, None]}, percent=7),
            PhaseRecord(PhaseKey(1, DEFER), S.FAILED, 1, 1, False, {}, PhaseReason.TEMPLATE, "STACK_NOT_FOUND", "no"),
        ),
        (ArtifactRecord(0, "backup", {"snapshot": "sha256:1"}),),
        Stop(StopReason.TIMEOUT, "late"),
        reserve=True,
    )
    message = records_to_pb(records)
    message.write_time.FromMicroseconds(17)

    assert records_from_pb(message) == (records, 17)
    assert records_from_pb(records_to_pb(Records())) == (Records(), 0)
