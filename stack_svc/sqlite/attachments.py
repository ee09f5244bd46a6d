"""Attachments in SQLite."""

from collections.abc import Collection

import orjson
import sqlite_utils

_NUMBERS = "SELECT number FROM attachment_parts WHERE digest = ?"


class SqliteAttachments:
    """Attachments of one transaction."""

    def __init__(self, db: sqlite_utils.Database) -> None:
        self._db = db

    def numbers(self, digest: str) -> set[int]:
        """Return the numbers of the stored parts, without reading their bodies."""
        return {number for (number,) in self._db.execute(_NUMBERS, [digest])}

    def parts(self, digest: str) -> dict[int, bytes]:
        """Read the parts of an attachment."""
        rows = self._db.execute("SELECT number, body FROM attachment_parts WHERE digest = ? ORDER BY number", [digest])
        return {number: bytes(body) for number, body in rows}

    def has(self, digest: str) -> bool:
        """Return whether a complete attachment with that digest is stored."""
        row = self._db.execute("SELECT 1 FROM attachments WHERE digest = ? AND is_complete", [digest])
        return row.fetchone() is not None

    def lacking(self, digests: Collection[str]) -> list[str]:
        """Return the digests with which no complete attachment is stored."""
        rows = self._db.execute(
            """
            SELECT value FROM json_each(?)
            WHERE NOT EXISTS (SELECT 1 FROM attachments WHERE digest = value AND is_complete) ORDER BY value
            """,
            [orjson.dumps(sorted(digests)).decode()],
        )
        return [digest for (digest,) in rows]

    def keep(self, digest: str, now: int) -> bool:
        """Set the time of an attachment."""
        kept = self._db.execute("UPDATE attachments SET time = ? WHERE digest = ? AND is_complete", [now, digest])
        return bool(kept.rowcount)

    def put(self, digest: str, number: int, body: bytes, now: int) -> None:
        """Add a part of an incomplete attachment; it replaces a part with the same number."""
        self._db.execute(
            """
            INSERT INTO attachments (digest, time, is_complete) VALUES (?, ?, 0)
            ON CONFLICT (digest) DO UPDATE SET time = excluded.time
            """,
            [digest, now],
        )
        self._db.execute(
            "INSERT OR REPLACE INTO attachment_parts (digest, number, body) VALUES (?, ?, ?)", [digest, number, body]
        )

    def complete(self, digest: str, count: int) -> None:
        """Mark an attachment as complete, and remove parts with other numbers."""
        self._db.execute("DELETE FROM attachment_parts WHERE digest = ? AND number >= ?", [digest, count])
        self._db.execute("UPDATE attachments SET is_complete = 1 WHERE digest = ?", [digest])
