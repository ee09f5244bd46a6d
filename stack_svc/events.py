"""What happened in operations, in order and without gaps; appended once, however often it is sent."""

from collections.abc import Iterable
from dataclasses import dataclass

import sqlite_utils

from services.core.errors import RequestInvalid

MOST = 1000
"""Events in one answer (journal.proto)."""


@dataclass(frozen=True, slots=True)
class Event:
    """A ``pkger.model.v1.OperationEvent`` in its wire format, and its position from 1."""

    seq: int
    body: bytes


def append(db: sqlite_utils.Database, operation: str, last_seq: int, events: Iterable[Event]) -> int:
    """
    Store what goes on behind *last_seq*; what is known already is left alone.

    Returns:
        Seq of the last event now.

    Raises:
        RequestInvalid: An event is missing before one of these.
    """
    new = []
    for event in events:
        if event.seq < 1 or event.seq > last_seq + 1:
            raise RequestInvalid("events", f"seq {event.seq} does not go on where the last event ended, at {last_seq}")
        if event.seq == last_seq + 1:
            new.append((operation, event.seq, event.body))
            last_seq = event.seq
    db.conn.executemany("INSERT INTO events (operation, seq, body) VALUES (?, ?, ?)", new)
    return last_seq


def read(db: sqlite_utils.Database, operation: str, after_seq: int, most_bytes: int) -> tuple[list[bytes], bool]:
    """
    Read events in order: at most ``MOST``, and no more than fit into *most_bytes*, but always the first.

    Returns:
        The bodies, and whether more are stored.
    """
    rows = db.execute(
        "SELECT body FROM events WHERE operation = ? AND seq > ? ORDER BY seq LIMIT ?",
        [operation, after_seq, MOST + 1],
    )
    bodies: list[bytes] = []
    for (body,) in rows:
        most_bytes -= len(body)
        if bodies and (most_bytes < 0 or len(bodies) == MOST):
            return bodies, True
        bodies.append(body)
    return bodies, False
