"""Housekeeping in SQLite: what is no longer of use goes, one batch at a time (scale.md 2, S6)."""

import sqlite_utils

from stack_svc.sqlite.leases import IS_FREE
from stack_svc.sqlite.operations import IS_FINISHED, IS_UNFINISHED
from stack_svc.store.operations import GONE
from stack_svc.store.store import Limits, Swept


def sweep(db: sqlite_utils.Database, limits: Limits, now: int) -> Swept:
    """Remove or end at most ``limits.batch`` rows of each table; *db* is in a write transaction."""
    known = {"now": now, "most": limits.batch, "kept": limits.operations, "cause": GONE}

    def rows(statement: str) -> int:
        return int(db.execute(statement, known).rowcount)

    requests = rows(
        "DELETE FROM requests WHERE request_id IN (SELECT request_id FROM requests WHERE expires < :now LIMIT :most)"
    )
    plans = rows(
        "DELETE FROM plans WHERE name IN ("
        "SELECT name FROM plans WHERE operation IS NULL AND expires < :now LIMIT :most)"
    )
    # With its plan and its journal, which refer to it.
    operations = rows(
        f"DELETE FROM operations WHERE name IN (SELECT name FROM operations WHERE {IS_FINISHED}"  # noqa: S608
        " ORDER BY update_time DESC, name DESC LIMIT :most OFFSET :kept)"
    )
    ended = db.execute(
        f"""
        UPDATE operations SET state = 'FAILED', update_time = MAX(update_time, :now), cause = :cause
        WHERE name IN (
            SELECT name FROM operations JOIN leases ON leases.stack = operations.stack
            WHERE operations.{IS_UNFINISHED} AND operations.state = 'PREPARING' AND {IS_FREE} LIMIT :most
        )
        RETURNING name
        """,  # noqa: S608
        known,
    ).fetchall()
    db.conn.executemany("DELETE FROM requests WHERE result = ?", ended)
    stacks = rows(
        f"""
        DELETE FROM stacks WHERE id IN (
            SELECT id FROM stacks WHERE state <> 'ACTIVE'
                AND NOT EXISTS (SELECT 1 FROM operations WHERE operations.stack = stacks.id AND {IS_UNFINISHED})
            LIMIT :most
        )
        """  # noqa: S608
    )
    return Swept(requests, plans, operations, len(ended), stacks)
