"""Answers to requests in SQLite."""

import sqlite_utils

from stack_svc.store.requests import StoredAnswer


class SqliteRequests:
    """Requests of one transaction."""

    def __init__(self, db: sqlite_utils.Database) -> None:
        self._db = db

    def find(self, request: str) -> StoredAnswer | None:
        """Read the answer to a request."""
        row = self._db.execute(
            "SELECT digest, result, expires FROM requests WHERE request_id = ?", [request]
        ).fetchone()
        return StoredAnswer(*row) if row else None

    def put(self, request: str, answer: StoredAnswer, now: int) -> StoredAnswer | None:
        """Store an answer, unless there is one that has not expired."""
        stored = self._db.execute(
            """
            INSERT INTO requests (request_id, digest, result, expires) VALUES (:request, :digest, :result, :expires)
            ON CONFLICT (request_id) DO UPDATE
                SET digest = excluded.digest, result = excluded.result, expires = excluded.expires
                WHERE requests.expires < :now
            """,
            {"request": request, **answer._asdict(), "now": now},
        )
        return None if stored.rowcount else self.find(request)

    def forget(self, result: str) -> None:
        """Remove the answers with *result*."""
        self._db.execute("DELETE FROM requests WHERE result = ?", [result])
