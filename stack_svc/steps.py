"""How far the steps of operations are: one record for each that is no longer just planned (engine.md 4)."""

from collections.abc import Collection, Sequence

import orjson
import sqlite_utils

from services.core.errors import RequestInvalid
from services.engine.step_life import IN_EFFECT, StepRecord, StepState, may_follow
from services.rpc.convert.operations import rejection_from_pb, rejection_number


def write(db: sqlite_utils.Database, operation: str, step_count: int, records: Sequence[StepRecord]) -> int:
    """
    Replace what is known of some steps of a plan with *step_count* steps; of two records of one step the later counts.

    Returns:
        By how many more (or fewer) steps are in effect now.

    Raises:
        RequestInvalid: The plan has no such step, or it cannot get there from where it is (``step_life``).
    """
    latest = {record.step: record for record in records}
    for step in latest:
        if not 0 <= step < step_count:
            raise RequestInvalid("steps", f"there is no step {step} in a plan of {step_count} steps")
    before = _states(db, operation, latest)
    for step, record in latest.items():
        if not may_follow(was := before.get(step, StepState.PLANNED), record.state):
            raise RequestInvalid("steps", f"step {step} was {was} and cannot be {record.state}")
    db.conn.executemany(
        """
        INSERT INTO steps (operation, n, state, resource_id, message, reason, before_ids, observed)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?)
        ON CONFLICT (operation, n) DO UPDATE SET state = excluded.state, resource_id = excluded.resource_id,
            message = excluded.message, reason = excluded.reason, before_ids = excluded.before_ids,
            observed = excluded.observed
        """,
        [
            (
                operation,
                record.step,
                record.state.value,
                record.resource_id,
                record.message,
                rejection_number(record.reason),
                orjson.dumps(record.before_ids).decode() if record.before_ids else "[]",
                record.observed,
            )
            for record in latest.values()
        ],
    )
    after = sum(record.state in IN_EFFECT for record in latest.values())
    return after - sum(state in IN_EFFECT for state in before.values())


def read(db: sqlite_utils.Database, operation: str) -> list[StepRecord]:
    """What is known of the steps of an operation, sorted by step."""
    rows = db.execute(
        "SELECT n, state, resource_id, message, reason, before_ids, observed FROM steps WHERE operation = ? ORDER BY n",
        [operation],
    )
    return [
        StepRecord(
            step,
            StepState(state),
            resource_id,
            message,
            rejection_from_pb(reason),
            tuple(orjson.loads(before_ids)),
            observed,
        )
        for step, state, resource_id, message, reason, before_ids, observed in rows
    ]


def in_effect(db: sqlite_utils.Database, operation: str) -> dict[int, str]:
    """The steps of an operation that are in effect, with the ids of the resources that they are about."""
    rows = db.execute(
        "SELECT n, resource_id FROM steps WHERE operation = ? AND state IN (SELECT value FROM json_each(?))",
        [operation, orjson.dumps(sorted(IN_EFFECT)).decode()],
    )
    return dict(rows.fetchall())


def _states(db: sqlite_utils.Database, operation: str, steps: Collection[int]) -> dict[int, StepState]:
    """How far those of *steps* are that have a record."""
    # The numbers travel as one JSON parameter: one query, however many.
    rows = db.execute(
        "SELECT n, state FROM json_each(:steps) AS asked"
        " CROSS JOIN steps ON operation = :operation AND n = asked.value",
        {"steps": orjson.dumps(list(steps)).decode(), "operation": operation},
    )
    return {step: StepState(state) for step, state in rows}
