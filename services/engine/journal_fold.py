"""
Fold the writes of a journal to the records of steps; the last record of a step counts (docs/reference/engine.md,
"Journal").
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from services.engine.operation import Direction
from services.engine.outcome import Outcome
from services.engine.step_state import StepRecord, StepState, ended, may_follow, sent


class Sent(NamedTuple):
    """Steps, or their inverses, are about to be sent."""

    direction: Direction
    steps: Sequence[int]


class StepsEnded(NamedTuple):
    """Steps, or their inverses, ended, each with its outcome."""

    direction: Direction
    outcomes: Mapping[int, Outcome]


class JournalEntry(NamedTuple):
    """
    One write of a journal.

    Attributes:
        events: Its events about steps, in order.
        records: Facts that no event contains; where an event names the same step, the record counts.
    """

    events: Sequence[Sent | StepsEnded]
    records: Sequence[StepRecord] = ()


class JournalBrokenError(Exception):
    """A journal contains an impossible transition: a defect of the applier that wrote it."""


def folded(entries: Iterable[JournalEntry], step_count: int) -> list[StepRecord]:
    """
    The records of steps after *entries*, sorted by step.

    Args:
        entries: The writes, in order.
        step_count: Number of steps of the plan.

    Raises:
        JournalBrokenError: The plan has no such step, or no event leads from its state to the new one (``step_state``).
    """
    records: dict[int, StepRecord] = {}
    for entry in entries:
        explicit = {record.step: record for record in entry.records}
        for event in entry.events:
            for record in _records_of(event, records):
                if record.step not in explicit:
                    _learn(records, record, step_count)
        for record in explicit.values():
            _learn(records, record, step_count)
    return [records[step] for step in sorted(records)]


def _records_of(event: Sent | StepsEnded, records: Mapping[int, StepRecord]) -> Iterable[StepRecord]:
    match event:
        case Sent(direction, steps):
            return (sent(_before(records, step), direction) for step in steps)
        case StepsEnded(direction, outcomes):
            return (ended(_before(records, step), outcome, direction) for step, outcome in outcomes.items())


def _before(records: Mapping[int, StepRecord], step: int) -> StepRecord:
    return records.get(step) or StepRecord(step, StepState.PLANNED)


def _learn(records: dict[int, StepRecord], record: StepRecord, step_count: int) -> None:
    before = _before(records, record.step).state
    if not 0 <= record.step < step_count:
        raise JournalBrokenError(f"there is no step {record.step} in a plan of {step_count} steps")
    if not may_follow(before, record.state):
        raise JournalBrokenError(f"step {record.step} was {before} and cannot be {record.state}")
    records[record.step] = record
