"""Reads rows of a journal: folds them into the states of steps, and lists their events and the records of phases."""

from collections.abc import Iterable, Iterator, Sequence

from pkger.journal.v1 import action_set_pb2, journal_pb2
from pkger.model.v1 import operation_pb2

from services.engine.journal_fold import JournalEntry, folded
from services.engine.step_state import StepRecord
from services.rpc.convert.operations import entry_from_pb
from services.rpc.parts import FRAME_BYTES
from stack_svc.store.journal import Row

MOST_EVENTS = 1000
"""Largest number of events in one response (journal.proto)."""


def steps_of(rows: Iterable[Row], step_count: int) -> list[StepRecord]:
    """
    The states of the steps of an operation with a plan of *step_count* steps, sorted by step.

    Raises:
        JournalBrokenError: Its journal contradicts the rules of the engine.
    """
    return folded(map(_entry, rows), step_count)


def action_records_of(rows: Iterable[Row]) -> list[action_set_pb2.ActionRecords]:
    """The records of an action set in *rows*, each with the time of its write."""
    listed = []
    for row in rows:
        records = journal_pb2.StoredRecords.FromString(row.records)
        if records.HasField("action"):
            records.action.write_time.FromMicroseconds(row.time)
            listed.append(records.action)
    return listed


def events_after(
    rows: Sequence[Row], has_more: bool, seq: int, most_bytes: int
) -> tuple[list[operation_pb2.OperationEvent], bool]:
    """
    The events in *rows* after *seq*: at most ``MOST_EVENTS``, and no more than fit into *most_bytes*, but at least one.

    Args:
        rows: Writes with such events, in order.
        has_more: Whether more such writes follow.
        seq: The last event that the caller knows.
        most_bytes: Bytes of the events in a message.

    Returns:
        The events, and whether more are stored.
    """
    events: list[operation_pb2.OperationEvent] = []
    for event in _events(rows):
        if event.seq <= seq:
            continue
        most_bytes -= event.ByteSize() + FRAME_BYTES
        if events and (most_bytes < 0 or len(events) == MOST_EVENTS):
            return events, True
        events.append(event)
    return events, has_more


def _entry(row: Row) -> JournalEntry:
    return entry_from_pb(
        journal_pb2.StoredRecords.FromString(row.records), journal_pb2.StoredEvents.FromString(row.events)
    )


def _events(rows: Iterable[Row]) -> Iterator[operation_pb2.OperationEvent]:
    for row in rows:
        yield from journal_pb2.StoredEvents.FromString(row.events).events
