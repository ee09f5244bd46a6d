"""What the rows of a journal say: of steps, folded, and of what happened, as events."""

from collections.abc import Iterable, Iterator, Sequence

from pkger.journal.v1 import journal_pb2
from pkger.model.v1 import operation_pb2

from services.engine.folding import Entry, folded
from services.engine.step_life import IN_EFFECT, StepRecord
from services.rpc.convert.operations import entry_from_pb, step_record_from_pb
from services.rpc.parts import FRAME_BYTES
from stack_svc.store.journal import Row

MOST_EVENTS = 1000
"""Events in one answer (journal.proto)."""


def steps_of(rows: Iterable[Row], step_count: int) -> list[StepRecord]:
    """
    What is known of the steps of an operation with a plan of *step_count* steps, sorted by step.

    Raises:
        JournalBrokenError: Its journal says what cannot have happened.
    """
    known: list[StepRecord] = []
    entries: list[Entry] = []
    for row in rows:
        records = journal_pb2.StoredRecords.FromString(row.records)
        if row.position == 0:
            known = list(map(step_record_from_pb, records.steps))
        else:
            entries.append(entry_from_pb(records, journal_pb2.StoredEvents.FromString(row.events)))
    return folded(entries, step_count, known)


def made_by(rows: Iterable[Row], step_count: int) -> dict[int, str]:
    """The steps that are in effect, with the ids of the resources that they are about; errors as of ``steps_of``."""
    return {record.step: record.resource_id for record in steps_of(rows, step_count) if record.state in IN_EFFECT}


def events_after(
    rows: Sequence[Row], has_more: bool, seq: int, most_bytes: int
) -> tuple[list[operation_pb2.OperationEvent], bool]:
    """
    The events in *rows* behind *seq*: at most ``MOST_EVENTS``, and no more than fit into *most_bytes*, but always one.

    Args:
        rows: Writes with such events, in order.
        has_more: Whether there are more of them behind.
        seq: The last event that is known.
        most_bytes: Bytes of the events in a message.

    Returns:
        The events, and whether more are stored than these.
    """
    told: list[operation_pb2.OperationEvent] = []
    for event in _events(rows):
        if event.seq <= seq:
            continue
        most_bytes -= event.ByteSize() + FRAME_BYTES
        if told and (most_bytes < 0 or len(told) == MOST_EVENTS):
            return told, True
        told.append(event)
    return told, has_more


def _events(rows: Iterable[Row]) -> Iterator[operation_pb2.OperationEvent]:
    for row in rows:
        yield from journal_pb2.StoredEvents.FromString(row.events).events
