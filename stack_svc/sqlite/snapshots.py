"""Snapshots in SQLite."""

from collections.abc import Collection
from typing import Any

import orjson
import sqlite_utils

from stack_svc.sqlite.operation_states import IS_UNFINISHED
from stack_svc.store.snapshots import SnapshotPlace, StoredSnapshot

IS_USED = f"""
    EXISTS (
        SELECT 1 FROM snapshot_users JOIN operations ON operations.id = snapshot_users.operation
        WHERE snapshot_users.snapshot = snapshots.id AND operations.{IS_UNFINISHED}
            AND operations.id <> :except
    )
"""  # noqa: S608
"""The condition that a snapshot has an unfinished user other than the operation *except*."""


class SqliteSnapshots:
    """Snapshots of one transaction."""

    def __init__(self, db: sqlite_utils.Database) -> None:
        self._db = db

    def find(self, snapshot: str) -> StoredSnapshot | None:
        """Read one snapshot."""
        return next(map(_snapshot, self._db.query(f"{_select('manifest')} WHERE snapshots.id = ?", [snapshot])), None)

    def is_used(self, snapshot: str) -> bool:
        """Return whether a user of a snapshot is unfinished."""
        values = {"id": snapshot, "except": ""}
        row = self._db.execute(f"SELECT 1 FROM snapshots WHERE id = :id AND {IS_USED}", values)  # noqa: S608
        return row.fetchone() is not None

    def used_by(self, operation: str) -> list[StoredSnapshot]:
        """Read the snapshots that an operation uses."""
        where = "snapshots.id IN (SELECT snapshot FROM snapshot_users WHERE operation = ?) ORDER BY snapshots.id"
        return list(map(_snapshot, self._db.query(f"{_select()} WHERE {where}", [operation])))

    def made_by(self, operation: str) -> list[str]:
        """Return the ids of the snapshots that an operation made and that are not deleted."""
        rows = self._db.execute(
            "SELECT id FROM snapshots WHERE made_by = ? AND delete_time IS NULL ORDER BY id", [operation]
        )
        return [snapshot for (snapshot,) in rows]

    def page(self, stack_name: str, after: SnapshotPlace, most: int) -> list[StoredSnapshot]:
        """Read a page of snapshots."""
        of_stack, values = ("AND snapshots.stack_name = ?", [stack_name]) if stack_name else ("", [])
        rows = self._db.query(
            f"""
            {_select()}
            WHERE snapshots.delete_time IS NULL AND (snapshots.create_time, snapshots.id) < (?, ?) {of_stack}
            ORDER BY snapshots.create_time DESC, snapshots.id DESC LIMIT ?
            """,
            [*after, *values, most],
        )
        return list(map(_snapshot, rows))

    def insert(self, snapshot: StoredSnapshot, contents: Collection[str]) -> bool:
        """Add a snapshot and the digests of its contents."""
        added = self._db.execute(
            """
            INSERT INTO snapshots (id, manifest, made_by, stack_name, object_count, bytes, create_time, delete_time,
                deleted_by)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING
            """,
            [
                snapshot.id,
                snapshot.manifest,
                snapshot.operation,
                snapshot.stack_name,
                snapshot.object_count,
                snapshot.bytes,
                snapshot.create_time,
                snapshot.delete_time,
                snapshot.deleted_by,
            ],
        )
        if not added.rowcount:
            return False
        self._db.conn.executemany(
            "INSERT INTO snapshot_contents (snapshot, digest) VALUES (?, ?)",
            [(snapshot.id, digest) for digest in sorted(set(contents))],
        )
        self._db.execute(
            "INSERT INTO snapshot_users (snapshot, operation) VALUES (?, ?)", [snapshot.id, snapshot.operation]
        )
        return True

    def use(self, operation: str, snapshots: Collection[str]) -> list[str]:
        """Make an operation a user of snapshots."""
        ids = orjson.dumps(sorted(set(snapshots))).decode()
        gone = self._db.execute(
            """
            SELECT value FROM json_each(?)
            WHERE NOT EXISTS (SELECT 1 FROM snapshots WHERE id = value AND delete_time IS NULL) ORDER BY value
            """,
            [ids],
        ).fetchall()
        if not gone:
            self._db.execute(
                "INSERT OR IGNORE INTO snapshot_users (snapshot, operation) SELECT value, ? FROM json_each(?)",
                [operation, ids],
            )
        return [snapshot for (snapshot,) in gone]

    def delete(self, snapshot: str, time: int, deleted_by: str) -> bool:
        """Mark a snapshot as deleted."""
        deleted = self._db.execute(
            "UPDATE snapshots SET delete_time = ?, deleted_by = ? WHERE id = ? AND delete_time IS NULL",
            [time, deleted_by, snapshot],
        )
        remove_unused(self._db, "snapshots.id = :id", {"id": snapshot, "except": ""})
        return bool(deleted.rowcount)

    def release(self, operation: str) -> None:
        """End the use of snapshots by an operation."""
        used = "snapshots.id IN (SELECT snapshot FROM snapshot_users WHERE operation = :except)"
        remove_unused(self._db, used, {"except": operation})


def remove_unused(db: sqlite_utils.Database, which: str, values: dict[str, Any]) -> None:
    """
    Remove the contents of those deleted snapshots of *which* that have no unfinished user, and what nobody made.

    Args:
        db: The database.
        which: A condition on snapshots.
        values: Values for it and for ``IS_USED``.
    """
    unused = f"snapshots.delete_time IS NOT NULL AND {which} AND NOT {IS_USED}"
    db.execute(
        f"DELETE FROM snapshot_contents WHERE snapshot IN (SELECT id FROM snapshots WHERE {unused})",  # noqa: S608
        values,
    )
    db.execute(f"DELETE FROM snapshots WHERE made_by IS NULL AND {unused}", values)  # noqa: S608


def _select(manifest: str = "''") -> str:
    return f"""
        SELECT snapshots.id, {manifest} AS manifest, snapshots.made_by, operations.action_set, snapshots.stack_name,
            snapshots.object_count, snapshots.bytes, snapshots.create_time, snapshots.delete_time, snapshots.deleted_by
        FROM snapshots LEFT JOIN operations ON operations.id = snapshots.made_by
    """  # noqa: S608


def _snapshot(row: dict[str, Any]) -> StoredSnapshot:
    return StoredSnapshot(
        row["id"],
        row["manifest"],
        row["made_by"] or "",
        row["action_set"] or "",
        row["stack_name"],
        row["object_count"],
        row["bytes"],
        row["create_time"],
        row["delete_time"],
        row["deleted_by"],
    )
