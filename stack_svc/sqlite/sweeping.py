"""
The sweep in SQLite: removes rows that are no longer needed, one batch at a time (docs/reference/engine.md, "Store").
"""

import sqlite_utils

from stack_svc.sqlite.leases import IS_FREE
from stack_svc.sqlite.operation_states import IS_FINISHED, IS_UNFINISHED
from stack_svc.sqlite.snapshots import IS_USED, remove_unused
from stack_svc.store.leases import RELEASED
from stack_svc.store.operations import GONE
from stack_svc.store.store import RetentionLimits, Swept

_PAGES = 1024
"""Largest number of pages, of 4 KiB each, that one sweep releases."""


def sweep(db: sqlite_utils.Database, limits: RetentionLimits, now: int) -> Swept:
    """Remove or end at most ``limits.batch`` rows of each table; *db* is in a write transaction."""
    values = {"now": now, "most": limits.batch, "cause": GONE}

    def rows(statement: str) -> int:
        return int(db.execute(statement, values).rowcount)

    requests = rows(
        "DELETE FROM requests WHERE request_id IN (SELECT request_id FROM requests WHERE expires < :now LIMIT :most)"
    )
    plans = rows(
        "DELETE FROM plans WHERE id IN (SELECT id FROM plans WHERE operation IS NULL AND expires < :now LIMIT :most)"
    )
    action_sets = _sweep_action_sets(db, limits, now)
    operations, has_more = _sweep_operations(db, limits, now)
    ended = db.execute(
        f"""
        UPDATE operations SET state = 'FAILED', update_time = MAX(update_time, :now), cause = :cause
        WHERE id IN (
            SELECT operations.id FROM operations JOIN leases ON leases.stack = operations.stack
            WHERE operations.{IS_UNFINISHED} AND operations.state = 'PREPARING' AND {IS_FREE} LIMIT :most
        )
        RETURNING id, stack
        """,  # noqa: S608
        values,
    ).fetchall()
    ids = [(id_,) for id_, _ in ended]
    db.conn.executemany("DELETE FROM requests WHERE result = ?", ids)
    db.conn.executemany("DELETE FROM plans WHERE operation = ?", ids)
    # A lease may be free because a clock was set back; its holder is then alive, and must not renew it.
    db.conn.executemany("UPDATE leases SET expires = ? WHERE stack = ?", [(RELEASED, stack) for _, stack in ended])
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
    return Swept(requests, plans, operations, len(ended), stacks, attachments, action_sets, has_more)


def _sweep_attachments(db: sqlite_utils.Database, limits: RetentionLimits, now: int) -> int:
    """
    Remove attachments that nothing names; the number of removed ones.

    Only the oldest ones are checked. The time of those in use is set to now, so each is checked once per
    ``limits.attachment_age``.
    """
    oldest = db.execute(
        """
        SELECT digest, EXISTS (SELECT 1 FROM revisions WHERE package_digest = digest)
            OR EXISTS (SELECT 1 FROM plans WHERE package_digest <> '' AND package_digest = attachments.digest)
            OR EXISTS (SELECT 1 FROM plans WHERE baselines_digest <> '' AND baselines_digest = attachments.digest)
            OR EXISTS (SELECT 1 FROM packages WHERE content_digest = attachments.digest)
            OR EXISTS (SELECT 1 FROM plan_packages WHERE content_digest = attachments.digest)
            OR EXISTS (SELECT 1 FROM revision_contents WHERE revision_contents.digest = attachments.digest)
            OR EXISTS (SELECT 1 FROM snapshot_contents WHERE snapshot_contents.digest = attachments.digest)
        FROM attachments WHERE time < ? ORDER BY time LIMIT ?
        """,
        [now - limits.attachment_age, limits.batch],
    ).fetchall()
    used, unused = ([(digest,) for digest, is_used in oldest if is_used == state] for state in (1, 0))
    db.conn.executemany("UPDATE attachments SET time = ? WHERE digest = ?", [(now, *each) for each in used])
    db.conn.executemany("DELETE FROM attachments WHERE digest = ?", unused)
    return len(unused)


def release_space(db: sqlite_utils.Database) -> bool:
    """Return some free pages of the file to the file system; whether more are left."""
    free = int(db.execute("PRAGMA freelist_count").fetchone()[0])
    for _ in range(min(free, _PAGES)):
        # The module sqlite3 ends a statement without columns after its first step, which frees one page.
        db.execute("PRAGMA incremental_vacuum(1)")
    return free > _PAGES


def _sweep_action_sets(db: sqlite_utils.Database, limits: RetentionLimits, now: int) -> int:
    """Remove finished action sets beyond *limits*, and those whose time has passed; the number of removed ones."""
    values = {"most": limits.batch, "kept": limits.action_sets, "now": now, "except": ""}
    removed = db.execute(_ENDED_ACTION_SETS, values).fetchall()
    db.conn.executemany("DELETE FROM operations WHERE id = ?", removed)
    if removed:
        remove_unused(db, "made_by IS NULL", values)
    return len(removed)


def _sweep_operations(db: sqlite_utils.Database, limits: RetentionLimits, now: int) -> tuple[int, bool]:
    """Remove finished operations beyond *limits*; the number of removed ones, and whether more are left."""
    values = {
        "most": limits.batch,
        "kept": limits.operations,
        "oldest": now - limits.age,
        "bytes": limits.bytes,
    }
    measured = db.execute(_MEASURE, values).rowcount
    beyond = db.execute(_BEYOND, values).fetchall()
    removed = [(id_,) for id_, before in beyond[: limits.batch] if before < limits.batch_bytes]
    # Foreign keys remove their plans and journals with them.
    db.conn.executemany("DELETE FROM operations WHERE id = ?", removed)
    return len(removed), len(beyond) > len(removed) or measured == limits.batch


_ENDED_ACTION_SETS = f"""
    WITH finished AS (
        SELECT operations.id, operations.update_time, action_sets.ttl,
            ROW_NUMBER() OVER (ORDER BY operations.update_time DESC, operations.id DESC) AS place
        FROM action_sets JOIN operations ON operations.id = action_sets.operation
        WHERE operations.{IS_FINISHED} AND NOT EXISTS (
            SELECT 1 FROM snapshots WHERE made_by = operations.id AND (delete_time IS NULL OR {IS_USED})
        )
    )
    SELECT id FROM finished WHERE place > :kept OR update_time + ttl < :now ORDER BY update_time, id LIMIT :most
"""  # noqa: S608
"""Action sets that are not retained any longer, oldest first; those with a snapshot that is needed are left out."""

_MEASURE = f"""
    UPDATE operations SET size = 500 + length(last_event)
        + COALESCE((
            SELECT SUM(100 + length(records) + length(events)) FROM journal WHERE operation = operations.id
        ), 0)
        + COALESCE((
            SELECT SUM(length(header)) FROM plans JOIN plan_headers ON plan = plans.id
            WHERE plans.operation = operations.id
        ), 0)
        + COALESCE((
            SELECT SUM(100 + length(part) + length(masked_part)) FROM plans JOIN plan_parts ON plan = plans.id
            WHERE plans.operation = operations.id
        ), 0)
    WHERE id IN (SELECT id FROM operations WHERE size IS NULL AND {IS_FINISHED} LIMIT :most)
"""  # noqa: S608
"""
Measures finished operations, which no longer change. SQLite knows the length of a blob without reading it.

The constants are estimates of the other columns and of the indexes.
"""

_BEYOND = f"""
    WITH finished AS (
        SELECT id, update_time, COALESCE(size, 0) AS size,
            ROW_NUMBER() OVER newest AS place,
            SUM(size) OVER newest AS bytes,
            ROW_NUMBER() OVER (PARTITION BY stack ORDER BY update_time DESC, id DESC) = 1
                AND EXISTS (SELECT 1 FROM stacks WHERE id = stack) AS is_last
        FROM operations WHERE {IS_FINISHED} AND action_set = '' AND NOT EXISTS (
            SELECT 1 FROM operations AS parents WHERE parents.id = operations.parent AND parents.{IS_UNFINISHED}
        )
        WINDOW newest AS (ORDER BY update_time DESC, id DESC)
    ),
    beyond AS (
        SELECT id, update_time, SUM(size) OVER (ORDER BY update_time, id) - size AS before
        FROM finished
        WHERE NOT is_last AND (place > :kept OR bytes > :bytes OR update_time < :oldest)
    )
    SELECT id, before FROM beyond ORDER BY update_time, id LIMIT :most + 1
"""  # noqa: S608
"""
Operations beyond the limits, oldest first, each with the total size of those before it; one more than a batch. The ones
of action sets, and those that an unfinished operation has begun, are left out.
"""
