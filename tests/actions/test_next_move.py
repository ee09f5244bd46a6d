"""The next move of an action set: a model runs random action sets to their end by it alone."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.actions.folding import (
    DEFER,
    ActionSetProgress,
    ActionShape,
    PhaseKey,
    PhaseRecord,
    Records,
    Shape,
    Stop,
    folded,
)
from services.actions.life import ActionSetState, PhaseState, StopReason
from services.actions.next_move import Await, Begin, End, Finish, Move, Reserve, Signals, StopNow, next_move
from services.actions.phase_reason import PhaseReason

S = PhaseState
TWO = Shape([ActionShape(2, has_defer_phase=True), ActionShape(2, has_defer_phase=False)])


def after(shape: Shape, *records: PhaseRecord, stop: Stop | None = None, reserve: bool = False) -> ActionSetProgress:
    return folded(shape, [(Records(records, stop=stop, reserve=reserve), 1)])


def complete(action: int, place: int) -> tuple[PhaseRecord, PhaseRecord]:
    key = PhaseKey(action, place)
    return PhaseRecord(key, S.RUNNING, 1, 1), PhaseRecord(key, S.COMPLETE, 1, 1)


def move(progress: ActionSetProgress, *live: tuple[int, int], **signals: object) -> Move:
    return next_move(progress, {PhaseKey(*key) for key in live}, Signals(**signals))  # type: ignore[arg-type]


def test_actions_begin_together_and_their_phases_in_order() -> None:
    assert move(after(TWO)) == Begin((PhaseKey(0, 0), PhaseKey(1, 0)))
    assert move(after(TWO, *complete(0, 0)), (1, 0)) == Begin((PhaseKey(0, 1),))
    assert move(after(TWO), (0, 0), (1, 0)) == Await()


def test_sequential_actions_begin_one_after_the_other() -> None:
    shape = Shape(TWO.actions, is_sequential=True)

    assert move(after(shape)) == Begin((PhaseKey(0, 0),))
    done = [*complete(0, 0), *complete(0, 1), *complete(0, DEFER)]
    assert move(after(shape, *done)) == Begin((PhaseKey(1, 0),))


def test_stacks_are_reserved_before_the_first_phase() -> None:
    shape = Shape(TWO.actions, must_reserve=True)

    assert move(after(shape)) == Reserve()
    assert isinstance(move(after(shape, reserve=True)), Begin)
    assert move(after(shape), holder="stack prod is in use") == StopNow(
        Stop(StopReason.NOT_RESERVED, "stack prod is in use")
    )
    assert move(after(shape), is_cancelled=True) == StopNow(Stop(StopReason.CANCELLED, "the action set was cancelled"))


def test_the_defer_phase_runs_after_a_stop_and_only_of_an_action_that_began() -> None:
    stop = Stop(StopReason.FAILED, "no")
    failed = (PhaseRecord(PhaseKey(0, 0), S.RUNNING, 1, 1), PhaseRecord(PhaseKey(0, 0), S.FAILED, 1, 1))

    assert move(after(TWO, *failed, stop=stop)) == Begin((PhaseKey(0, DEFER),))
    done = after(TWO, *failed, *complete(0, DEFER), stop=stop)
    assert move(done) == Finish(ActionSetState.FAILED, "no")


def test_a_running_phase_is_let_finish_and_begins_again_after_a_crash() -> None:
    running = PhaseRecord(PhaseKey(1, 0), S.RUNNING, 1, 1)
    progress = after(TWO, running, stop=Stop(StopReason.FAILED, "no"))

    assert move(progress, (1, 0)) == Await()
    assert move(progress) == Begin((PhaseKey(1, 0),))


def test_a_phase_between_attempts_ends_when_the_action_set_stops() -> None:
    key = PhaseKey(1, 0)
    waiting = (PhaseRecord(key, S.RUNNING, 1, 1), PhaseRecord(key, S.PENDING, 1, 1, reason=PhaseReason.FAILED))
    progress = after(TWO, *waiting, stop=Stop(StopReason.CANCELLED, "why"))

    assert move(progress) == End(((key, progress.status(key)),))
    assert move(progress, (1, 0)) == Await()


@pytest.mark.parametrize("signal", ["is_cancelled", "is_late", "is_restored"])
def test_a_signal_after_the_last_phase_changes_nothing(signal: str) -> None:
    done = [*complete(0, 0), *complete(0, 1), *complete(0, DEFER), *complete(1, 0), *complete(1, 1)]

    assert move(after(TWO, *done), **{signal: True}) == Finish(ActionSetState.COMPLETE, "")


def test_a_cancelled_action_set_whose_defer_phase_fails_has_failed() -> None:
    stop = Stop(StopReason.CANCELLED, "cancelled")
    failed = (PhaseRecord(PhaseKey(0, DEFER), S.RUNNING, 1, 1), PhaseRecord(PhaseKey(0, DEFER), S.FAILED, 1, 1))
    done = after(TWO, *complete(0, 0), *failed, stop=stop)

    assert move(done) == Finish(ActionSetState.FAILED, "cancelled")


shapes = st.builds(
    Shape,
    st.lists(st.builds(ActionShape, st.integers(1, 3), st.booleans()), min_size=1, max_size=3),
    st.booleans(),
    st.booleans(),
)
ENDS = (S.COMPLETE, S.FAILED, S.CANCELLED)


class Model:
    """Runs an action set: what happens to its phases, and when, is drawn."""

    def __init__(self, shape: Shape, data: st.DataObject) -> None:
        self.progress = ActionSetProgress(shape)
        self.live: set[PhaseKey] = set()
        self.began: list[PhaseKey] = []
        self._draw = data.draw
        self._is_cancelled = False

    def moves(self) -> Iterator[Move]:
        for _ in range(200):
            self._is_cancelled = self._is_cancelled or self._draw(st.integers(0, 9)) == 0
            signals = Signals(is_cancelled=self._is_cancelled)
            chosen = next_move(self.progress, self.live, signals)
            yield chosen
            match chosen:
                case Finish():
                    return
                case Reserve():
                    self.write(Records(reserve=True))
                case StopNow(stop=stop):
                    self.write(Records(stop=stop))
                case End(phases=phases):
                    for key, status in phases:
                        self.write(Records((PhaseRecord(key, S.FAILED, status.attempt, status.try_number),)))
                case Begin(phases=phases):
                    self.begin(phases)
                case Await():
                    self.end_one()
        raise AssertionError("it does not end")

    def begin(self, phases: tuple[PhaseKey, ...]) -> None:
        for key in phases:
            status = self.progress.status(key)
            record = PhaseRecord(key, S.RUNNING, status.next_attempt, status.next_try)
            self.write(Records((record,)))
            self.live.add(key)
            self.began.append(key)

    def end_one(self) -> None:
        key = self._draw(st.sampled_from(sorted(self.live)))
        self.live.remove(key)
        status = self.progress.status(key)
        end = self._draw(st.sampled_from([*ENDS, S.PENDING]))
        reason = PhaseReason.FAILED if end is S.PENDING else None
        is_first = end is S.FAILED and self.progress.stop is None
        stop = Stop(StopReason.FAILED, "failed") if is_first else None
        record = PhaseRecord(key, end, status.attempt, status.try_number, reason=reason)
        self.write(Records((record,), stop=stop))

    def write(self, records: Records) -> None:
        self.progress.fold(records, 1)


@given(shapes, st.data())
def test_each_action_set_ends_and_keeps_its_order(shape: Shape, data: st.DataObject) -> None:
    model = Model(shape, data)

    for chosen in model.moves():
        if isinstance(chosen, Begin):
            assert not shape.must_reserve or model.progress.is_reserved
            for key in chosen.phases:
                keys = shape.keys(key.action)
                before = keys[: keys.index(key)]
                assert all(model.progress.status(each).has_ended for each in before)
                assert key not in model.live
        last = chosen

    assert isinstance(last, Finish)
    assert all(status.has_ended for _, status in model.progress.statuses())
    assert (last.state is ActionSetState.COMPLETE) == (model.progress.stop is None)
    for action, (_, has_defer_phase) in enumerate(shape.actions):
        began = any(key.action == action and key.place != DEFER for key in model.began)
        assert not (began and has_defer_phase) or PhaseKey(action, DEFER) in model.began
        assert began or PhaseKey(action, DEFER) not in model.began
