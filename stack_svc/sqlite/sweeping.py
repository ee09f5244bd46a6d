"""
Housekeeping in SQLite: what is no longer of use goes, one batch at a time (docs/reference/engine.md, "Store", S6).
"""

import sqlite_utils

from stack_svc.sqlite.leases import IS_FREE
from stack_svc.sqlite.operations import IS_FINISHED, IS_UNFINISHED
from stack_svc.store.leases import GIVEN_BACK
from stack_svc.store.operations import GONE
from stack_svc.store.store import Limits, Swept

_PAGES = 1024
"""Most pages, of 4 KiB each, that one sweep gives back."""


def sweep(db: sqlite_utils.Database, limits: Limits, now: int) -> Swept:
    """Remove or end at most ``limits.batch`` rows of each table; *db* is in a write transaction."""
    known = {"now": now, "most": limits.batch, "cause": GONE}

    def rows(statement: str) -> int:
        return int(db.execute(statement, known).rowcount)

    requests = rows(
        "DELETE FROM requests WHERE request_id IN (SELECT request_id FROM requests WHERE expires < :now LIMIT :most)"
    )
    plans = rows(
        "DELETE FROM plans WHERE name IN ("
        "SELECT name FROM plans WHERE operation IS NULL AND expires < :now LIMIT :most)"
    )
    operations, has_more = _sweep_operations(db, limits, now)
    ended = db.execute(
        f"""
        UPDATE operations SET state = 'FAILED', update_time = MAX(update_time, :now), cause = :cause
        WHERE name IN (
            SELECT name FROM operations JOIN leases ON leases.stack = operations.stack
            WHERE operations.{IS_UNFINISHED} AND operations.state = 'PREPARING' AND {IS_FREE} LIMIT :most
        )
        RETURNING name, stack
        """,  # noqa: S608
        known,
    ).fetchall()
    db.conn.executemany("DELETE FROM requests WHERE result = ?", [(name,) for name, _ in ended])
    # Where a clock was set back, its holder lives and could renew what it had.
    db.conn.executemany("UPDATE leases SET expires = ? WHERE stack = ?", [(GIVEN_BACK, stack) for _, stack in ended])
    attachments = _sweep_attachments(db, limits, now)
    stacks = rows(
        f"""
        DELETE FROM stacks WHERE id IN (
            SELECT id FROM stacks WHERE state <> 'ACTIVE'
                AND NOT EXISTS (SELECT 1 FROM operations WHERE operations.stack = stacks.id AND {IS_UNFINISHED})
            LIMIT :most
        )
        """  # noqa: S608
    )
    return Swept(requests, plans, operations, len(ended), stacks, attachments, has_more)


def _sweep_attachments(db: sqlite_utils.Database, limits: Limits, now: int) -> int:
    """
    Remove attachments that no plan and no revision names; how many went.

    The oldest ones are looked at. Those of use count as stored now, so that each is looked at once in its time.
    """
    oldest = db.execute(
        """
        SELECT digest, EXISTS (SELECT 1 FROM revisions WHERE package_digest = digest)
            OR EXISTS (SELECT 1 FROM plans WHERE package_digest <> '' AND package_digest = attachments.digest)
            OR EXISTS (SELECT 1 FROM plans WHERE baselines_digest <> '' AND baselines_digest = attachments.digest)
        FROM attachments WHERE time < ? ORDER BY time LIMIT ?
        """,
        [now - limits.attachment_age, limits.batch],
    ).fetchall()
    used, unused = ([(digest,) for digest, is_used in oldest if is_used == wanted] for wanted in (1, 0))
    db.conn.executemany("UPDATE attachments SET time = ? WHERE digest = ?", [(now, *each) for each in used])
    db.conn.executemany("DELETE FROM attachments WHERE digest = ?", unused)
    return len(unused)


def give_back(db: sqlite_utils.Database) -> bool:
    """Give some of the free pages of the file back to the file system; whether there are more."""
    free = int(db.execute("PRAGMA freelist_count").fetchone()[0])
    for _ in range(min(free, _PAGES)):
        # One by one: the module sqlite3 ends a statement without columns after its first step, which is one page.
        db.execute("PRAGMA incremental_vacuum(1)")
    return free > _PAGES


def _sweep_operations(db: sqlite_utils.Database, limits: Limits, now: int) -> tuple[int, bool]:
    """Remove finished operations beyond *limits*; how many went, and whether there are more."""
    known = {
        "most": limits.batch,
        "kept": limits.operations,
        "oldest": now - limits.age,
        "bytes": limits.bytes,
    }
    measured = db.execute(_MEASURE, known).rowcount
    beyond = db.execute(_BEYOND, known).fetchall()
    going = [(name,) for name, before in beyond[: limits.batch] if before < limits.batch_bytes]
    # With their plans and journals, which refer to them.
    db.conn.executemany("DELETE FROM operations WHERE name = ?", going)
    return len(going), len(beyond) > len(going) or measured == limits.batch


_MEASURE = f"""
    UPDATE operations SET size = 500 + length(last_event)
        + COALESCE((
            SELECT SUM(100 + length(records) + length(events)) FROM journal WHERE operation = operations.name
        ), 0)
        + COALESCE((
            SELECT SUM(length(header) + length(body) + length(content))
            FROM plans JOIN plan_bodies ON plan = plans.name WHERE plans.operation = operations.name
        ), 0)
    WHERE name IN (SELECT name FROM operations WHERE size IS NULL AND {IS_FINISHED} LIMIT :most)
"""  # noqa: S608
"""
Measure finished operations, which change no more. SQLite knows the length of a blob without reading it.

The constants stand for the other columns of rows and for their indexes.
"""

_BEYOND = f"""
    WITH finished AS (
        SELECT name, update_time, COALESCE(size, 0) AS size,
            ROW_NUMBER() OVER newest AS place,
            SUM(size) OVER newest AS bytes,
            ROW_NUMBER() OVER (PARTITION BY stack ORDER BY update_time DESC, name DESC) = 1
                AND EXISTS (SELECT 1 FROM stacks WHERE id = stack) AS is_last
        FROM operations WHERE {IS_FINISHED}
        WINDOW newest AS (ORDER BY update_time DESC, name DESC)
    ),
    beyond AS (
        SELECT name, update_time, SUM(size) OVER (ORDER BY update_time, name) - size AS before
        FROM finished
        WHERE NOT is_last AND (place > :kept OR bytes > :bytes OR update_time < :oldest)
    )
    SELECT name, before FROM beyond ORDER BY update_time, name LIMIT :most + 1
"""  # noqa: S608
"""One more than a batch of the operations that go, oldest first, each with the bytes of those before it."""
