"""Journals in SQLite."""

import sqlite_utils

from stack_svc.store.journal import Row


class SqliteJournal:
    """Journals of one transaction."""

    def __init__(self, db: sqlite_utils.Database) -> None:
        self._db = db

    def row(self, operation: str, position: int) -> Row | None:
        """Read one write."""
        row = self._db.execute(f"{_SELECT} AND position = ?", [operation, position]).fetchone()
        return Row(*row) if row else None

    def rows(self, operation: str) -> list[Row]:
        """Read all writes of an operation."""
        return [Row(*row) for row in self._db.execute(f"{_SELECT} ORDER BY position", [operation])]

    def rows_after(self, operation: str, seq: int, most_bytes: int) -> tuple[list[Row], bool]:
        """Read writes with events after *seq*."""
        rows: list[Row] = []
        for row in self._db.execute(
            f"{_SELECT} AND last_seq > ? AND length(events) > 0 ORDER BY position", [operation, seq]
        ):
            if most_bytes <= 0:
                return rows, True
            rows.append(Row(*row))
            most_bytes -= len(rows[-1].events)
        return rows, False

    def append(self, operation: str, row: Row) -> None:
        """Add a write."""
        self._db.execute(
            "INSERT INTO journal (operation, position, token, last_seq, records, events, time)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            [operation, *row],
        )


_SELECT = "SELECT position, token, last_seq, records, events, time FROM journal WHERE operation = ?"
