"""The state of an action set as the fold of its journal: the same while it runs and when another applier resumes it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from services.actions.life import ENDED, TRANSITIONS, PhaseState, StopReason
from services.actions.phase_reason import PhaseReason

DEFER = -1
"""Place of the deferPhase in its action."""

Microseconds = int
"""A time since 1970, by the clock of the store."""


class JournalBrokenError(ValueError):
    """The journal of an action set contradicts the table of transitions."""


class PhaseKey(NamedTuple):
    """A phase of an action set: the index of its action, and its place in the action; ``DEFER`` for the deferPhase."""

    action: int
    place: int


class ActionShape(NamedTuple):
    """What the order of an action depends on."""

    phase_count: int
    has_defer_phase: bool


@dataclass(frozen=True, slots=True)
class Shape:
    """
    What the order of an action set depends on.

    Attributes:
        actions: Its actions, in order.
        is_sequential: Whether they run one after the other.
        must_reserve: Whether stacks have to be reserved before its first phase.
    """

    actions: Sequence[ActionShape]
    is_sequential: bool = False
    must_reserve: bool = False

    def keys(self, action: int) -> list[PhaseKey]:
        """The phases of an action in order, with the deferPhase at the end."""
        count, has_defer_phase = self.actions[action]
        return [PhaseKey(action, place) for place in (*range(count), *([DEFER] if has_defer_phase else []))]


@dataclass(frozen=True, slots=True)
class PhaseRecord:
    """
    What is new about a phase (``pkger.journal.v1.PhaseRecord``).

    Attributes:
        key: The phase.
        state: Its state from now on.
        attempt: Number of the attempt, from 1; 0 for a phase that never began.
        try_number: Number of the try, from 1.
        interrupted: Whether an applier ended while it ran.
        outputs: Outputs that are new.
        reason: Why it failed or was cancelled, or why it is tried again; None: it was not.
        error_reason: The reason of the service that refused a call; empty: none.
        message: One sentence for people; empty: none.
        percent: Percentage that is done of a running phase; 0: its function did not report it.
    """

    key: PhaseKey
    state: PhaseState
    attempt: int = 0
    try_number: int = 0
    interrupted: bool = False
    outputs: Mapping[str, Any] = field(default_factory=dict)
    reason: PhaseReason | None = None
    error_reason: str = ""
    message: str = ""
    percent: int = 0


class ArtifactRecord(NamedTuple):
    """An output artifact of an action that was rendered."""

    action: int
    name: str
    values: Mapping[str, str]


class Stop(NamedTuple):
    """Why an action set stops, and one sentence for people."""

    reason: StopReason
    cause: str


@dataclass(frozen=True, slots=True)
class Records:
    """
    The part of one write of a journal that only action sets have (``pkger.journal.v1.ActionRecords``).

    Attributes:
        phases: Records of phases.
        artifacts: Artifacts that were rendered.
        stop: Why it stops from now on; None: nothing changes.
        reserve: Whether its stacks are reserved with this write.
    """

    phases: Sequence[PhaseRecord] = ()
    artifacts: Sequence[ArtifactRecord] = ()
    stop: Stop | None = None
    reserve: bool = False


@dataclass(frozen=True, slots=True)
class PhaseStatus:
    """
    A phase after its records.

    Attributes:
        state: Its state.
        attempt: Number of the current or last attempt; 0: it never began.
        try_number: Number of the current or last try.
        interruptions: How often an applier ended while it ran.
        was_cut_off: Whether an applier ended, or was told to stop, during the current try.
        outputs: Its outputs so far.
        reason: Why it failed, or why its last attempt did; None: it did not.
        error_reason: The reason of the service that refused a call; empty: none.
        message: One sentence for people; empty: none.
        start_time: When its first attempt began; None: it did not begin.
        end_time: When it ended; None: it has not.
        percent: Percentage that is done while it runs, as far as it is known.
    """

    state: PhaseState = PhaseState.PENDING
    attempt: int = 0
    try_number: int = 0
    interruptions: int = 0
    was_cut_off: bool = False
    outputs: Mapping[str, Any] = field(default_factory=dict)
    reason: PhaseReason | None = None
    error_reason: str = ""
    message: str = ""
    start_time: Microseconds | None = None
    end_time: Microseconds | None = None
    percent: int = 0

    @property
    def has_ended(self) -> bool:
        """Whether its state is final."""
        return self.state in ENDED

    @property
    def next_attempt(self) -> int:
        """Number of the attempt that comes next: one that was put back without a failure is not counted again."""
        return self.attempt if self.attempt and self.reason is None else self.attempt + 1

    @property
    def next_try(self) -> int:
        """Number of the try that comes next."""
        return self.try_number if self.attempt and self.reason is None else self.try_number + 1


PENDING = PhaseStatus()
_SKIPPED = PhaseStatus(PhaseState.SKIPPED)


def ended_phases(records: Records) -> int:
    """Number of phases that end with *records*, deferPhases not counted."""
    return sum(record.state in ENDED and record.key.place != DEFER for record in records.phases)


class ActionSetProgress:
    """
    An action set after the records of its journal.

    Attributes:
        shape: What its order depends on.
        artifacts: The artifacts that are rendered, by action and name.
        stop: Why it stops; None: it does not.
        is_reserved: Whether its stacks are reserved.
        failures: The failed phases in the order in which they failed.
    """

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.artifacts: dict[tuple[int, str], Mapping[str, str]] = {}
        self.stop: Stop | None = None
        self.is_reserved = not shape.must_reserve
        self.failures: list[PhaseKey] = []
        self._phases: dict[PhaseKey, PhaseStatus] = {}
        self._ended_count = 0

    def fold(self, records: Records, time: Microseconds) -> None:
        """
        Fold the records of one write, made at *time*.

        Raises:
            JournalBrokenError: They contradict the table of transitions.
        """
        for record in records.phases:
            self._fold_phase(record, time)
        for action, name, values in records.artifacts:
            self.artifacts[action, name] = values
        self._ended_count += ended_phases(records)
        self.stop = self.stop or records.stop
        self.is_reserved = self.is_reserved or records.reserve

    def status(self, key: PhaseKey) -> PhaseStatus:
        """
        The status of a phase.

        When the action set stops, phases that never began count as skipped; so do deferPhases of such actions.
        """
        status = self._phases.get(key, PENDING)
        if status is PENDING and self.stop and (key.place != DEFER or not self.has_begun(key.action)):
            return _SKIPPED
        return status

    def has_begun(self, action: int) -> bool:
        """Whether a phase of the action began, or was skipped because of its condition."""
        return any(PhaseKey(action, place) in self._phases for place in range(self.shape.actions[action].phase_count))

    def has_ended(self, action: int) -> bool:
        """Whether all phases of the action, with its deferPhase, have ended."""
        return all(self.status(key).has_ended for key in self.shape.keys(action))

    def start_time(self, action: int) -> Microseconds | None:
        """When the first phase of the action began; None: none did."""
        statuses = (self.status(key) for key in self.shape.keys(action) if key.place != DEFER)
        return min((status.start_time for status in statuses if status.start_time is not None), default=None)

    def statuses(self) -> Iterable[tuple[PhaseKey, PhaseStatus]]:
        """All phases with their statuses, action by action."""
        for action in range(len(self.shape.actions)):
            for key in self.shape.keys(action):
                yield key, self.status(key)

    @property
    def ended_count(self) -> int:
        """Number of phases that have ended, deferPhases not counted, and those neither that never began."""
        return self._ended_count

    @property
    def percent(self) -> int:
        """The mean over all phases, rounded down; 100 only when all have ended, deferPhases too, without a stop."""
        total = sum(phase_count for phase_count, _ in self.shape.actions)
        running = sum(each.percent for each in self._phases.values() if not each.has_ended)
        percent = (100 * self._ended_count + running) // max(total, 1)
        is_over = self.stop is None and all(status.has_ended for _, status in self.statuses())
        return percent if is_over else min(percent, 99)

    def _fold_phase(self, record: PhaseRecord, time: Microseconds) -> None:
        before = self._phases.get(record.key, PENDING)
        if record.state not in TRANSITIONS[before.state]:
            raise JournalBrokenError(f"a phase {tuple(record.key)} that is {before.state} cannot be {record.state}")
        is_same_try = record.try_number == before.try_number
        is_released = record.state is PhaseState.PENDING and record.reason is None
        ended = record.state in ENDED
        self._phases[record.key] = replace(
            before,
            state=record.state,
            attempt=record.attempt,
            try_number=record.try_number,
            interruptions=before.interruptions + record.interrupted,
            was_cut_off=record.interrupted or is_released or (is_same_try and before.was_cut_off),
            outputs={**before.outputs, **record.outputs},
            reason=record.reason,
            error_reason=record.error_reason,
            message=record.message,
            start_time=time if before.start_time is None and record.attempt else before.start_time,
            end_time=time if ended else None,
            percent=record.percent,
        )
        if record.state is PhaseState.FAILED:
            self.failures.append(record.key)


def folded(shape: Shape, entries: Iterable[tuple[Records, Microseconds]]) -> ActionSetProgress:
    """
    The progress after all *entries*: the records of each write with its time.

    Raises:
        JournalBrokenError: They contradict the table of transitions.
    """
    progress = ActionSetProgress(shape)
    for records, time in entries:
        progress.fold(records, time)
    return progress
