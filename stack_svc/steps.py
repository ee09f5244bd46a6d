"""How far the steps of operations are: one record for each that is no longer just planned (engine.md 4)."""

from collections.abc import Collection, Sequence
from enum import StrEnum
from typing import NamedTuple

import orjson
import sqlite_utils

from services.core.errors import RequestInvalid


class StepState(StrEnum):
    """As in journal.proto, which says what each means."""

    PLANNED = "PLANNED"
    INTENT = "INTENT"
    DONE = "DONE"
    FAILED = "FAILED"
    UNKNOWN = "UNKNOWN"
    SKIPPED = "SKIPPED"
    UNDO_INTENT = "UNDO_INTENT"
    UNDONE = "UNDONE"
    UNDO_FAILED = "UNDO_FAILED"
    UNDO_UNKNOWN = "UNDO_UNKNOWN"
    GIVEN_UP = "GIVEN_UP"
    KEPT = "KEPT"
    UNDO_GIVEN_UP = "UNDO_GIVEN_UP"


IN_EFFECT = frozenset(
    {
        StepState.DONE,
        StepState.UNDO_INTENT,
        StepState.UNDO_FAILED,
        StepState.UNDO_UNKNOWN,
        StepState.KEPT,
        StepState.UNDO_GIVEN_UP,
    }
)
"""A step in one of these took effect and was not taken back, as far as is known."""


class StepRecord(NamedTuple):
    """
    What is known of one step; ``reason`` is a number of ``pkger.model.v1.RejectionReason``.

    A thousand come with a write: a tuple is made several times as fast as a frozen dataclass.
    """

    step: int
    state: StepState
    remote_id: str = ""
    message: str = ""
    reason: int = 0
    before_ids: tuple[str, ...] = ()


def write(db: sqlite_utils.Database, operation: str, step_count: int, records: Sequence[StepRecord]) -> int:
    """
    Replace what is known of some steps of a plan with *step_count* steps; of two records of one step the later counts.

    Returns:
        By how many more (or fewer) steps are in effect now.

    Raises:
        RequestInvalid: The plan has no such step.
    """
    latest = {record.step: record for record in records}
    for step in latest:
        if not 0 <= step < step_count:
            raise RequestInvalid("steps", f"there is no step {step} in a plan of {step_count} steps")
    before = _in_effect(db, operation, latest)
    db.conn.executemany(
        """
        INSERT INTO steps (operation, n, state, remote_id, message, reason, before_ids) VALUES (?, ?, ?, ?, ?, ?, ?)
        ON CONFLICT (operation, n) DO UPDATE SET state = excluded.state, remote_id = excluded.remote_id,
            message = excluded.message, reason = excluded.reason, before_ids = excluded.before_ids
        """,
        [
            (
                operation,
                record.step,
                record.state.value,
                record.remote_id,
                record.message,
                record.reason,
                orjson.dumps(record.before_ids).decode() if record.before_ids else "[]",
            )
            for record in latest.values()
        ],
    )
    return sum(record.state in IN_EFFECT for record in latest.values()) - before


def read(db: sqlite_utils.Database, operation: str) -> list[StepRecord]:
    """What is known of the steps of an operation, sorted by step."""
    rows = db.execute(
        "SELECT n, state, remote_id, message, reason, before_ids FROM steps WHERE operation = ? ORDER BY n", [operation]
    )
    return [
        StepRecord(step, StepState(state), remote_id, message, reason, tuple(orjson.loads(before_ids)))
        for step, state, remote_id, message, reason, before_ids in rows
    ]


def _in_effect(db: sqlite_utils.Database, operation: str, steps: Collection[int]) -> int:
    """How many of *steps* are in effect."""
    # The numbers travel as one JSON parameter: one query, however many.
    row = db.execute(
        "SELECT COUNT(*) FROM json_each(:steps) AS asked CROSS JOIN steps ON operation = :operation AND n = asked.value"
        " WHERE state IN (SELECT value FROM json_each(:in_effect))",
        {
            "steps": orjson.dumps(list(steps)).decode(),
            "operation": operation,
            "in_effect": orjson.dumps(sorted(IN_EFFECT)).decode(),
        },
    ).fetchone()
    return int(row[0])
