"""Attachments in SQLite."""

import sqlite_utils


class SqliteAttachments:
    """Attachments of one transaction."""

    def __init__(self, db: sqlite_utils.Database) -> None:
        self._db = db

    def parts(self, digest: str) -> dict[int, bytes]:
        """Read the parts of an attachment."""
        rows = self._db.execute("SELECT number, body FROM attachment_parts WHERE digest = ? ORDER BY number", [digest])
        return {number: bytes(body) for number, body in rows}

    def has(self, digest: str) -> bool:
        """Tell whether there is a complete one of that digest."""
        found = self._db.execute("SELECT 1 FROM attachments WHERE digest = ? AND is_complete", [digest])
        return found.fetchone() is not None

    def keep(self, digest: str, now: int) -> bool:
        """Let one count as stored now."""
        kept = self._db.execute("UPDATE attachments SET time = ? WHERE digest = ? AND is_complete", [now, digest])
        return bool(kept.rowcount)

    def put(self, digest: str, number: int, body: bytes, is_complete: bool, now: int) -> None:
        """Add a part."""
        self._db.execute(
            """
            INSERT INTO attachments (digest, time, is_complete) VALUES (?, ?, ?) ON CONFLICT (digest)
            DO UPDATE SET time = excluded.time, is_complete = MAX(is_complete, excluded.is_complete)
            """,
            [digest, now, is_complete],
        )
        self._db.execute(
            "INSERT INTO attachment_parts (digest, number, body) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
            [digest, number, body],
        )
