"""Definitions in SQLite."""

import sqlite_utils

from stack_svc.store.definitions import DefinitionPlace, StoredDefinition

_COLUMNS = "kind, name, description, etag, body, create_time, update_time"
_LISTED_COLUMNS = _COLUMNS.replace("body", "''")


class SqliteDefinitions:
    """Definitions of one transaction."""

    def __init__(self, db: sqlite_utils.Database) -> None:
        self._db = db

    def find(self, kind: str, name: str) -> StoredDefinition | None:
        """Read one definition."""
        row = self._db.execute(
            f"SELECT {_COLUMNS} FROM definitions WHERE kind = ? AND name = ?",  # noqa: S608
            [kind, name],
        ).fetchone()
        return StoredDefinition(*row) if row else None

    def page(self, kind: str, after: DefinitionPlace, most: int) -> list[StoredDefinition]:
        """Read a page of definitions."""
        of_kind, values = ("AND kind = ?", [kind]) if kind else ("", [])
        rows = self._db.execute(
            f"""
            SELECT {_LISTED_COLUMNS} FROM definitions WHERE (kind, name) > (?, ?) {of_kind}
            ORDER BY kind, name LIMIT ?
            """,  # noqa: S608
            [*after, *values, most],
        )
        return [StoredDefinition(*row) for row in rows]

    def insert(self, definition: StoredDefinition) -> bool:
        """Add a definition."""
        added = self._db.execute(
            f"INSERT INTO definitions ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",  # noqa: S608
            [
                definition.kind,
                definition.name,
                definition.description,
                definition.etag,
                definition.body,
                definition.create_time,
                definition.update_time,
            ],
        )
        return bool(added.rowcount)

    def replace(self, definition: StoredDefinition, etag: str) -> bool:
        """Replace a definition."""
        replaced = self._db.execute(
            """
            UPDATE definitions SET description = ?, etag = ?, body = ?, update_time = MAX(update_time, ?)
            WHERE kind = ? AND name = ? AND etag = ?
            """,
            [
                definition.description,
                definition.etag,
                definition.body,
                definition.update_time,
                definition.kind,
                definition.name,
                etag,
            ],
        )
        return bool(replaced.rowcount)

    def delete(self, kind: str, name: str) -> bool:
        """Remove a definition."""
        return bool(self._db.execute("DELETE FROM definitions WHERE kind = ? AND name = ?", [kind, name]).rowcount)
