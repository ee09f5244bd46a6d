"""The next move of an action set: a pure function of its progress (docs/actions.md, "States")."""

from collections.abc import Collection
from dataclasses import dataclass

from services.actions.folding import DEFER, ActionSetProgress, PhaseKey, PhaseStatus, Stop
from services.actions.life import ActionSetState, PhaseState, StopReason

CANCELLED = "the action set was cancelled"
LATE = "the action set took longer than its timeout"
RESTORED = "the store was restored from a backup, so nobody knows what ran since"


@dataclass(frozen=True, slots=True)
class Signals:
    """
    What the progress does not have.

    Attributes:
        is_cancelled: Whether a client asked to cancel the action set.
        is_late: Whether its timeout is over.
        holder: Who has had a stack that it is to reserve until its waiting time was over; empty: it may wait on.
        is_restored: Whether the store was restored from a backup since the action set was last worked on.
    """

    is_cancelled: bool = False
    is_late: bool = False
    holder: str = ""
    is_restored: bool = False


@dataclass(frozen=True, slots=True)
class Reserve:
    """Reserve the stacks of the action set."""


@dataclass(frozen=True, slots=True)
class StopNow:
    """Record that the action set stops."""

    stop: Stop


@dataclass(frozen=True, slots=True)
class End:
    """Record how phases end that wait for an attempt that will not come, each with its status so far."""

    phases: tuple[tuple[PhaseKey, PhaseStatus], ...]


@dataclass(frozen=True, slots=True)
class Begin:
    """Begin *phases*, each of another action."""

    phases: tuple[PhaseKey, ...]


@dataclass(frozen=True, slots=True)
class Await:
    """Wait until a phase that runs has ended, or a signal comes."""


@dataclass(frozen=True, slots=True)
class Finish:
    """End the action set in *state*, because of *cause*; empty: nothing failed."""

    state: ActionSetState
    cause: str


Move = Reserve | StopNow | End | Begin | Await | Finish


def next_move(progress: ActionSetProgress, live: Collection[PhaseKey], signals: Signals) -> Move:
    """
    What to do next.

    Args:
        progress: The action set.
        live: The phases that this applier works on, waits between attempts included.
        signals: What the progress does not have.
    """
    is_over = not live and all(map(progress.has_ended, range(len(progress.shape.actions))))
    if progress.stop is None and (stop := _stop(progress, signals, is_over)):
        return StopNow(stop)
    if is_over:
        return _finish(progress)
    if not progress.is_reserved and progress.stop is None:
        return Reserve()
    if progress.stop and (late := tuple(_between_attempts(progress, live))):
        return End(late)
    phases = tuple(key for key in _due(progress) if key not in live)
    return Begin(phases) if phases else Await()


def _stop(progress: ActionSetProgress, signals: Signals, is_over: bool) -> Stop | None:
    """
    Why the action set stops from now on; a cancel or a timeout after its last phase changes nothing. The record of a
    failed phase has its stop in the same write.
    """
    if is_over:
        return None
    if signals.is_restored:
        return Stop(StopReason.STORE_RESTORED, RESTORED)
    if signals.is_cancelled:
        return Stop(StopReason.CANCELLED, CANCELLED)
    if signals.is_late:
        return Stop(StopReason.TIMEOUT, LATE)
    return Stop(StopReason.NOT_RESERVED, signals.holder) if signals.holder else None


def _finish(progress: ActionSetProgress) -> Finish:
    if progress.stop is None:
        return Finish(ActionSetState.COMPLETE, "")
    if progress.stop.reason is StopReason.CANCELLED and not progress.failures:
        return Finish(ActionSetState.CANCELLED, progress.stop.cause)
    return Finish(ActionSetState.FAILED, progress.stop.cause)


def _between_attempts(progress: ActionSetProgress, live: Collection[PhaseKey]) -> list[tuple[PhaseKey, PhaseStatus]]:
    return [
        (key, status)
        for key, status in progress.statuses()
        if status.state is PhaseState.PENDING and status.attempt and key.place != DEFER and key not in live
    ]


def _due(progress: ActionSetProgress) -> list[PhaseKey]:
    """The phases that may run now: of each action the first that has not ended."""
    due = []
    for action in range(len(progress.shape.actions)):
        if progress.has_ended(action):
            continue
        due.append(_next_of(progress, action))
        if progress.shape.is_sequential:
            break
    return due


def _next_of(progress: ActionSetProgress, action: int) -> PhaseKey:
    """The first phase of an action that has not ended; after one that failed or was cancelled, its deferPhase."""
    keys = progress.shape.keys(action)
    return next(key for key in keys if not progress.status(key).has_ended)
